"""Progress bars in a log: where a bar ends and another message begins, and whether a bar was only drawn again.

A bar has no line end, so the next message follows it on the same line: ``loss: 1.44Killed``, ``2.70it/s]Aborted``.
"""

from __future__ import annotations

import itertools
import re

#  38%|###   | 1204/3169 [04:51<07:55, 4.02it/s]: the whole bar
_CLOSED = re.compile(r"\d%\|[^|]{0,300}\|[^\[\]]{0,120}\[[^\]]{0,300}\]")
# 877/1309 ━━━━ 2:11 304ms/step - loss: 1.4471      [====>....]      2.96it/s v_num: 3
_BAR = re.compile(
    r"\d%\||[━█]|\[[=>.#-]{3,200}|\d(?:ms|us|s)/(?:step|epoch|it|batch|sample)|\d ?(?:it/s|s/it)|\bETA\b|\b[Ll]oss\b ?[:=] ?-?\d"
)
# How the message begins that follows a bar.
_MESSAGE = re.compile(
    r"(?:[^\s\]\"']{1,80}: line \d{1,6}: {1,8}\d{1,10} {1,4})?(?<![\"'(_A-Z])(?:(?<=it/s )|(?<=s/it )|(?<=/step )|(?<![A-Za-z] ))(?:Killed|Terminated|Aborted|Hangup|Segmentation fault|"
    r"Bus error|Illegal instruction|Floating point exception)\b"
    r"|Fatal Python error: |terminate called |libc\+\+abi|Traceback \(most recent|OMP: Error|double free|(?:free|malloc|realloc)\(\): |"
    r"munmap_chunk|corrupted (?:size|double)|slurmstepd: |srun: |=>> PBS|LLVM ERROR|\*\*\* |(?:zsh|bash|fish|sh): |\^C|CUDA (?:error|out of)|"
    r"(?:(?<=it/s)|(?<=s/it)|(?<=/step)|(?<=\d[smh])|(?<![A-Za-z_./])(?![smh][A-Z]))[A-Za-z_][\w.]{0,80}(?:Error|Exception|Interrupt)\b|Check failed|Out of memory: Kill|Memory cgroup out|Killed process|"
    r"[\w./+-]{1,200}\.(?:cu|cuh|cc|cpp|hip|h):\d{1,6}: |[Kk]ernel (?:[Dd]ied|[Rr]estarting)|Dead ?Kernel|Your (?:session|notebook) |"
    r"thread '|python\S{0,40}: |Connection to |\[ *\d{2,9}\.\d{3,6}\] |(?:\[rank\d{1,5}\]:)?\[[EF]\d{0,4} |ERROR:? |FATAL:? "
)
# Each match of it contains one of these. Most bars do not, and the pattern takes 60 us for a bar.
_OF_MESSAGES = (
    "Killed", "Terminated", "Aborted", "Hangup", "fault", "Bus error", "Illegal", "exception", "Fatal Python", "terminate called",
    "libc++abi", "Traceback", "double free", "free()", "alloc()", "munmap_chunk", "corrupted", "slurmstepd", "srun", "PBS", "***", "sh: ",
    "^C", "CUDA ", "Error", "Exception", "Interrupt", "Check failed", "Out of memory", "Memory cgroup", ".cu", ".cc:", ".cpp:", ".hip:",
    ".h:", "ernel", "Your ", "thread '", "python", "Connection to", "] ", "[rank", "[E", "[F", "ERROR", "FATAL",
)  # fmt: skip
# Any other output without a line end, and a message after its last number, bracket or dots: 12.1Killed   ....MemoryError
_GLUED = re.compile(
    r"(?:(?<=[\d\])}%|…])|(?<=\.\.)|(?<=\d[smh]))(?<![A-Za-z]\d)(?<![A-Za-z]\d\d)[ \t]{0,3}(?=(?:Killed|Terminated|Aborted|Segmentation fault|Bus error|"
    r"Illegal instruction)(?: \(core dumped\))?\s{0,9}$|Traceback \(most recent|(?:[A-Za-z_][\w.]{0,60}\.)?[A-Z]\w{0,60}(?:Error|Exception|Interrupt)"
    r"(?::|\s{0,9}$)|Fatal Python error|terminate called|Kernel Restarting)"
)
_PAIR = re.compile(r"\b(\d{1,9})/(\d{1,9}|\?)")


def cut_at_bar(text: str) -> list[str]:
    """The line in pieces: a progress bar, and the message that follows it."""
    if not _may_have_bar(text) or (bar := _BAR.search(text)) is None:
        glued = _GLUED.search(text) if _may_be_glued(text) else None
        return [text] if glued is None else [text[: glued.end()], text[glued.end() :]]
    cuts = {found.end() for found in _CLOSED.finditer(text)}
    if (message := _message(text, bar.end())) is not None:
        cuts.add(message)
    places = [0, *sorted(cuts), len(text)]
    return [text[a:b] for a, b in itertools.pairwise(places) if b > a]


def _message(text: str, begin: int) -> int | None:
    """Where the message begins that follows a bar; None without one."""
    if not any(part in text for part in _OF_MESSAGES):
        return None
    found = _MESSAGE.search(text, begin)
    return None if found is None else found.start()


def may_be_cut(text: str) -> bool:
    """False if :func:`cut_at_bar` certainly leaves the line in one piece."""
    return _may_have_bar(text) or _may_be_glued(text)


def _may_have_bar(text: str) -> bool:
    """Much faster than the pattern: most lines have no bar."""
    return (
        "oss" in text
        or "%|" in text
        or "━" in text
        or "█" in text
        or "it/s" in text
        or "s/it" in text
        or "/step" in text
        or "/epoch" in text
        or "/batch" in text
        or "/sample" in text
        or "ETA" in text
        or "[=" in text
        or "[>" in text
        or "[." in text
        or "[-" in text
        or "[#" in text
    )


def _may_be_glued(text: str) -> bool:
    """Much faster than the pattern: most lines have no such word."""
    return (
        "Killed" in text
        or "Terminated" in text
        or "Aborted" in text
        or "fault" in text
        or "Error" in text
        or "Exception" in text
        or "Interrupt" in text
        or "Traceback" in text
        or "error" in text
        or "Illegal" in text
        or "terminate" in text
        or "Restarting" in text
    )


def bar_place(text: str) -> tuple[str, tuple[tuple[str, str], ...]] | None:
    """What an unfinished bar shows, without its times; None for other lines and for finished bars.

    A bar that an exception ends is drawn once more at the same place. That is no progress.
    """
    pairs = tuple((found[1], found[2]) for found in _PAIR.finditer(text[:300]))
    if not any(done != total for done, total in pairs):
        return None
    return " ".join(text[: text.find("/")].split()), pairs
