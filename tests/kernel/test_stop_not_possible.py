"""The stop where its native library cannot be: a state with the reason, and nothing else."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_tfguard.guard import native
from jupyter_tfguard.kernel.stop.memory_stop import MemoryStop

pytestmark = pytest.mark.quick


def handlers() -> dict[int, Any]:
    return {number: signal.getsignal(number) for number in signal.valid_signals()}


@pytest.mark.parametrize(
    ("content", "why"), [(None, "was not built"), ("no library", "cannot be loaded")]
)
def test_without_its_library_the_stop_is_not_possible_and_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | None, why: str
) -> None:
    monkeypatch.setattr(native, "LIBRARY", tmp_path / "_gate.so")
    if content is not None:
        (tmp_path / "_gate.so").write_text(content)
    compiler = SimpleNamespace(format_code_name=lambda file: None)
    shell: Any = SimpleNamespace(user_ns={}, compile=compiler, showtraceback=print)
    alarm: Any = None
    threads, before = threading.enumerate(), handlers()
    stop = MemoryStop("soft", shell, lambda *_, **__: None, lambda: None, alarm)
    stop.start()
    state = stop.state()
    assert (state["state"], state["stop_bytes"], state["patched"]) == ("unavailable", None, [])
    (note,) = state["notes"]
    assert why in note
    assert stop.text() == f"Stop: not possible on this system: {note}"
    assert (threading.enumerate(), handlers()) == (threads, before)
    stop.cell_begins()
    stop.cell_ends(1, None)
    stop.stop()
