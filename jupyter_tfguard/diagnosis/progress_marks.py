"""Lines that show that a program went on: whatever alarming stood before them was survived."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .log_lines import LogLine

# Epoch 3/10      938/938 [=====>...] - 413s 436ms/step      64%|####   | 3.1it/s      val_loss: 0.39      step 340: ...
_PROGRESS = re.compile(
    r"(?:\bepoch:? ?\[?\d{1,7}\b"
    r"|\b\d{1,9}/(?:\d{1,9}|unknown) ?\[[=>.#-]"
    r"|\b\d{1,3}%\|"
    r"|\b\d+(?:\.\d+)?(?:s|ms|us)/(?:step|sample|epoch|it)\b|\b\d+(?:\.\d+)?(?:it/s|s/it)\b"
    r"|\b(?:loss|accuracy|acc|mae|mse|auc|f1|precision|recall|reward|return|score)\b\s?[:=]\s?\[?-?\d"
    r"|\b(?:global )?step:? ?\d{1,12}\b)",
    re.IGNORECASE,
)
_DONE = re.compile(
    r"\b(?:sav(?:ed|ing) (?:the |trained |best |final )*(?:model|checkpoint|weights|predictions|results?|file|output)"
    r"|training (?:complete|completed|finished|done)|completed successfully|finished|done[.!]?$"
    r"|elapsed|tests? passed|\d{1,6} passed\b|predict(?:ion|ed)s?\b\s?[:=])",
    re.IGNORECASE,
)
# A traceback's lines, a shell's prompt, remarks about a failure: none of them shows that the program went on.
_NOT_LIFE = re.compile(
    r"(?:Traceback|^\s|^\S{0,80}(?:Error|Exception|Warning|Interrupt|Exit)\b"
    r"|\b(?:errors?|failed|failure|fatal|abort|aborted|killed|died|dead|crash|crashed|restart|restarting|kernel|core dumped|"
    r"signal|exit code|exited|cannot|could not|unable|segmentation|terminated|warning|exception)\b"
    r"|^[@#*^~=_+|-]|[$%>#] )",
    re.IGNORECASE,
)


# 5/10 [====>....] - loss: 0.2Segmentation fault (core dumped): a progress bar has no line end, so the end is glued to it.
_LAST_WORDS = re.compile(
    r"Fatal Python error: |Segmentation fault|Bus error|Illegal instruction|Aborted\b|Killed\b|terminate called |OMP: Error #"
    r"|Traceback \(most recent call last\)|[Kk]ernel\b.{0,60}\b(?:died|dead|crashed|[Rr]estarting)|[Dd]ead ?[Kk]ernel|double free or corruption|(?:free|malloc|realloc|munmap_chunk)\(\): |slurmstepd: error"
)


def definite(line: LogLine) -> bool:
    """True for a step, an epoch, a metric or a saved result, with no end glued to it."""
    text = line.message[:300]
    if line.severity or text.startswith(("File ", "Traceback")) or _LAST_WORDS.search(line.text):
        return False
    return _PROGRESS.search(text) is not None or (
        _DONE.search(text) is not None and _NOT_LIFE.search(text) is None
    )


def ordinary(line: LogLine) -> bool:
    """True for any output of the program's own: weaker than :func:`definite`, enough against a mere warning."""
    text = line.text[:300]
    if line.severity or len(line.message) <= 3 or line.message.endswith("?"):
        return False
    return _NOT_LIFE.search(text) is None


def last_definite(lines: Sequence[LogLine]) -> int:
    """Index of the last line that shows progress; -1 for none."""
    return next((i for i in reversed(range(len(lines))) if definite(lines[i])), -1)
