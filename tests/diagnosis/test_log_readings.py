"""A log is read as well with marks around its lines, with its lines wrapped, or as one escaped text."""

from __future__ import annotations

import html
import json
import textwrap
from collections.abc import Callable

import pytest

from jupyter_tfguard.diagnosis.diagnose import explain
from jupyter_tfguard.diagnosis.finding import Confidence
from jupyter_tfguard.diagnosis.pasted import Pasted
from jupyter_tfguard.diagnosis.readings import readings

pytestmark = pytest.mark.quick

TEXTS = {
    "cpu_alloc_failure": 'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    table = load(1)\nMemoryError',
    "sigkill_unattributed": "Epoch 3/40\nloading shard 7\nKilled",
    "terminated_by_user_or_manager": 'Traceback (most recent call last):\n  File "train.py", line 31, in fit\n    step()\nKeyboardInterrupt',
    "gpu_oom": "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[96,512,33,33] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc\ndone with errors",
    "bus_error_shm": "building the loader with 12 workers\nRuntimeError: DataLoader worker (pid 612) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.",
}


def each(before: str) -> Callable[[str], str]:
    return lambda text: "\n".join(f"{before}{line}" for line in text.split("\n"))


AROUND: dict[str, Callable[[str], str]] = {
    "a list": each("- "),
    "bullets": each("• "),
    "a numbered list": lambda text: "\n".join(
        f"{n}. {line}" for n, line in enumerate(text.split("\n"), 1)
    ),
    "pytest": each("E       "),
    "levels": each("ERROR:root:"),
    "loguru": each("2026-02-03 10:11:12.123 | ERROR    | __main__:main:33 - "),
    "hosts": each("worker-0: "),
    "a journal": each("Feb 03 10:11:12 lab run.sh[811]: "),
    "a cloud": each("2026-02-03T10:11:12.123000+00:00 train/algo-1-ab12c "),
    "a box": lambda text: "\n".join(f"│ {line:<200} │" for line in text.split("\n")),
    "bold": lambda text: "\n".join(f"**{line}**" for line in text.split("\n")),
    "code": lambda text: "\n".join(f"`{line}`" for line in text.split("\n")),
    "no-break spaces": lambda text: text.replace(" ", "\u00a0"),
    "invisible characters": lambda text: text.replace("\n", "\u200b\n"),
    "a web page": lambda text: f"<pre>{html.escape(text)}</pre>".replace("\n", "<br>"),
    "coloured spans": lambda text: "\n".join(
        f'<span style="color:#b00">{html.escape(line)}</span>' for line in text.split("\n")
    ),
    "a field of JSON": lambda text: json.dumps({"status": "FAILED", "error": f"{text}\n"}),
    "a representation": lambda text: f"task failed: {text!r}",
    "a mail": lambda text: "\n".join(textwrap.fill(line, 72) for line in text.split("\n")),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("cause", TEXTS)
def test_the_cause_is_the_same_with_something_around(cause: str, around: str) -> None:
    assert explain(Pasted(AROUND[around](TEXTS[cause]))).best.cause == cause


def test_smart_quotes_are_quotes() -> None:
    text = "The TensorFlow library was compiled to use AVX2 instructions, but these aren\u2019t available on your machine."
    assert explain(Pasted(text)).best.cause == "illegal_instruction"


def test_a_fact_names_the_line_of_the_text_as_it_was_pasted() -> None:
    text = "we start\nRuntimeError: CUDA error: an illegal memory\naccess was encountered\nbye"
    best = explain(Pasted(text)).best
    assert best.cause == "cuda_illegal_access"
    assert best.because[0].line == 2


@pytest.mark.parametrize(
    "text",
    [
        # A folder of Windows is no end of a line.
        "loading C:\\new\\networks\\nine.h5",
        # A list in which nothing failed
        "- the run was killed by nobody\n- the memory was fine",
        "1. load\n2. train\n3. save",
        # Two sentences are no wrapped line.
        "it was still running when I left.\nkilled the time with a book",
    ],
)
def test_another_reading_invents_no_end(text: str) -> None:
    assert explain(Pasted(text)).best.cause == "unknown"


def test_the_stronger_reading_counts() -> None:
    """Killed is on one line; what ran out before is seen when the lines are joined."""
    text = "torch.OutOfMemoryError: CUDA out\nof memory. Tried to allocate 2.25 GiB.\n/var/spool/job: line 7: 512 Killed"
    assert explain(Pasted(text)).best.cause == "gpu_oom"


def test_a_long_text_is_read_as_it_is() -> None:
    assert not list(readings("- a\n" * 401))


def test_alarming_lines_alone_leave_the_end_open() -> None:
    text = "WARNING:absl:No GPU/TPU found, falling back to CPU."
    best = explain(Pasted(text)).best
    assert (best.cause, best.confidence) == ("no_crash", Confidence.POSSIBLE)
    assert any("end of the program" in fact.text for fact in best.because)
