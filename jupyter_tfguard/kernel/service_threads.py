"""Which threads of a kernel belong to its own machinery: they go on whatever the user's code does."""

from __future__ import annotations

import contextlib
import os
import threading

from ..collectors.procfs import read_small
from ..collectors.standstill import started
from ..errors import SourceUnavailable

# Of every kernel; but the user's code runs in threads of some of their modules too.
_OUR_PACKAGES = ("ipykernel", "IPython")
_USERS_MODULES = ("ipykernel.subshell", "IPython.lib.backgroundjobs")
_OUR_NAMES = ("IOPub", "Control", "Shell channel")
_OUR_PREFIX = "tfguard-"
_PIPE_READER = "_watch_pipe_fd"
# Begun before the first message can come.
_FIRST = "Control"
# What libzmq calls its threads, which carry the messages.
_CARRIERS = b"ZMQbg"


def service_threads() -> set[int]:
    """Native ids of the threads of Python that belong to the machinery, not to the user's code."""
    return {
        t.native_id for t in threading.enumerate() if _is_service(t) and t.native_id is not None
    }


def _is_service(thread: threading.Thread) -> bool:
    module = type(thread).__module__
    if module in _USERS_MODULES:
        return False
    if module.partition(".")[0] in _OUR_PACKAGES:
        return True
    return (
        thread.name in _OUR_NAMES
        or thread.name.startswith(_OUR_PREFIX)
        or _PIPE_READER in thread.name
    )


def message_carriers() -> set[int]:
    """Native ids of libzmq's threads that carry the kernel's messages, ten a second for a widget of ours.

    Those that the user's code began later are not among them. Empty where the system does not tell.
    """
    found = set()
    pid = os.getpid()
    firsts = [t.native_id for t in threading.enumerate() if t.name == _FIRST]
    with contextlib.suppress(OSError, SourceUnavailable):
        last = max((started(pid, first) for first in firsts), default=None)
        for thread in map(int, os.listdir("/proc/self/task")):
            with contextlib.suppress(OSError, SourceUnavailable):  # it has ended
                if read_small(f"/proc/self/task/{thread}/comm").startswith(_CARRIERS) and (
                    last is None or started(pid, thread) <= last
                ):
                    found.add(thread)
    return found
