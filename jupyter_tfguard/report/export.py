"""One report as a zip to share: the bundle, and the report as JSON, Markdown and HTML, all without personal data."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..redact import REDACTED
from . import html
from .anonymous import HOME, Anonymous, Identity, is_term
from .choices import LEFT_OUT, REPLACED, Choices
from .choices import PATH as PATH_PART
from .left_out import FUNCTION, OTHER, SOME_PATH, left_out, replacements, without_paths
from .people import HOST, MAIL, USER
from .setting import setting
from .suspicious import Flag, suspicious
from .text import markdown

Json = dict[str, Any]

PREVIEW_CHARACTERS = 200_000
# What stands in a file where something was removed; HOME only at the beginning of a path.
MARKS = (
    REDACTED,
    USER,
    HOST,
    MAIL,
    LEFT_OUT,
    REPLACED,
    SOME_PATH,
    FUNCTION,
    OTHER,
    f"{HOME}/",
    f"{HOME}\\",
)
_FLAGS_LIMIT = 100
# Zip files contain the time of each file. A fixed time hides when the export was made.
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Export:
    """The files to share.

    Attributes:
        files: {name: text}.
        redacted_count: Number of removals in the bundle and the report, now or when they were saved.
        flagged: What may be a secret or a name although no form fits.
    """

    files: dict[str, str]
    redacted_count: int
    flagged: tuple[Flag, ...] = ()

    def preview(self) -> Json:
        """The files with size and text, long texts cut, and what was removed and what is flagged in them."""
        return {
            "files": [
                {
                    "name": name,
                    "bytes": len(text.encode()),
                    "text": text[:PREVIEW_CHARACTERS],
                    "is_cut": len(text) > PREVIEW_CHARACTERS,
                    "removed_count": sum(text.count(mark) for mark in MARKS),
                }
                for name, text in self.files.items()
            ],
            "redacted_count": self.redacted_count,
            "marks": list(MARKS),
            "flagged": [
                {
                    "text": flag.text,
                    "why": flag.why,
                    "count": sum(text.count(_escaped(flag.text)) for text in self.files.values()),
                }
                for flag in self.flagged
            ],
        }

    def zipped(self) -> bytes:
        """The files as a zip, which ``jupyter tfguard why`` reads."""
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in self.files.items():
                archive.writestr(zipfile.ZipInfo(name, _LONG_AGO), text, zipfile.ZIP_DEFLATED)
        return target.getvalue()


def export(
    bundle: Json, report: Json, identity: Identity, choices: Choices | None = None
) -> Export:
    """Everything about one death, anonymised so that it may leave this machine.

    Args:
        bundle: The recorded data.
        report: The report about it.
        identity: Names to remove, in addition to those that the bundle contains.
        choices: What the user leaves out and replaces.
    """
    chosen = choices or Choices()
    anonymous = _anonymous(bundle, report, identity, chosen)
    bundle, report = left_out(bundle, _shared(bundle, report), chosen.without)
    shared = [anonymous.value(bundle), anonymous.value(report)]
    flags = list(dict.fromkeys(flag for value in shared for flag in _flags(value)))
    if chosen.pattern is not None:
        words = _Words(chosen)
        shared = [words.value(value) for value in shared]
        anonymous.count += words.count
        flags = [flag for flag in flags if chosen.pattern.sub(REPLACED, flag.text) == flag.text]
    files = {
        "bundle.json": _json(shared[0]),
        "report.json": _json(shared[1]),
        "report.md": markdown(shared[1]),
        "report.html": html.render(shared[1]),
    }
    return Export(files, anonymous.count, tuple(flags[:_FLAGS_LIMIT]))


def shared_markdown(bundle: Json, report: Json, identity: Identity) -> str:
    """The Markdown of a report, anonymised as by :func:`export` with the default choices.

    Args:
        bundle: The recorded data.
        report: The report.
        identity: Names to remove.
    """
    anonymous = _anonymous(bundle, report, identity, Choices())
    return markdown(anonymous.value(_shared(bundle, report)))


def _shared(bundle: Json, report: Json) -> Json:
    """The report with what a reader elsewhere needs, without what concerns only this server."""
    kept = {name: value for name, value in report.items() if name != "unsaved"}
    return kept | setting(bundle, report)


def _anonymous(bundle: Json, report: Json, identity: Identity, chosen: Choices) -> Anonymous:
    return Anonymous(
        identity,
        Identity.of_kernel(bundle),
        first=replacements(bundle, report, chosen.without),
        last=[without_paths] if PATH_PART in chosen.without else [],
    )


class _Words:
    """Replaces the user's words in all texts and in names that the user gave, such as those of metrics."""

    def __init__(self, chosen: Choices) -> None:
        self.count = 0
        self._pattern = chosen.pattern

    def value(self, value: Any, named_by_user: bool = False) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {
                self._text(key) if named_by_user else key: self.value(
                    item, key in ("logs", "versions", "signal_texts")
                )
                for key, item in value.items()
            }
        return [self.value(item) for item in value] if isinstance(value, list) else value

    def _text(self, text: str) -> str:
        assert self._pattern is not None
        changed, count = self._pattern.subn(REPLACED, text)
        self.count += count
        return changed


def _flags(value: Any, key: str = "") -> Iterator[Flag]:
    """Suspicious parts of all texts. Ids of kernels, machines and cells are terms of the format."""
    if isinstance(value, str):
        if not is_term(key, value) and not key.endswith(("_id", "_uuid")):
            yield from suspicious(value)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _flags(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from _flags(item, key)


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _escaped(text: str) -> str:
    """The text as it is in a JSON file."""
    return json.dumps(text, ensure_ascii=False)[1:-1]
