"""The same notebook crashes repeatedly with the same cause: a restart does not help.

Requested ends are not a loop, nor is a SIGKILL of unknown sender, because a user may send it several times.
"""

from __future__ import annotations

import itertools

from ...units import human_seconds
from ..evidence import Evidence
from ..finding import Advice, Confidence, Fact, Finding, Source
from ..rule import rule

_FEWEST = 3
_WITHIN_SECONDS = 3600.0
_NO_LOOP = (
    "crash_loop",
    "culled",
    "hang",
    "no_crash",
    "sigkill_unattributed",
    "sys_exit",
    "terminated_by_user_or_manager",
    "unknown",
)  # fmt: skip


@rule("crash_loop", needs=("earlier_deaths",), last=True)
def crash_loop(seen: Evidence) -> Finding | None:
    """The same notebook crashed with the same cause three times or more within an hour. A restart does not help.

    Earlier reports of the same notebook have the same cause, with no other cause in between. Ends on purpose, a SIGKILL of
    unknown sender and unknown causes do not count. The finding appears beside the cause of the last crash.
    """
    if seen.kernel_alive or seen.cause is None or seen.cause in _NO_LOOP:
        return None
    same = itertools.takewhile(lambda crash: crash[1] == seen.cause, seen.earlier_deaths)
    row = [when for when, _ in same if seen.died - when < _WITHIN_SECONDS]
    count = len(row) + 1
    if count < _FEWEST:
        return None
    span = human_seconds(max(1.0, seen.died - row[-1]))
    whose = seen.identity.get("notebook_path") or "this kernel"
    return Finding(
        Confidence.LIKELY,  # earlier reports are in files that the user can change
        title=f"The same crash for the {_ordinal(count)} time in {span}. A restart will not help; the cause must be fixed.",
        short_title=f"{_ordinal(count).capitalize()} crash of this kind in {span}",
        because=(
            Fact(
                Source.SERVER,
                f"{count} crashes of {whose} in {span}, all with the cause {seen.cause}",
            ),
        ),
        advice=(
            Advice(
                "Fix the cause before the next run.",
                "See the first advice of this report. Without a change, the notebook will crash again.",
            ),
        ),
        chips=(f"{_ordinal(count)} time",),
        beside=True,
    )


def _ordinal(number: int) -> str:
    tens = number % 100 in (11, 12, 13)
    return f"{number}{'th' if tens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
