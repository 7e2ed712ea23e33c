"""``%tfguard``: the guard's state, reports and checks, from a cell."""

from __future__ import annotations

import functools
import re
import time
import traceback
from collections.abc import Callable
from typing import Any

from ..errors import TfGuardError
from ..installed import PACKAGE, changed_since
from ..places import bundles_folder
from ..shield import is_users, note_problem
from .cells.cells import cells_text
from .current import current

_REPORT_SECONDS = 10.0

NAME = "tfguard"
_LOADED = time.time()
_UPGRADED = "jupyter-tfguard was upgraded or removed on disk after this kernel started."
_TEXT_LIMIT = 300
_OFF = "tfguard is not running in this kernel."
_PLANNED = re.compile(r"(estimate|batch)\s+(\S.*)")
_CRASH = re.compile(r"why\s+--crash[\s=]+(\d{1,9})")


def tfguard(line: str) -> None:
    """Show the memory of this kernel, estimate that of a fit, explain the last crash, or check the installation.

    ``%tfguard [status]``: memory in use and its limit, training, last crash.
    ``%tfguard panel``: the same as a live panel.
    ``%tfguard cells``: memory by cell.
    ``%tfguard estimate model.fit(...)``: whether this fit will fit into memory; it is not run.
    ``%tfguard batch model.fit(...)``: the largest batch size that fits, by trials in other processes.
    ``%tfguard why [--crash N]``: the last stop in this kernel or the report of the last crash, or of the N-th latest.
    ``%tfguard pause``, ``%tfguard resume``: switch the stop of cells that fill the memory off and on.
    ``%tfguard doctor``: checks of the installation, TensorFlow and the GPU.
    """
    if (crash := _CRASH.fullmatch(line.strip())) is not None:
        _answer("why", functools.partial(_why, int(crash[1])))
    elif (planned := _PLANNED.fullmatch(line.strip())) is not None:
        _answer(planned[1], functools.partial(actions()[planned[1]], planned[2]))
    elif (action := actions().get(line.strip() or "status")) is not None:
        _answer(line.strip() or "status", action)
    else:
        from IPython.core.error import UsageError

        raise UsageError(
            f"unknown command: %tfguard {line.strip()}. Choose from {', '.join(actions())}. "
            "For an earlier crash, use why --crash N (the N-th latest)."
        )


def _answer(name: str, action: Callable[[], None]) -> None:
    """Run an action. Its parts are imported now, and after an upgrade they may not fit those that are loaded."""
    try:
        action()
    except Exception as bad:
        upgraded = changed_since(_LOADED)
        if is_users(bad) or (name in ("estimate", "batch") and not (upgraded and _is_ours(bad))):
            raise
        note_problem(f"%tfguard {name}", bad)
        if upgraded:
            print(f"{_UPGRADED} Restart the kernel to use %tfguard {name}.")
        else:
            text = " ".join(str(bad).split())[:_TEXT_LIMIT]
            print(f"%tfguard {name} failed: {type(bad).__name__}: {text}")
    else:
        if changed_since(_LOADED):
            print(f"{_UPGRADED} Restart the kernel to use the new version.")


def _is_ours(bad: Exception) -> bool:
    """True if the innermost line is in this package: not in the user's arguments of a fit, or in a library."""
    frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(bad.__traceback__)]
    return bool(frames) and frames[-1].startswith(str(PACKAGE))


def actions() -> dict[str, Callable[..., Any]]:
    """What can follow ``%tfguard``. The docstring of each says what it shows; the documentation lists them."""
    return {
        "status": _status,
        "panel": _panel,
        "cells": _cells,
        "pause": _pause,
        "resume": _resume,
        "estimate": _estimate,
        "batch": _batch,
        "why": _why,
        "doctor": _doctor,
    }


def _status() -> None:
    """Show the state of the guard and the memory of this kernel against its limit. This is the default."""
    from .status import status_text

    session = current()
    print(_OFF if session is None else status_text(session))


def _panel() -> None:
    """Show the panel in the output of the cell. It moves while cells run."""
    from .panel.widget import show

    session = current()
    if session is None:
        print(_OFF)
    else:
        show(session)


