"""The whole site is built without a warning: every page, every internal link, every picture."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from jupyter_tfguard.diagnosis.rule import all_rules
from tests.rigs.documents import ROOT


def test_the_site_builds_without_warnings_and_names_no_machine(tmp_path: Path) -> None:
    site = tmp_path / "site"
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    command += ["-d", str(tmp_path / "doctrees"), str(ROOT / "notebooks"), str(site)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=1500, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr[-3000:]
    built = {path.relative_to(site).as_posix(): path.read_text() for path in site.rglob("*.html")}
    for page in ("index", "getting-started", "configuration", "commands", "api", "contributing"):
        assert f"{page}.html" in built
    for rule in all_rules():
        assert f"reference/causes/{rule.cause}.html" in built
    ours = [str(ROOT), str(tmp_path)]
    for name, text in built.items():
        assert not any(mine in text for mine in ours), name
        # Nothing is loaded from elsewhere when a page is shown.
        assert not re.search(r"<(?:script|img|iframe)[^>]* src=\"(?:https?:)?//", text), name
        assert not re.search(r"<link[^>]* rel=\"stylesheet\"[^>]* href=\"(?:https?:)?//", text), (
            name
        )
