"""Starts the guard in a kernel once: from the startup file, without output, or by ``%load_ext tfguard``."""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Callable
from typing import Any

from .._version import __version__
from ..config import TfGuard, load_settings
from ..errors import SettingsUnreadable
from ..places import DISABLE_VARIABLE, disabled_by_environment, user_settings_file
from ..shield import fall_silent, note_problem, shield, shielded
from .current import current, of_parent, set_current
from .gateway import adopt_environment, release_environment
from .session import GuardSession

# The extension can be loaded under both names.
NAMES = ("tfguard", "jupyter_tfguard")

_fork_hook_registered = False


def is_kernel(shell: Any) -> bool:
    """True for the shell of a Jupyter kernel; False for one in a terminal."""
    return getattr(shell, "kernel", None) is not None


@shield("kernel start")
def autostart(shell: Any) -> None:
    """Start the guard without output, unless it is switched off or already running."""
    if is_kernel(shell):
        start(shell)


def start(shell: Any) -> GuardSession | None:
    """The guard of this kernel, started if necessary; None if it is switched off or this is no kernel, and then ``%tfguard`` says so."""
    running = current()
    if running is not None:
        return running
    if is_kernel(shell):
        with shielded("environment of a gateway"):
            adopt_environment()
    if not is_kernel(shell) or not (settings := read_settings(shell)).active:
        _register_without_guard(shell)
        return None
    session = GuardSession(shell, settings, ShellNames(shell))
    # Set before the start: a callback of the session may call current().
    set_current(session)
    session.start()
    return session


def stop(shell: Any) -> None:
    """Undo everything if the guard is running."""
    session = current()
    set_current(None)
    if session is not None:
        session.unload()
    else:
        for undo in ShellNames(shell).undos():
            with shielded("unloading"):
                undo()


@shield("%load_ext tfguard")
def load(shell: Any) -> None:
    """Start the guard if it is not running, and always print one line about its state."""
    session = start(shell)
    if session is None:
        print(_without_guard(shell))
        return
    from .status import state_line

    print(state_line(session))


@shield("%unload_ext tfguard")
def unload(shell: Any) -> None:
    """Undo everything; the kernel is then as it was without the guard."""
    stop(shell)


def read_settings(shell: Any) -> TfGuard:
    """The options; if the user's file cannot be read, the defaults, and the problem is noted."""
    try:
        return load_settings(shell)
    except SettingsUnreadable as bad:
        note_problem("settings", str(bad))
        return TfGuard()


def _register_without_guard(shell: Any) -> None:
    """Make the ``%tfguard`` lines of a notebook print one sentence: an unknown magic would end its run."""
    with shielded("magics"):
        from .magics import register_without_guard

        register_without_guard(shell, _without_guard(shell))


def _without_guard(shell: Any) -> str:
    """Why nothing is guarded here."""
    if not is_kernel(shell):
        return f"tfguard {__version__}: works in Jupyter kernels only; it does nothing here."
    return f"tfguard {__version__}: switched off. {_why_off()}."


def _why_off() -> str:
    """What switches the guard off, and how to enable it."""
    if disabled_by_environment():
        return f"{DISABLE_VARIABLE} is set in the environment. To enable tfguard, remove it and restart Jupyter"
    place = f"{user_settings_file()} or in IPython's configuration"
    return f"TfGuard.enabled is false in {place}. To enable tfguard, set it to true and restart the kernel"


@shield("before a fork")
def _before_fork() -> None:
    if (session := current()) is not None:
        session.stop.before_fork()


@shield("forked child")
def _in_child() -> None:
    session = of_parent()
    if session is not None:
        fall_silent()
        session.leave_child()


class ShellNames:
    """The names of the guard in one shell, and its functions for forks, which cannot be removed.

    Args:
        shell: The IPython shell.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def undos(self) -> list[Callable[[], None]]:
        """What a guard that is switched off has to undo."""
        return [self.unregister_extensions, self.unregister_magic, release_environment]

    def release_environment(self) -> None:
        """Remove the variables of a gateway."""
        release_environment()

    def register_at_fork(self) -> None:
        """Call the guard before a fork and in a forked child; once in this process."""
        global _fork_hook_registered
        if not _fork_hook_registered and hasattr(os, "register_at_fork"):
            os.register_at_fork(before=_before_fork, after_in_child=_in_child)
            _fork_hook_registered = True

    def register_magic(self) -> None:
        """Register ``%tfguard``."""
        from .magics import register

        register(self._shell)

    def unregister_magic(self) -> None:
        """Remove ``%tfguard``."""
        from .magics import unregister

        unregister(self._shell)

    def register_extensions(self) -> None:
        """Make ``%unload_ext`` and ``%load_ext`` work although the startup file loaded the guard.

        IPython itself answers a second ``%load_ext`` with "already loaded"; here it prints the state instead.
        """
        manager = self._shell.extension_manager
        for name in NAMES:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
                manager.loaded.add(name)
        original = manager.load_extension

        def load_extension(module_str: str) -> Any:
            if module_str in NAMES and module_str in manager.loaded:
                return load(self._shell)
            return original(module_str)

        if "load_extension" not in vars(manager):
            manager.load_extension = load_extension

    def unregister_extensions(self) -> None:
        """Undo :meth:`register_extensions`."""
        manager = self._shell.extension_manager
        for name in NAMES:
            manager.loaded.discard(name)
        vars(manager).pop("load_extension", None)
