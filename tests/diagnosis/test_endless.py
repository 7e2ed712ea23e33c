"""An endless recursion is told from a crash that happened to be deep."""

from __future__ import annotations

import pytest

from jupyter_tfguard.diagnosis.python_stacks import endless

pytestmark = pytest.mark.quick


def frame(line: int, name: str) -> str:
    return f'  File "/tmp/ipykernel_7/12.py", line {line} in {name}'


CUT = "  ..."


def test_so_are_a_few_that_call_each_other_and_the_first_line_of_one() -> None:
    cycle = [frame(5, "odd"), frame(9, "even"), frame(12, "check")]
    assert endless([frame(8, "even"), *(cycle * 34)[:99], CUT])


def test_a_stack_that_was_not_cut_is_not() -> None:
    assert not endless([frame(5, "deeper")] * 99)


def test_a_deep_stack_of_many_functions_is_not() -> None:
    assert not endless([*[frame(n, f"layer_{n}") for n in range(100)], CUT])


def test_no_stack_is_not() -> None:
    assert not endless([])
