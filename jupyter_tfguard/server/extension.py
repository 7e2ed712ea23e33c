"""The server extension: sets the kernels' environment, adds the routes, starts the watcher.

A failure in here is a line in the log; the server and its kernels go on as without it.
"""

from __future__ import annotations

import os
from typing import Any

from jupyter_server.extension.application import ExtensionApp

from ..config import TfGuard, load_settings
from ..places import (
    GROWTH_MARKER_VARIABLE,
    GROWTH_VARIABLE,
    KERNEL_VARIABLE,
    LIVE_VARIABLE,
    WATCHER_VARIABLE,
    copies_folder,
    live_folder,
)
from .handlers import HANDLERS
from .problems import note_start_failure
from .service import Service


class TfGuardExtension(ExtensionApp):
    """Watches this server's kernels, and says why one died."""

    name = "tfguard"
    description = "Tracks kernels and explains why they die."

    service: Service | None = None

    def initialize_settings(self) -> None:
        """Read the options and prepare; the watching begins once the event loop runs."""
        try:
            settings = load_settings(self.serverapp)
            set_environment(settings)
            service = Service(self.serverapp, settings)
            self.settings["tfguard_service"] = service
        except Exception as bad:
            self.serverapp.log.warning(note_start_failure(bad))
            return
        self.service = service
        self.serverapp.io_loop.add_callback(self._begin)

    def initialize_handlers(self) -> None:
        """Add the routes."""
        if self.service is not None:
            self.handlers.extend(HANDLERS)

    def _begin(self) -> None:
        if self.service is None:
            return
        try:
            self.service.start()
        except Exception as bad:
            self.serverapp.log.warning(note_start_failure(bad))

    async def stop_extension(self) -> None:
        """End everything with the server."""
        service, self.service = self.service, None
        if service is not None:
            await service.stop()


def set_environment(settings: TfGuard, environment: Any = os.environ) -> None:
    """Set what every kernel of this server inherits; a value of the user's own wins.

    Args:
        settings: The options; switched off, nothing is set.
        environment: Changed in place.
    """
    if not settings.active:
        return
    environment[WATCHER_VARIABLE] = str(os.getpid())
    environment.pop(KERNEL_VARIABLE, None)  # a server that was started by a cell
    if copies_folder() is not None:
        environment[LIVE_VARIABLE] = str(live_folder())  # kernels may have another TMPDIR
    if settings.set_memory_growth and GROWTH_VARIABLE not in environment:
        environment[GROWTH_VARIABLE] = "true"
        environment[GROWTH_MARKER_VARIABLE] = "1"
