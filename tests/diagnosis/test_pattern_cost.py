"""Any text is read in time that grows with its length only: every pattern together, on the worst text for each."""

from __future__ import annotations

import time

import pytest

from jupyter_tfguard.diagnosis.diagnose import explain
from jupyter_tfguard.diagnosis.pasted import Pasted
from jupyter_tfguard.diagnosis.signs import message_rows
from tests.rigs.examples import text_examples

MIB = 1024 * 1024
# Generous on a slow machine that does something else besides; quadratic growth would be a thousand times more.
LIMIT_SECONDS = 2.5


def repeated(text: str) -> str:
    return (text * (MIB // len(text) + 1))[:MIB]


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


@pytest.mark.parametrize("name", WORST)
def test_a_mebibyte_of_anything_is_read_at_once(name: str) -> None:
    text = WORST[name]
    began = time.process_time()
    assert explain(Pasted(text, text)).best.title
    assert time.process_time() - began < LIMIT_SECONDS
