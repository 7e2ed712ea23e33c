"""Reports of the example bundles as they are printed: ``python -m tests.rigs.frozen_reports`` writes them again.

``text.txt`` holds one report of every rule, ``hashes.txt`` a line for each example. A
review then shows how a change alters reports, and a refactoring that alters one by mistake fails its test.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

from jupyter_tfguard.diagnosis.diagnose import diagnose, explain
from jupyter_tfguard.report import explained, text
from jupyter_tfguard.report.wire import to_report
from tests.rigs.examples import examples, text_examples

FOLDER = Path(__file__).parents[1] / "report" / "frozen"


def frozen() -> dict[str, str]:
    """Text of each file of :data:`FOLDER`, as the code makes it now."""
    forms = {**_recorded(), **_pasted()}
    first = {name.split("/")[0]: name for name in reversed(forms) if "/fires-" in name}
    texts = {name: forms[name]["text"] for _, name in sorted(first.items())}
    return {
        "text.txt": "\n".join(f"{'=' * 20} {name}\n{made}" for name, made in texts.items()),
        "hashes.txt": "".join(
            f"{name} {' '.join(f'{form}:{_hash(made)}' for form, made in by_form.items())}\n"
            for name, by_form in forms.items()
        ),
    }


def _recorded() -> dict[str, dict[str, str]]:
    found = {}
    for example in examples("fires") + examples("quiet"):
        report = to_report(example.bundle, diagnose(example.bundle))
        found[str(example)] = {
            "text": text.render(report),
            "json": _json(report),
        }
    return found


def _pasted() -> dict[str, dict[str, str]]:
    found = {}
    for example in text_examples("fires") + text_examples("quiet"):
        report = explained.to_json(explain(example.pasted))
        found[str(example)] = {"text": explained.render(report), "json": _json(report)}
    return found


def _hash(made: str) -> str:
    return hashlib.sha256(made.encode()).hexdigest()[:12]


def _json(report: dict[str, Any]) -> str:
    return json.dumps(report, sort_keys=True, allow_nan=False)


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"  # reports show local times
    time.tzset()
    for file_name, made_text in frozen().items():
        (FOLDER / file_name).write_text(made_text, encoding="utf-8")
