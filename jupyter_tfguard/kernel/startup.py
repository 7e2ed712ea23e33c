"""Starts the guard in a kernel, once: by the startup file, quietly, or by ``%load_ext tfguard``."""

from __future__ import annotations

import contextlib
import importlib
import os
from typing import Any

from .._version import __version__
from ..config import TfGuard, load_settings
from ..errors import SettingsUnreadable
from ..places import DISABLE_VARIABLE, disabled_by_environment, user_settings_file
from ..shield import fall_silent, note_problem, shield, shielded
from .current import current, of_parent, set_current
from .session import GuardSession

# IPython knows the extension by both names.
NAMES = ("tfguard", "jupyter_tfguard")

_fork_hook_registered = False


def is_kernel(shell: Any) -> bool:
    """True for the shell of a Jupyter kernel; False in a terminal."""
    return getattr(shell, "kernel", None) is not None


@shield("kernel start")
def autostart(shell: Any) -> None:
    """Start the guard without a word, unless it is switched off or runs already."""
    if is_kernel(shell):
        start(shell)


def start(shell: Any) -> GuardSession | None:
    """The guard of this kernel, started if need be; None when it is switched off."""
    running = current()
    if running is not None:
        return running
    settings = read_settings(shell)
    if not settings.active:
        return None
    session = GuardSession(shell, settings)
    # Before it starts: a callback of its own may ask for it.
    set_current(session)
    session.start()
    _register_fork_hook()
    with shielded("magics"):
        from .magics import register

        register(shell)
    with shielded("extension names"):
        _enter(shell)
    return session


def stop(shell: Any) -> None:
    """Undo everything, if the guard runs."""
    session = current()
    set_current(None)
    with shielded("extension names"):
        _leave(shell)
    with shielded("magics"):
        from .magics import unregister

        unregister(shell)
    if session is not None:
        session.unload()


@shield("%load_ext tfguard")
def load(shell: Any) -> None:
    """Start the guard if it does not run, and print one line about it in any case."""
    if not is_kernel(shell):
        print(
            f"tfguard {__version__}: works in Jupyter kernels only; it does nothing in a terminal."
        )
        return
    session = start(shell)
    if session is None:
        print(f"tfguard {__version__}: switched off. {_why_off()}.")
        return
    from .status import state_line

    print(state_line(session))


@shield("%unload_ext tfguard")
def unload(shell: Any) -> None:
    """Undo everything; the kernel is then as it would be without us."""
    stop(shell)


def read_settings(shell: Any) -> TfGuard:
    """The options; the defaults, with a note, when the user's file cannot be read."""
    try:
        return load_settings(shell)
    except SettingsUnreadable as bad:
        note_problem("settings", str(bad))
        return TfGuard()


def _why_off() -> str:
    """What switches the guard off, and how to have it back."""
    if disabled_by_environment():
        return f"{DISABLE_VARIABLE} is set in the environment. To enable tfguard, remove it and restart Jupyter"
    place = f"{user_settings_file()} or in IPython's configuration"
    return f"TfGuard.enabled is false in {place}. To enable tfguard, set it to true and restart the kernel"


def _register_fork_hook() -> None:
    global _fork_hook_registered
    if not _fork_hook_registered and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_in_child)
        _fork_hook_registered = True


@shield("forked child")
def _in_child() -> None:
    session = of_parent()
    if session is not None:
        fall_silent()
        session.leave_child()


def _enter(shell: Any) -> None:
    """Let IPython's ``%unload_ext`` and ``%load_ext`` reach us although the startup file did the loading.

    IPython answers a second ``%load_ext`` itself ("already loaded"); a user who types it wants to know the state.
    """
    manager = shell.extension_manager
    for name in NAMES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
            manager.loaded.add(name)
    original = manager.load_extension

    def load_extension(module_str: str) -> Any:
        if module_str in NAMES and module_str in manager.loaded:
            return load(shell)
        return original(module_str)

    if "load_extension" not in vars(manager):
        manager.load_extension = load_extension


def _leave(shell: Any) -> None:
    manager = shell.extension_manager
    for name in NAMES:
        manager.loaded.discard(name)
    vars(manager).pop("load_extension", None)
