"""What a stop reads of running functions."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from jupyter_tfguard.kernel.cells.measure import local_variables


@pytest.mark.parametrize("hook", ["setprofile", "settrace"])
def test_a_function_keeps_its_variables_when_a_profile_or_trace_function_reads_them(
    hook: str,
) -> None:
    seen: list[dict[str, Any]] = []

    def look(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code is work.__code__:
            seen.append(local_variables(frame))
        return look

    def work() -> list[int]:
        kept = [1]
        len(kept)
        return kept

    set_hook, before = getattr(sys, hook), getattr(sys, hook.replace("set", "get"))()
    set_hook(look)
    try:
        result = work()
    finally:
        set_hook(before)
    assert result == [1]
    assert {"kept": [1]} in seen
