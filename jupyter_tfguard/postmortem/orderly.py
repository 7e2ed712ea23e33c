"""Whether a recording is that of an orderly end, which makes no report."""

from __future__ import annotations

from ..limits import fullest_limit, used_of
from ..record.contents import RecordingContents
from ..record.identity import ProcessIdentity

_NEAR_FRACTION = 0.8  # of a limit: from here on lack of memory may have ended an idle kernel


def ended_orderly(contents: RecordingContents) -> bool:
    """True if the end was asked for, or came to an idle kernel with nothing that speaks of a crash.

    Clients that run notebooks without a server kill an idle kernel when they are done with it (VS Code, nbclient's
    ``shutdown_kernel="immediate"``); a manager kills one that was asked to end and does not leave in time. ``quit()`` in a
    cell is no orderly end.
    """
    asked = [e.get("how") for e in contents.events if e.get("kind") == "exit_requested"]
    if contents.end is not None:
        return contents.end.get("reason") != "quit"
    if asked:
        return asked[-1] != "quit"
    return not (
        _is_watched(contents)
        or _cell_runs(contents)
        or contents.fault_text
        or _is_near_limit(contents)
    )


def _is_watched(contents: RecordingContents) -> bool:
    """True while the server runs that started the kernel: it would have removed the recording after an orderly end."""
    watcher = contents.header.get("watcher_pid")
    return isinstance(watcher, int) and ProcessIdentity.of(watcher) is not None


def _cell_runs(contents: RecordingContents) -> bool:
    """True also for a recording that says nothing about cells, as a damaged one does."""
    kinds = [e.get("kind") for e in contents.events]
    last = next((k for k in reversed(kinds) if k in ("cell_start", "cell_end")), None)
    return last != "cell_end"


def _is_near_limit(contents: RecordingContents) -> bool:
    """True also where it is not known."""
    values = contents.samples[-1].values if contents.samples else {}
    limit = fullest_limit(values)
    used = None if limit is None else used_of(*limit, values)
    return limit is None or used is None or used > _NEAR_FRACTION * limit.size_bytes
