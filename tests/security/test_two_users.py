"""Another user of the same machine gets at nothing, and what he planted is not used."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

RIG = Path(__file__).parents[1] / "rigs" / "two_users.py"


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be two users"
)
def test_b_gets_at_nothing_of_a_and_a_uses_nothing_that_b_planted() -> None:
    place = Path(tempfile.mkdtemp(prefix="tfguard-users-"))
    try:
        done = subprocess.run(
            [sys.executable, RIG, place], capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
    finally:
        shutil.rmtree(place)
    assert told["kept"] > 12
    assert told["went_through"] == []
    assert told["changed"] == []
    assert told["kernel_alive"]
    assert told["at_home"] == ["tfguard"]
    assert told["of_a_at_b"] == []
    assert told["refused"].keys() == {"folder", "link"}
    for sentence in told["refused"].values():
        assert "TFGUARD_DIR" in sentence
