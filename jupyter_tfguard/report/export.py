"""One report as a zip to hand on: the bundle, the report as JSON, Markdown and a page, all without what tells of a person."""

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
# Zip files tell when each file was made; here that is nobody's business.
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Export:
    """What is handed on.

    Attributes:
        files: Text by name.
        redacted_count: Places in bundle and report where something was taken out, now or when they were kept.
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
    """Everything about one death, as it may leave this machine.

    Args:
        bundle: What was recorded.
        report: What was concluded.
        identity: Whose names are taken out, and those that the bundle itself tells.
    """
    anonymous = Anonymous(identity, Identity.of_kernel(bundle))
    files = {"bundle.json": _json(anonymous.value(bundle))}
    told = anonymous.value(report)
    files["report.json"] = _json(told)
    files["report.md"] = markdown(told)
    files["report.html"] = html.render(told)
    return Export(files, anonymous.count)


def shared_markdown(report: Json, identity: Identity) -> str:
    """The Markdown of a report without what :func:`export` takes out.

    Args:
        report: What was concluded.
        identity: Whose names are taken out.
    """
    return markdown(Anonymous(identity).value(report))


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
