"""``%tfguard``: what the guard knows, on one line typed in a cell."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ..errors import TfGuardError
from ..places import bundles_folder
from ..record.bundle import BundleStore
from ..shield import shield
from .cells import cells_text
from .current import current

_REPORT_SECONDS = 10.0

NAME = "tfguard"
_OFF = "tfguard does not run here."
_CRASH = re.compile(r"why\s+--crash[\s=]+(\d{1,9})")


def tfguard(line: str) -> None:
    """Show this kernel's memory against its limit, as text or as a panel that moves, what each cell took of it, why the
    last kernel died, or whether everything is in place.

    ``%tfguard [status]``, ``%tfguard panel``, ``%tfguard cells``, ``%tfguard why [--crash N]``, ``%tfguard doctor``
    """
    if (asked := _CRASH.fullmatch(line.strip())) is not None:
        _why(int(asked[1]))
    elif (action := actions().get(line.strip() or "status")) is not None:
        action()
    else:
        from IPython.core.error import UsageError

        raise UsageError(
            f"%tfguard {line.strip()} is not known: choose from {', '.join(actions())}. "
            "Why an earlier kernel died: why --crash N, the N-th latest death."
        )


def actions() -> dict[str, Callable[[], None]]:
    """What can follow ``%tfguard``. The docstring of each says what it shows; the documentation lists them."""
    return {"status": _status, "panel": _panel, "cells": _cells, "why": _why, "doctor": _doctor}


@shield("%tfguard status")
def _status() -> None:
    """Show the state of the guard and the memory of this kernel against its limit. This is the default."""
    from .status import status_text

    session = current()
    print(_OFF if session is None else status_text(session))


@shield("%tfguard panel")
def _panel() -> None:
    """Show the panel in the output of the cell. It moves while cells run."""
    from .widget import show

    session = current()
    if session is None:
        print(_OFF)
    else:
        show(session)


@shield("%tfguard cells")
def _cells() -> None:
    """Show what each cell did to memory: its peak, and what stayed behind."""
    session = current()
    print(_OFF if session is None else cells_text(tuple(session.cells.ended)))


@shield("%tfguard why")
def _why(number: int = 1) -> None:
    """Show why the last kernel died. With `--crash N`, the N-th latest crash."""
    from ..report.text import render

    # The death that is asked for may be being reported just now.
    if (session := current()) is not None:
        session.news.wait_reported(_REPORT_SECONDS)
    store = BundleStore(bundles_folder())
    entries = store.entries()
    if not entries:
        print("No kernel of yours has died on record: there is nothing to tell.")
        return
    if not 1 <= number <= len(entries):
        kept = "is 1 death" if len(entries) == 1 else f"are {len(entries)} deaths"
        print(f"There {kept} on record; the latest is --crash 1.")
        return
    try:
        print(render(store.report(entries[number - 1]["id"])))
    except TfGuardError as bad:
        print(bad)


@shield("%tfguard doctor")
def _doctor() -> None:
    """Check whether every part is in place and whether TensorFlow will work here."""
    from ..doctor.check import run_checks
    from ..doctor.environment import Environment
    from ..doctor.text import text

    print(text(run_checks(Environment.here())))


def register(shell: Any) -> None:
    """Make ``%tfguard`` known to the shell."""
    shell.register_magic_function(tfguard, magic_kind="line", magic_name=NAME)


def unregister(shell: Any) -> None:
    """Take ``%tfguard`` out again."""
    shell.magics_manager.magics["line"].pop(NAME, None)
