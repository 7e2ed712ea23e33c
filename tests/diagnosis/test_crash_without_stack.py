"""A segmentation fault that left no stack although faulthandler was on: perhaps a thread used up its stack."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_tfguard.diagnosis.diagnose import diagnose
from jupyter_tfguard.diagnosis.finding import Confidence
from tests.rigs.examples import bundle_of

pytestmark = pytest.mark.quick

DIED = 1_790_000_000.0
IMPORT_LINE = "I tensorflow/core/util/port.cc:153] oneDNN custom operations are on."


def crashed(**kernel: Any) -> dict[str, Any]:
    """A kernel that ended by SIGSEGV and left no fault text; faulthandler was on."""
    bundle = bundle_of("segfault_native/fires-with-python-stack.json")
    bundle["kernel"]["header"]["guard"] = {"faulthandler": "ours"}
    bundle["kernel"] |= {"fault_text": []} | kernel
    return bundle


def test_without_a_stack_it_may_be_a_stack_overflow_in_a_thread_and_is_never_certain() -> None:
    found = diagnose(crashed()).findings
    assert [f.cause for f in found] == ["stack_overflow", "segfault_native"]
    assert [f.confidence for f in found] == [Confidence.POSSIBLE, Confidence.LIKELY]
    assert "a thread other than the main one" in found[0].title
    assert any("wrote no stack" in fact.text for fact in found[0].because)
    advice = " ".join(f"{a.title} {a.text} {a.code}" for a in found[0].advice)
    assert "threading.stack_size" in advice
    assert "repeat in the Python stack" not in advice


@pytest.mark.parametrize("state", ["user", "off", None])
def test_without_our_faulthandler_a_missing_stack_says_nothing(state: str | None) -> None:
    bundle = crashed()
    bundle["kernel"]["header"]["guard"] = {"faulthandler": state}
    assert diagnose(bundle).best.cause == "segfault_native"


@pytest.mark.parametrize("server", [{"died": DIED}, {"exit": {"signal": "SIGBUS", "code": None}}])
def test_only_a_seen_segmentation_fault_counts(server: dict[str, Any]) -> None:
    bundle = crashed()
    bundle["server"] |= {"exit": None} | server
    assert "stack_overflow" not in [f.cause for f in diagnose(bundle).findings]


def test_a_crash_with_its_stack_is_as_certain_as_before() -> None:
    lines = ["Fatal Python error: Segmentation fault", "", "Thread 0x1 (most recent call first):"]
    best = diagnose(crashed(fault_text=lines)).best
    assert (best.cause, best.confidence) == ("segfault_native", Confidence.CERTAIN)


@pytest.mark.parametrize(("ago", "shown"), [(30.0, False), (0.2, True)])
def test_a_line_of_an_import_long_before_is_no_evidence(ago: float, shown: bool) -> None:
    bundle = crashed(stderr_tail=[IMPORT_LINE], stderr_time=DIED - ago)
    bundle["kernel"]["events"][0]["t"] = DIED - 60
    texts = [fact.text for found in diagnose(bundle).findings for fact in found.because]
    assert any("oneDNN" in text for text in texts) is shown


def of_import(*files: str) -> dict[str, Any]:
    """A crash while a native module was loaded; `files`: the Python files that import, innermost first."""
    frozen = '  File "<frozen importlib._bootstrap>", line 241 in _call_with_frames_removed'
    external = '  File "<frozen importlib._bootstrap_external>", line 1176 in create_module'
    frames = [
        line
        for file in files
        for line in (frozen, external, f'  File "{file}", line 3 in <module>')
    ]
    head = [
        "Fatal Python error: Segmentation fault",
        "",
        "Current thread 0x1 (most recent call first):",
    ]
    shell = f'  File "{SITE}/IPython/core/interactiveshell.py", line 3549 in run_code'
    return crashed(fault_text=[*head, *frames, shell])


CELL = "/tmp/ipykernel_4711/2093841.py"
SITE = "/opt/env/lib/python3.11/site-packages"


def test_an_import_that_crashes_names_the_package() -> None:
    best = diagnose(
        of_import(f"{SITE}/fastops/_native/__init__.py", f"{SITE}/fastops/__init__.py", CELL)
    ).best
    texts = " ".join(
        [*(f.text for f in best.because), *(f"{a.title} {a.text}" for a in best.advice)]
    )
    assert "frozen importlib" not in texts
    assert f'File "{SITE}/fastops/_native/__init__.py", line 3' in texts
    assert (
        best.title
        == "Native code of fastops accessed invalid memory while it was imported, and the kernel crashed (segmentation fault)."
    )
    assert "Install fastops again" in best.advice[0].title


def test_an_import_without_a_package_names_the_line_of_the_cell() -> None:
    best = diagnose(of_import(CELL)).best
    texts = " ".join(
        [*(f.text for f in best.because), *(f"{a.title} {a.text}" for a in best.advice)]
    )
    assert "frozen importlib" not in texts
    assert "line 3 of the cell" in texts
    assert best.title.startswith("Native code accessed invalid memory")
