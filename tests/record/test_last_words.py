"""Deaths of many kinds: no last word is lost, no stack; and the rig would have seen it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import without_pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the rig is for Linux")

ROOT = Path(__file__).parents[2]
RIG = ROOT / "tests" / "rigs" / "last_words.py"
WITHOUT = """
import sys
sys.path.insert(0, {root!r})
from tests.rigs import last_words
{change}
sys.argv = ["last_words.py", "--count", "40", "--json"]
sys.exit(last_words.main())
"""


def run(*command: str | Path) -> tuple[int, dict[str, Any]]:
    ran = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=300,
        env=without_pytest(os.environ),
    )
    assert ran.stdout, ran.stderr
    return ran.returncode, json.loads(ran.stdout)


def test_deaths_lose_no_words_and_no_stacks(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    code, found = run(RIG, "--count", "100", "--seed", "4", "--json", "--state", state)
    assert found["failures"] == []
    assert (found["lost_words"], found["lost_stacks"], found["wrong_deaths"]) == (0, 0, 0)
    assert found["deaths"] == sum(found["by_kind"].values()) == 100
    assert len(found["by_kind"]) >= 15
    assert code == 0
    assert json.loads(state.read_text())["done"] == [[0, 100]]


def test_the_rig_sees_words_that_were_not_kept(tmp_path: Path) -> None:
    nowhere = "last_words.os.dup2(last_words.os.open('/dev/null', 1), 2)"
    change = f"last_words.StderrTail.start = lambda self: {nowhere}"
    code, found = run("-c", WITHOUT.format(root=str(ROOT), change=change))
    assert code == 1
    assert found["lost_words"] >= 40
    assert found["lost_stacks"] == found["wrong_deaths"] == 0


def test_the_rig_sees_stacks_that_were_not_written(tmp_path: Path) -> None:
    change = "last_words.FaultFiles.start = lambda self: 'ours'"
    code, found = run("-c", WITHOUT.format(root=str(ROOT), change=change))
    assert code == 1
    assert found["lost_stacks"] >= 20
    assert found["lost_words"] == found["wrong_deaths"] == 0
