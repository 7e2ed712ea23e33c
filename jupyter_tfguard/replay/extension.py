"""The server extension of a replay: the guard's own, with a recording in the place of the kernels."""

from __future__ import annotations

from pathlib import Path

from traitlets import Bool, Float, Unicode

from ..config import TfGuard
from ..record.bundle import BundleStore
from ..server.extension import TfGuardExtension
from ..server.service import Service
from .recorded import read_recorded
from .service import ReplayService
from .tape import tape_of


class ReplayExtension(TfGuardExtension):
    """Plays one recording."""

    description = "Plays the recording of a dead kernel."

    folder = Unicode(help="Folder of the bundle to play.").tag(config=True)
    speed = Float(1.0, help="2 = twice as quick as it was.").tag(config=True)
    before_seconds = Float(120.0, help="How long before the death to begin.").tag(config=True)
    loop = Bool(False, help="Begin again after the end.").tag(config=True)

    def make_service(self, settings: TfGuard) -> Service:
        """One that answers from the recording."""
        path = Path(self.folder)
        return ReplayService(
            self.serverapp,
            settings,
            tape_of(read_recorded(str(path), BundleStore(path.parent))),
            speed=self.speed,
            before_seconds=self.before_seconds,
            loop=self.loop,
        )
