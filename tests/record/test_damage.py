"""A damaged file of records shows every intact record and no other."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_a_sample_of_all_damages_shows_what_is_intact() -> None:
    command = [sys.executable, "tests/rigs/damage.py", "--sample", "500", "--seed", "1", "--json"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["cases"] == 500
    assert found["refused"] > 0, "no case had lost its header"
