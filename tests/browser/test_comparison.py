"""The script of the comparison page: one rule judges all tools, and a death is seen in JupyterLab with tfguard and without."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jupyter_tfguard.demo.limits import NoLimitPossible
from tests.benchmarks.comparison import PAGE
from tests.benchmarks.peers import page
from tests.benchmarks.peers.container import NoContainer, container
from tests.benchmarks.peers.deaths import DEATHS
from tests.benchmarks.peers.judging import Answer, Level, best, shortened
from tests.benchmarks.peers.lab import lab_tools
from tests.benchmarks.peers.watching import Gate, Said
from tests.crash.conftest import cannot_be_played
from tests.rigs.waiting import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser

DEATH = {death.name: death for death in DEATHS}
JUPYTERLAB = "The kernel for a.ipynb appears to have died. It will restart automatically."
JUDGED = {
    "JupyterLab's own": ("segfault", "dialog", JUPYTERLAB, Level.DIED),
    "a signal": ("heap", "terminal", "Aborted  python script.py", Level.ENDING),
    "a cause": ("heap", "terminal", "free(): double free detected in tcache 2", Level.CAUSE),
    "another cause": ("sigkill", "banner", "The kernel ran out of memory.", Level.NOTHING),
    "a restart after a hang": (
        "hang",
        "dialog",
        "Restarting will lose all variables",
        Level.NOTHING,
    ),
    "figures of a panel": ("large-array", "panel figures", "Memory limit: 1 GB", Level.NOTHING),
}


@pytest.mark.quick
@pytest.mark.parametrize(("death", "where", "text", "level"), JUDGED.values(), ids=JUDGED)
def test_one_rule_judges_what_a_tool_said(death: str, where: str, text: str, level: Level) -> None:
    assert best(DEATH[death], [Said(where, text, 1.0)]).level == level


@pytest.mark.quick
def test_the_first_of_the_best_texts_counts() -> None:
    said = [
        Said("dialog", JUPYTERLAB, 0.5),
        Said("dialog", f"{JUPYTERLAB} Cause: segmentation fault.", 0.8),
        Said("cell", "Segmentation fault.", 0.9),
    ]
    found = best(DEATH["segfault"], said)
    assert found == Answer(Level.CAUSE, said[1].text, said[1])


@pytest.mark.quick
def test_a_quote_names_no_folder_of_the_machine() -> None:
    assert shortened('File "/home/ann/lib/python3.11/a.py", line 3') == 'File "…/a.py", line 3'


@pytest.mark.quick
def test_the_page_has_each_death_that_was_played(tmp_path: Path) -> None:
    said = [asdict(Said("dialog", JUPYTERLAB, 2.04))]
    known = {"cores": 2, "memory": "8 GiB", "system": "Linux", "cgroup": "version 2"}
    results = {
        "machine": known | {"date": "2026-11-25", "command": "x"},
        "versions": {"memray": "1"},
        "found": {"segfault": said, "child": said},
    }
    (tmp_path / "deaths").mkdir()
    (tmp_path / "deaths" / "plain Jupyter.json").write_text(json.dumps(results))
    written = page.write(
        tmp_path, "Old.\n\n## Costs\n\nMeasured before.\n\n## What other tools do better\n"
    )
    assert re.search(r"4\. Segmentation fault in native code \|.* died, 2\.0 s \|", written)
    assert "### 10. A child process" in written
    assert "## Costs\n\nMeasured before.\n\n## What other tools do better\n" in written
    assert "Old." not in written


@pytest.mark.quick
def test_a_part_that_was_not_measured_stays_on_the_page(tmp_path: Path) -> None:
    before = PAGE.read_text()
    assert page.write(tmp_path, before) == before


@pytest.mark.parametrize(
    ("index", "level"), [(0, Level.CAUSE), (1, Level.DIED)], ids=["guarded", "plain"]
)
def test_a_death_is_seen_in_jupyterlab(
    index: int, level: Level, browser: Browser, tmp_path: Path
) -> None:
    tool, death, gate = (
        lab_tools(sys.executable, sys.executable)[index],
        DEATH["exit"],
        Gate(tmp_path),
    )
    try:
        with (
            container(tmp_path, tool.python, death.limit_bytes) as python,
            tool.server(tmp_path, python) as server,
        ):
            shown, read = tool.begin(death, gate, server, browser)

            def levels() -> Level:
                return best(death, [Said(*pair, 0.0) for pair in read()]).level

            wait_until(lambda: levels() >= Level.DIED, "a text about the death")
            if level == Level.CAUSE:
                wait_until(lambda: levels() == level, "a text that names the cause")
            assert levels() == level
            assert gate.moment() is not None
            shown.context.close()
    except (NoContainer, NoLimitPossible) as no:
        cannot_be_played(str(no))
