"""A report, and the list of reports, as HTML pages: no script, no external resources, all values escaped."""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.resources
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import jinja2
from markupsafe import Markup

from ..errors import OTHER_SHAPE, RecordUnreadable
from ..record.equal import folded
from ..redact import printable
from ..units import UNKNOWN_TEXT, human_bytes
from .memory import memory_sentence
from .svg import pictures
from .wire import utc_text

_CONFIDENCES = ("certain", "likely", "possible")

Json = dict[str, Any]


@dataclass(frozen=True)
class Links:
    """Links on a page of a server; an exported page has none."""

    list: str
    markdown: str
    bundle: str


def render(report: Json, links: Links | None = None) -> str:
    """The report as a page.

    Raises:
        RecordUnreadable: The saved report has an invalid structure.
    """
    cleaned = _printable(report)
    confidence = cleaned.get("confidence")
    try:
        return _template("report.html").render(
            report=cleaned,
            confidence=confidence if confidence in _CONFIDENCES else UNKNOWN_TEXT,
            died=_stamp(cleaned.get("crashed_at")),
            pictures=pictures(cleaned.get("memory")),
            memory_sentence=memory_sentence(cleaned),
            links=links,
        )
    except (jinja2.TemplateError, *OTHER_SHAPE) as bad:
        raise RecordUnreadable(f"The report has an invalid structure: {bad}") from bad


def render_list(entries: Iterable[Json], address: Callable[[str], str]) -> str:
    """All crashes as a page; equal ones share one line.

    Args:
        entries: The entries of the list.
        address: Returns the URL of a report, given its id.
    """

    def linked(entry: Json) -> Json:
        return dict(_printable(entry), link=address(str(entry["id"])))

    crashes = [
        linked(newest) | {"others": [linked(entry) for entry in others]}
        for newest, others in folded(entries)
    ]
    return _template("list.html").render(crashes=crashes)


def render_message(title: str, sentence: str, list_link: str) -> str:
    """A page with a single message, for example that there is no such report."""
    return _template("message.html").render(
        title=title, sentence=printable(sentence), list_link=list_link
    )


@functools.cache
def style_hash() -> str:
    """The pages' only style sheet, as a content security policy names it: ``sha256-…``."""
    digest = hashlib.sha256(_style().encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


@functools.cache
def _style() -> str:
    folder = importlib.resources.files(__package__ or "") / "templates"
    return (folder / "page.css").read_text(encoding="utf-8")


@functools.cache
def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__ or "", "templates"),
        autoescape=True,
        auto_reload=False,  # after an upgrade, the file is that of another version
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(bytes=_bytes, clock=_clock, metric=_metric, stamp=_stamp)
    made.globals["style"] = Markup(_style())  # our own file, which contains no closing tag
    return made


def _template(name: str) -> jinja2.Template:
    return _environment().get_template(name)


def _printable(value: Any) -> Any:
    """Clean the values, because any program of this user can write to the store."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(str(key)): _printable(item) for key, item in value.items()}
    return [_printable(item) for item in value] if isinstance(value, list) else value


def _bytes(value: object) -> str:
    return human_bytes(value if isinstance(value, (int, float)) else None)


def _clock(value: object) -> str:
    return utc_text(value)[11:19] if isinstance(value, (int, float)) else UNKNOWN_TEXT


def _stamp(value: object) -> str:
    """``2026-11-21 02:14:07 UTC``; the text itself if it is not in our timestamp format."""
    text = str(value)
    if len(text) == 24 and text[10] == "T" and text.endswith("Z"):
        return f"{text[:10]} {text[11:19]} UTC"
    return text


def _metric(value: object) -> str:
    if value is None:
        return UNKNOWN_TEXT
    return format(value, ".5g") if isinstance(value, float) else str(value)
