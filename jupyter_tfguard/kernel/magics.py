"""``%tfguard``: what the guard knows, on one line typed in a cell."""

# mypy: disable-error-code="untyped-decorator"
# IPython's decorators have no types.

from __future__ import annotations

import functools
from typing import Any

from ..errors import TfGuardError
from ..places import bundles_folder
from ..record.bundle import BundleStore
from ..shield import shield
from .current import current

_REPORT_SECONDS = 10.0

NAME = "tfguard"


def tfguard(line: str) -> None:
    """Show this kernel's memory against its limit, as text or as a panel that moves, what each cell took of it, why the
    last kernel died, or whether everything is in place.

    ``%tfguard [status]``, ``%tfguard panel``, ``%tfguard cells``, ``%tfguard why [--crash N]``,
    ``%tfguard doctor``
    """
    arguments = _parse(line)
    if arguments.action == "why":
        _why(arguments.crash)
    elif arguments.action == "doctor":
        _doctor()
    elif arguments.action == "cells":
        _cells()
    elif arguments.action == "panel":
        _panel()
    else:
        _status()


def _parse(line: str) -> Any:
    """Action and options; a wrong word is IPython's UsageError, with the usage."""
    from IPython.core.magic_arguments import parse_argstring

    return parse_argstring(_described(), line)


@functools.cache
def _described() -> Any:
    # IPython builds the parser's help when it decorates: 5 ms that kernel start does without.
    from IPython.core.magic_arguments import argument, magic_arguments

    @magic_arguments()
    @argument(
        "action",
        nargs="?",
        choices=("status", "panel", "cells", "why", "doctor"),
        default="status",
    )
    @argument("--crash", type=int, default=1, metavar="N", help="why: the N-th latest death")
    def magic_tfguard(line: str) -> None:
        """Show this kernel's memory against its limit, as text or as a panel that moves, what each cell took of it, why
        the last kernel died, or whether everything is in place."""

    return magic_tfguard


@shield("%tfguard status")
def _status() -> None:
    from .status import status_text

    session = current()
    print("tfguard does not run here." if session is None else status_text(session))


@shield("%tfguard panel")
def _panel() -> None:
    from .widget import show

    session = current()
    if session is None:
        print("tfguard does not run here.")
    else:
        show(session)


@shield("%tfguard cells")
def _cells() -> None:
    from .cells_text import cells_text

    session = current()
    if session is None:
        print("tfguard does not run here.")
    else:
        print(cells_text(tuple(session.cells.ended)))


@shield("%tfguard why")
def _why(number: int) -> None:
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
