"""Every rule fires on its examples, stays quiet on near misses, and says how it knows."""

from __future__ import annotations

import copy
import re

import pytest

from jupyter_tfguard.diagnosis.catalog import toml_file
from jupyter_tfguard.diagnosis.diagnose import diagnose
from jupyter_tfguard.diagnosis.finding import Confidence
from jupyter_tfguard.diagnosis.python_stacks import endless
from jupyter_tfguard.diagnosis.rule import all_rules
from jupyter_tfguard.report import text
from jupyter_tfguard.report.wire import to_report
from tests.rigs.examples import EXAMPLES, Example, examples

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("example", examples("fires"), ids=str)
def test_the_best_finding_is_the_cause(example: Example) -> None:
    """What stands beside the cause of the end is found too, behind it, with evidence and advice of its own."""
    found = diagnose(example.bundle).findings
    (ours,) = [finding for finding in found if finding.cause == example.cause]
    assert ours is found[0] or ours.beside
    assert ours.because
    assert ours.advice or example.cause == "unknown"
    assert ours.title.endswith(".")


@pytest.mark.parametrize("example", examples("quiet"), ids=str)
def test_a_near_miss_does_not_fire(example: Example) -> None:
    assert example.cause not in [finding.cause for finding in diagnose(example.bundle).findings]


@pytest.mark.parametrize("example", examples("fires") + examples("quiet"), ids=str)
def test_files_alone_are_never_certain(example: Example) -> None:
    bundle = example.bundle
    bundle["server"] = None
    found = diagnose(bundle).findings
    assert Confidence.CERTAIN not in [finding.confidence for finding in found]


def test_every_rule_has_examples_of_both_kinds() -> None:
    for rule in all_rules():
        names = [path.name for path in (EXAMPLES / rule.cause).iterdir()]
        assert any(name.startswith("fires-") for name in names), rule.cause
        assert any(name.startswith("quiet-") for name in names), rule.cause


def test_every_rule_is_in_the_table_or_named_as_its_file() -> None:
    in_table = {
        row["cause"] for row in toml_file("jupyter_tfguard.diagnosis.rules", "table")["rule"]
    }
    for rule in all_rules():
        name = rule.judge.__module__.rsplit(".", 1)[-1]
        assert name == ("table" if rule.cause in in_table else rule.cause)


def test_a_cause_that_is_outranked_exists() -> None:
    causes = {rule.cause for rule in all_rules()}
    for rule in all_rules():
        assert set(rule.outranks) <= causes


def test_the_memory_limit_names_limit_batch_and_next_step() -> None:
    bundle = Example("cgroup_oom", "", EXAMPLES / "cgroup_oom/fires-v2-own-limit.json").bundle
    best = diagnose(bundle).best
    assert best.confidence is Confidence.CERTAIN
    assert "4.00 GiB" in best.title
    assert "2048" in best.advice[0].text
    assert "batch_size=512" in (best.advice[0].code or "")
    assert "estimate" in best.advice[0].title


def test_a_plain_kill_never_speaks_of_out_of_memory_as_the_cause() -> None:
    path = EXAMPLES / "sigkill_unattributed/fires-plain-kill-9.json"
    best = diagnose(Example("", "", path).bundle).best
    assert "memory" not in best.title.lower()
    everything = text.render(
        to_report(Example("", "", path).bundle, diagnose(Example("", "", path).bundle))
    )
    assert not re.search(r"out.of.memory|\bOOM\b", everything, re.IGNORECASE)
    assert best.confidence is Confidence.CERTAIN


@pytest.mark.parametrize(
    ("signal", "fault", "said"),
    [
        ("SIGFPE", "Floating-point exception", "an integer division by zero in native code"),
        ("SIGABRT", "Aborted", "abort() in native code, which printed no explanation"),
    ],
)
def test_a_signal_of_native_code_is_explained_with_the_python_line(
    signal: str, fault: str, said: str
) -> None:
    path = EXAMPLES / "unknown/fires-abort-without-words.json"
    bundle = Example("unknown", "", path).bundle
    bundle["server"]["exit"]["signal"] = signal
    bundle["kernel"]["fault_text"] = [
        f"Fatal Python error: {fault}",
        "",
        "Current thread 0x00007f3a (most recent call first):",
        '  File "/tmp/ipykernel_4711/1234567890.py", line 3 in <module>',
    ]
    best = diagnose(bundle).best
    assert best.title == (
        f"The kernel was ended by {signal}, the signal of {said}; Python was at line 3 of the cell."
    )
    assert signal in best.short_title
    assert "native code" in best.short_title
    assert (best.cause, best.confidence) == ("unknown", Confidence.POSSIBLE)
    assert "It was line 3 of the cell." in [step.text for step in best.advice]
    assert "coredumpctl info 4711" in " ".join(step.code or "" for step in best.advice)


