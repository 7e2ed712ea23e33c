"""One report as a zip to share: the bundle, and the report as JSON, Markdown and HTML, all without personal data."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from typing import Any

from . import html
from .anonymous import Anonymous, Identity
from .text import markdown

Json = dict[str, Any]

PREVIEW_CHARACTERS = 200_000
# Zip files contain the time of each file. A fixed time hides when the export was made.
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Export:
    """The files to share.

    Attributes:
        files: {name: text}.
        redacted_count: Number of removals in the bundle and the report, now or when they were saved.
    """

    files: dict[str, str]
    redacted_count: int

    def preview(self) -> Json:
        """``{"files": [{"name", "bytes", "text", "is_cut"}], "redacted_count"}``; long texts are cut."""
        return {
            "files": [
                {
                    "name": name,
                    "bytes": len(text.encode()),
                    "text": text[:PREVIEW_CHARACTERS],
                    "is_cut": len(text) > PREVIEW_CHARACTERS,
                }
                for name, text in self.files.items()
            ],
            "redacted_count": self.redacted_count,
        }

    def zipped(self) -> bytes:
        """The files as a zip, which ``jupyter tfguard why`` reads."""
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in self.files.items():
                archive.writestr(zipfile.ZipInfo(name, _LONG_AGO), text, zipfile.ZIP_DEFLATED)
        return target.getvalue()


def export(bundle: Json, report: Json, identity: Identity) -> Export:
    """Everything about one death, anonymised so that it may leave this machine.

    Args:
        bundle: The recorded data.
        report: The report about it.
        identity: Names to remove, in addition to those that the bundle contains.
    """
    anonymous = Anonymous(identity, Identity.of_kernel(bundle))
    files = {"bundle.json": _json(anonymous.value(bundle))}
    anonymised = anonymous.value(report)
    files["report.json"] = _json(anonymised)
    files["report.md"] = markdown(anonymised)
    files["report.html"] = html.render(anonymised)
    return Export(files, anonymous.count)


def shared_markdown(report: Json, identity: Identity) -> str:
    """The Markdown of a report, anonymised as by :func:`export`.

    Args:
        report: The report.
        identity: Names to remove.
    """
    return markdown(Anonymous(identity).value(report))


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
