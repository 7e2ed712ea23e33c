"""The doctor before made environments of TensorFlow: healthy and sick ones, each with its right verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_tfguard.doctor.check import CheckResult, Status
from tests.rigs.made_case import Case
from tests.rigs.made_cases import CASES, stack_checks
from tests.rigs.made_machine import MadeMachine


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_verdict_is_right(case: Case, standin: Path, tmp_path: Path) -> None:
    machine = MadeMachine(tmp_path)
    case.make(machine, standin)
    results = stack_checks(machine.environment(**(case.given or {})))
    told = "\n".join(f"{r.text} | {r.fix}" for several in results.values() for r in several)
    odd = {
        name: r.status.value
        for name, several in results.items()
        for r in several
        if r.status is not Status.OK
    }
    assert odd == case.verdicts, told
    for words in case.says:
        assert words in told
    assert not set(case.silent) & results.keys(), told
    assert all(is_whole(r) for several in results.values() for r in several)


def is_whole(result: CheckResult) -> bool:
    """No check leaves a gap where a fact is unknown."""
    return not {"None", "()", "  "} & {result.text, *result.text.split(" ")}
