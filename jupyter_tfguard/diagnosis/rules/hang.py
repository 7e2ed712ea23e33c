"""The kernel stood still in the middle of a cell, as the watcher saw it, and its user restarted it or shut it down."""

from __future__ import annotations

from ...units import human_seconds
from ..evidence import Evidence
from ..finding import Advice, Confidence, Finding
from ..rule import rule
from ..standstill import Standstill

_STOPPED = Advice(
    "Find out who sent SIGSTOP.",
    "Ctrl-Z in the terminal of the server, a debugger, and batch systems that suspend jobs do. It goes on with SIGCONT.",
)
_DISK = Advice(
    "Look at the disk, or at the network file system that the data lie on.",
    "A process that waits for a disk cannot even be interrupted. The operating system's log names the device or server.",
    "dmesg --ctime | tail -n 50",
)
_CONNECTION = Advice(
    "Give what it waited for a time limit.",
    "The Python line above names the call. A connection whose other end went away says nothing for ever.",
    "requests.get(url, timeout=60)\nsubprocess.run(command, timeout=600)\nqueue.get(timeout=60)",
)
_LOCK = Advice(
    "Look in the stacks for the thread that holds the lock, and for what that one waits for.",
    "Two threads that wait for each other never go on. A wait with a time limit ends with an error that names its line.",
    "lock.acquire(timeout=60)\nqueue.get(timeout=60)\nthread.join(timeout=60)",
)
_INPUT_PIPELINE = Advice(
    "Try the data without the model: does the input deliver?",
    "In a fit that takes no step the main thread mostly waits for the next batch: a generator, a worker process or a "
    "tf.data stage that does not come back.",
    "for batch in dataset.take(3): print('batch')",
)


@rule("hang", needs=("kernel.recording",), outranks=("unknown",))
def hang(seen: Evidence) -> Finding | None:
    stuck = seen.hang
    if stuck is None or seen.kernel_alive:
        return None
    lasted = human_seconds(stuck.seconds)
    end = "you ended it" if seen.asked_to_end else "it ended"
    return Finding(
        Confidence.CERTAIN if seen.asked_to_end else Confidence.LIKELY,
        title=f"The kernel stood still: {lasted} without progress, until {end}.",
        short_title="Stood still",
        because=stuck.facts,
        advice=_advice(stuck),
        chips=(f"{lasted} without progress",),
    )


def _advice(stuck: Standstill) -> tuple[Advice, ...]:
    by_wait = {"stopped": _STOPPED, "disk": _DISK, "other": _CONNECTION}
    advice = by_wait.get(stuck.wait, _LOCK)
    if stuck.in_fit and stuck.wait != "stopped":
        return (_INPUT_PIPELINE, advice)
    return (advice,)
