"""Python stacks at a fatal or terminating signal, written at C level into the recording.

faulthandler writes them even while native code holds the GIL. The process then dies of the signal as it would without
the guard. If the user or the application has enabled faulthandler or installed a signal handler, it is not changed.
"""

from __future__ import annotations

import faulthandler
import os
import signal

from ...private_files import PrivateFolder
from ...record.recording import FAULT, SIGNAL_PREFIX

# One file per signal, because the text does not name the signal.
_TERMINATING = ("SIGTERM", "SIGHUP", "SIGXCPU", "SIGQUIT")


class FaultFiles:
    """Directs faulthandler's output to the recording, from :meth:`start` to :meth:`stop`."""

    def __init__(self, folder: PrivateFolder) -> None:
        self._folder = folder
        self._fault: int | None = None
        self._signals: dict[int, int] = {}  # file descriptor by signal number

    def start(self) -> str:
        """Direct faulthandler's output to our files.

        Returns:
            ``ours``, or ``user`` if the user had already enabled faulthandler; its output then stays where the user
            sends it.

        Raises:
            FolderUnusable: A file cannot be made safely.
            OSError: The system could not create a file.
        """
        state = "user"
        if not faulthandler.is_enabled():
            self._fault = self._folder.create(FAULT, append=True)
            faulthandler.enable(file=self._fault, all_threads=True)
            state = "ours"
        if hasattr(faulthandler, "register"):
            for name in _TERMINATING:
                self._register(name)
        return state

    def _register(self, name: str) -> None:
        number = getattr(signal, name, None)
        # Keep a handler installed outside Python (None) and SIG_IGN, which nohup sets.
        if number is None or signal.getsignal(number) is not signal.SIG_DFL:
            return
        descriptor = self._folder.create(f"{SIGNAL_PREFIX}{name}.txt", append=True)
        faulthandler.register(number, file=descriptor, all_threads=False, chain=True)
        self._signals[int(number)] = descriptor

    def stop(self) -> None:
        """Undo :meth:`start`. A handler that user code has set since stays.

        If user code has called ``faulthandler.enable`` since, that is undone too: it cannot be distinguished from ours.
        """
        if self._fault is not None:
            faulthandler.disable()
            os.close(self._fault)
            self._fault = None
        for number, descriptor in self._signals.items():
            # Unregistering restores the default, so skip a signal whose handler the user has set since.
            if signal.getsignal(number) is signal.SIG_DFL:
                faulthandler.unregister(number)
                os.close(descriptor)
        self._signals.clear()