def _cells() -> None:
    """Show what each cell did to memory: its peak, and what stayed behind."""
    session = current()
    print(_OFF if session is None else cells_text(tuple(session.cells.ended)))


def _pause() -> None:
    """Stop no cell of this notebook for lack of memory, until `%tfguard resume`. The system may then end the kernel."""
    session = current()
    print(_OFF if session is None else session.pause_stop())


def _resume() -> None:
    """Stop cells that are about to fill the memory again."""
    session = current()
    print(_OFF if session is None else session.resume_stop())


def _estimate(code: str = "") -> None:
    """Show whether a fit will fit into memory, without running it: `%tfguard estimate model.fit(x, y, batch_size=64)`."""
    from ..predict.estimate import estimate

    _planned(estimate, code)


def _batch(code: str = "") -> None:
    """Find the largest batch size that fits, by trials in other processes: `%tfguard batch model.fit(x, y)`."""
    from ..predict.batch_size import find_batch_size
    from .progress import ProgressLine

    with ProgressLine() as line:
        _planned(functools.partial(find_batch_size, show=line.show), code)


def _planned(answer: Callable[[Any, dict[str, Any]], Any], code: str) -> None:
    from IPython import get_ipython
    from IPython.core.error import UsageError
    from IPython.display import display

    from ..predict.own_memory import CannotEstimate
    from .planned_fit import NotAFit, planned_fit

    try:
        # Not returned: IPython would show only that of the last line of a cell.
        display(answer(*planned_fit(code, get_ipython().user_ns)))
    except NotAFit as bad:
        raise UsageError(str(bad)) from None
    except CannotEstimate as no:
        print(no)


def _why(number: int | None = None) -> None:
    """Show why a cell of this kernel was stopped, or why the last kernel died. With `--crash N`, the N-th latest crash."""
    from ..record.bundle import BundleStore, died_of
    from ..report.announce import whose
    from ..report.stopped import StoppedCell
    from ..report.text import render

    # The report of that crash may still be in progress.
    if (session := current()) is not None:
        session.news.wait_reported(_REPORT_SECONDS)
    store = BundleStore(bundles_folder()) if session is None else session.news.reports()
    entries = store.entries()
    stopped = StoppedCell.of(None if session is None else session.stop.latest)
    is_newer = not entries or (stopped is not None and stopped.time > died_of(entries[0]["id"]) + 1)
    if number is None and stopped is not None and is_newer:
        print(f"Last stop: {stopped.text()}")
        if entries:
            print("\nLast crash: %tfguard why --crash 1")
        return
    if not entries:
        print("No reports: tfguard has recorded no crash yet.")
        return
    number = 1 if number is None else number
    if not 1 <= number <= len(entries):
        kept = "is 1 report" if len(entries) == 1 else f"are {len(entries)} reports"
        print(f"There {kept}; --crash 1 is the latest.")
        return
    entry = entries[number - 1]
    header = {} if session is None or session.recording is None else session.recording.header
    other = whose(entry, header.get("kernel_id"), header.get("notebook_path"))
    try:
        print("\n".join([*([f"{other}\n"] if other else []), render(store.report(entry["id"]))]))
    except TfGuardError as bad:
        print(bad)


def _doctor() -> None:
    """Check whether every part is in place and whether TensorFlow will work here."""
    if changed_since(_LOADED):
        print("The checks are those of the new version: run jupyter tfguard doctor in a terminal.")
        return
    from ..doctor.check import run_checks
    from ..doctor.environment import Environment
    from ..doctor.text import text

    print(text(run_checks(Environment.here())))


def register(shell: Any) -> None:
    """Register ``%tfguard`` with the shell."""
    shell.register_magic_function(tfguard, magic_kind="line", magic_name=NAME)


def register_without_guard(shell: Any, sentence: str) -> None:
    """Register a ``%tfguard`` that only prints this sentence."""

    def tfguard(line: str) -> None:
        """Print why tfguard is not running here."""
        print(sentence)

    shell.register_magic_function(tfguard, magic_kind="line", magic_name=NAME)


def unregister(shell: Any) -> None:
    """Remove ``%tfguard`` from the shell."""
    shell.magics_manager.magics["line"].pop(NAME, None)
