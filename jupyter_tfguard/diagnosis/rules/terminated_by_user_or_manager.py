"""A person, server, scheduler or platform ended the kernel on purpose: SIGTERM, SIGHUP, SIGXCPU."""

from __future__ import annotations

from ..ending import exit_fact, stack_facts, sure
from ..evidence import Evidence
from ..finding import Advice, Finding
from ..rule import rule
from ..told import told

_SENDERS = {
    "SIGTERM": (
        "asked to end",
        "Batch systems send it at the end of the time limit or to make room, containers when they are stopped, "
        "people with `kill`. earlyoom sends it too, when memory is short.",
    ),
    "SIGHUP": (
        "ended when its terminal or login session was closed",
        "A server started in a terminal goes with it; `nohup`, `tmux` or a service keep it.",
    ),
    "SIGXCPU": (
        "ended because it used up its CPU time limit",
        "`ulimit -t` shows the limit of the shell that started Jupyter; batch systems set it too.",
    ),
}


@rule("terminated_by_user_or_manager", needs=("exit.status",), outranks=("hang",))
def terminated_by_user_or_manager(seen: Evidence) -> Finding | None:
    if (text := told(seen, "terminated_by_user_or_manager")) is not None:
        return text.finding(
            title="Somebody ended the program on purpose: a person, a batch system, a server or a platform.",
            short_title="Ended from outside",
            advice=(Advice("Find out who did, and under which rule.", _SENDERS["SIGTERM"][1]),),
        )
    signal = seen.exit_signal
    if seen.kernel_alive or signal not in _SENDERS:
        return None
    how, senders = _SENDERS[signal]
    return Finding(
        sure(seen),
        title=f"The kernel was {how} ({signal}).",
        short_title=f"Ended from outside, {signal}",
        because=(exit_fact(seen), *stack_facts(seen)),
        advice=(Advice("Find out who sent it.", senders),),
        chips=(signal,),
    )
