"""Python stacks of a fatal or terminating signal, written at C level into files of ours.

faulthandler writes them even while native code holds the GIL, and the process then dies of its signal as it would have
without us. A faulthandler or a signal handler that the user or the application installed is left alone.
"""

from __future__ import annotations

import faulthandler
import os
import signal

from ..private_files import PrivateFolder
from ..record.recording import FAULT, SIGNAL_PREFIX

# One file each, because the text does not name the signal.
_TERMINATING = ("SIGTERM", "SIGHUP", "SIGXCPU", "SIGQUIT")


class FaultFiles:
    """Keeps faulthandler pointed at the recording, from :meth:`start` to :meth:`stop`."""

    def __init__(self, folder: PrivateFolder) -> None:
        self._folder = folder
        self._fault: int | None = None
        self._signals: dict[int, int] = {}  # descriptor by number

    def start(self) -> str:
        """Point faulthandler at our files.

        Returns:
            ``ours``; ``user`` when the user had enabled it before: then its text goes where the user wants it.

        Raises:
            FolderUnusable: A file cannot be made safely.
            OSError: The system refused a file.
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
        # None: installed outside Python. SIG_IGN: nohup. Both have their reason.
        if number is None or signal.getsignal(number) is not signal.SIG_DFL:
            return
        descriptor = self._folder.create(f"{SIGNAL_PREFIX}{name}.txt", append=True)
        faulthandler.register(number, file=descriptor, all_threads=False, chain=True)
        self._signals[int(number)] = descriptor

    def stop(self) -> None:
        """Undo it. A handler that user code put in the place of ours stays.

        If user code called ``faulthandler.enable`` after us, that is undone too: it cannot be told from ours.
        """
        if self._fault is not None:
            faulthandler.disable()
            os.close(self._fault)
            self._fault = None
        for number, descriptor in self._signals.items():
            # Unregistering puts the default back, over a handler that the user has set since.
            if signal.getsignal(number) is signal.SIG_DFL:
                faulthandler.unregister(number)
                os.close(descriptor)
        self._signals.clear()