def test_what_could_not_be_looked_at_is_said() -> None:
    path = EXAMPLES / "sigkill_unattributed/fires-without-any-counter.json"
    diagnosis = diagnose(Example("", "", path).bundle)
    assert diagnosis.best.confidence is Confidence.LIKELY
    unchecked = " ".join(diagnosis.not_checked)
    assert "Kill counters" in unchecked
    assert "System log" in unchecked
    assert "guard was not loaded" in unchecked


def test_a_kernel_killed_while_it_started_is_not_reported_to_lack_the_guard() -> None:
    path = EXAMPLES / "kernel_start_failed/quiet-near-killed-before-it-answered.json"
    unchecked = " ".join(diagnose(Example("", "", path).bundle).not_checked)
    assert "the kernel ended during its start, before the guard was loaded." in unchecked
    assert "not loaded in this kernel" not in unchecked


def test_a_starter_that_ended_because_its_kernel_died_is_no_cause() -> None:
    [example] = [e for e in examples("fires") if str(e).endswith("fires-parent-gone")]
    bundle = copy.deepcopy(example.bundle)
    assert "after the program that had started it" in diagnose(bundle).best.title
    del bundle["kernel"]["header"]["starter_gone"]  # papermill ends once its kernel is gone
    assert "started" not in diagnose(bundle).best.title


@pytest.mark.parametrize(("code", "cause"), [(1, "unknown"), (3, "sys_exit")])
def test_the_exit_code_of_ipykernel_after_the_end_of_its_starter_blames_no_code(
    code: int, cause: str
) -> None:
    [example] = [e for e in examples("fires") if str(e).endswith("fires-parent-gone")]
    bundle = copy.deepcopy(example.bundle)
    bundle["kernel"]["exit"] = {"code": code, "signal": None}
    assert diagnose(bundle).best.cause == cause


def test_memory_that_the_kernel_saw_itself_is_no_little_memory() -> None:
    [example] = [e for e in examples("fires") if str(e).endswith("fires-unwatched-by-counters")]
    assert diagnose(example.bundle).best.against == ()


def test_the_lines_of_a_cell_stay_apart() -> None:
    [example] = [e for e in examples("fires") if str(e).endswith("fires-parent-gone")]
    bundle = copy.deepcopy(example.bundle)
    bundle["kernel"]["events"][0]["head"] = "import os\n\nos.kill(1, 9)  # or\n    more"
    row = to_report(bundle, diagnose(bundle))["activity"][0]
    assert row["value"] == "[12] import os ⏎ os.kill(1, 9) # or ⏎ more"


def test_an_end_without_a_trace_near_the_limit_has_memory_advice() -> None:
    [example] = [e for e in examples("fires") if str(e).endswith("fires-unwatched-by-counters")]
    bundle = copy.deepcopy(example.bundle)
    counters = bundle["counters"]
    counters["after"]["groups"], counters["after"]["host_oom_kill_count"] = (
        [],
        0,
    )  # the group is gone
    best = diagnose(bundle).best
    assert (best.cause, best.confidence) == ("unknown", Confidence.POSSIBLE)
    assert "near its memory limit" in best.title
    assert "3.93 GiB of 4.00 GiB (container limit) was in use" in " ".join(
        fact.text for fact in best.because
    )
    assert "batch" in best.advice[0].title


def test_functions_that_call_each_other_without_end_are_endless_too() -> None:
    cycle = [f'  File "/tmp/a.py", line {n} in {name}' for n, name in ((5, "odd"), (9, "even"))]
    assert endless([*(cycle * 50), "  ..."])
    assert not endless(cycle * 49)  # the whole stack
    assert not endless([])
