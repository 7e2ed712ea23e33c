"""A bus error by a full /dev/shm is known from the size of the file system, not from who is faster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.collectors.shared_memory import shared_memory
from jupyter_tfguard.diagnosis.diagnose import diagnose
from tests.rigs.examples import EXAMPLES, Example, bundle_of

pytestmark = pytest.mark.quick

MIB = 1024 * 1024


def cause(free: object, size: object = 64 * MIB, *, signal: str = "SIGBUS") -> str:
    """For a kernel that wrote ``block.buf[:] = …``: no complaint, and no word about shared memory in its cell."""
    bundle: dict[str, Any] = Example(
        "", "", EXAMPLES / "bus_error_shm/quiet-plain-bus-error.json"
    ).bundle
    bundle["server"]["exit"]["signal"] = signal
    bundle["server"]["shared_memory"] = {"size_bytes": size, "free_bytes": free}
    return diagnose(bundle).best.cause


def test_a_full_file_system_after_a_bus_error_is_the_cause() -> None:
    assert cause(0) == cause(4096) == "bus_error_shm"


@pytest.mark.parametrize("free", [32 * MIB, None, -1, "0", True])
def test_a_file_system_with_room_or_unknown_is_not(free: object) -> None:
    assert cause(free) == "segfault_native"


def test_another_end_with_a_full_file_system_is_another_cause() -> None:
    assert cause(0, signal="SIGSEGV") != "bus_error_shm"
    assert cause(0, signal="SIGKILL") == "sigkill_unattributed"


def test_the_fact_has_the_sizes() -> None:
    bundle = bundle_of("bus_error_shm/quiet-plain-bus-error.json")
    bundle["server"]["shared_memory"] = {"size_bytes": 64 * MIB, "free_bytes": 0}
    facts = [fact.text for fact in diagnose(bundle).best.because]
    assert "/dev/shm was full: 64 MiB of 64 MiB was in use after the crash" in facts


def test_the_file_system_is_read_where_there_is_one(tmp_path: Path) -> None:
    found = shared_memory(str(tmp_path))
    assert found is not None
    assert 0 <= found[1] <= found[0]
    assert shared_memory(str(tmp_path / "missing")) is None
