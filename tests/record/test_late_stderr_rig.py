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
from tests.rigs.deaths import kinds

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the rig is for Linux")

ROOT = Path(__file__).parents[2]
RIG = ROOT / "tests" / "rigs" / "late_stderr.py"


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


def test_deaths_lose_no_words_and_no_stacks() -> None:
    code, found = run(RIG, "--count", "100", "--seed", "4", "--json")
    assert found["failures"] == []
    assert (found["lost_words"], found["lost_stacks"], found["wrong_deaths"]) == (0, 0, 0)
    assert found["deaths"] == sum(found["by_kind"].values()) == 100
    assert set(found["by_kind"]) == {kind.name for kind in kinds()}
    assert code == 0
