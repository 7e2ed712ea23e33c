"""Any text is read in time that grows with its length only: every pattern together, on the worst text for each."""

from __future__ import annotations

import time

import pytest

from jupyter_tfguard.diagnosis.diagnose import explain
from jupyter_tfguard.diagnosis.pasted import Pasted
from jupyter_tfguard.diagnosis.signs import message_rows
from tests.rigs.examples import text_examples

SIZE = 256 * 1024
# A text four times as long takes at most four times as long; quadratic growth would take sixteen times.
GROWTH_LIMIT = 10.0
# Against an ordinary text of the same length. The slowest takes twice as long.
RATIO_LIMIT = 8.0


def repeated(text: str) -> str:
    return (text * (SIZE // len(text) + 1))[:SIZE]


NEEDLES = [needle for row in message_rows() for needle in row.needles]
WORST = {
    "every needle, line by line": repeated("\n".join(NEEDLES) + "\n"),
    "every needle, in one line": repeated(" ".join(NEEDLES)),
    "every example": repeated("\n".join(case.pasted.text for case in text_examples("fires"))),
    "records that never end": repeated("2025-11-21 02:14:05.000001: E "),
    "absl records glued together": repeated("0.1F0000 00:00:1763690000.1 4711 a.cc:1] x"),
    "epochs": repeated("Epoch 1/2\n"),
    "nearly epochs": repeated("epoch epoch acc loss step 1\n"),
    "epochs with an alarm in each": repeated("Epoch 1/2 loss: 0.1 SIGKILL\n"),
    "one bar drawn again and again": repeated(" 3%|#   | 3/99 [00:01<00:08, 2.00it/s]\n"),
    "guesses": repeated("This could be caused by \n(1) The process \n"),
    "terminal codes": repeated("\x1b[1;31"),
    "spaces": repeated(" "),
    "file names": repeated("a/b.cc:"),
    "OOM lines cut off": repeated("oom-kill:constraint=CONSTRAINT_MEMCG,task=,pid="),
    "kills cut off": repeated("Out of memory: Killed process 1 (a) total-vm:1kB "),
    "allocator statistics": repeated("Limit:   1\nInUse:   1\n"),
}  # fmt: skip


def cost_seconds(text: str) -> float:
    """Processor time of one reading."""
    began = time.thread_time()
    assert explain(Pasted(text, text)).best.title
    return time.thread_time() - began


@pytest.fixture(scope="module")
def ordinary_seconds() -> float:
    """The cost of a text of ordinary lines."""
    return max(cost_seconds(WORST["every example"]) for _ in range(2))


@pytest.mark.parametrize("name", WORST)
def test_any_text_is_read_in_time_that_grows_with_its_length_only(
    name: str, ordinary_seconds: float
) -> None:
    text = WORST[name]
    assert any(_is_linear(text, ordinary_seconds) for _ in range(3))


def _is_linear(text: str, ordinary_seconds: float) -> bool:
    # A short text is read twice: what else the machine does can only make it slower.
    short = min(cost_seconds(text[: SIZE // 4]) for _ in range(2))
    whole = cost_seconds(text)
    return whole < GROWTH_LIMIT * short and whole < RATIO_LIMIT * ordinary_seconds
