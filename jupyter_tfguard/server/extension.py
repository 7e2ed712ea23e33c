"""The server extension: sets the kernels' environment, adds the routes, starts the watcher.

A failure here is logged; the server and its kernels run as without the extension.
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
    """Tracks this server's kernels, and reports why one crashed."""

    name = "tfguard"
    description = "Tracks kernels and explains why they die."

    service: Service | None = None

    def initialize_settings(self) -> None:
        """Read the options and prepare; tracking starts when the event loop runs."""
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
        """Stop the service when the server stops."""
        service, self.service = self.service, None
        if service is not None:
            await service.stop()


def set_environment(settings: TfGuard, environment: Any = os.environ) -> None:
    """Set the environment that every kernel of this server inherits; a value set by the user takes precedence.

    Args:
        settings: The options; nothing is set if tfguard is switched off.
        environment: Modified in place.
    """
    if not settings.active:
        return
    environment[WATCHER_VARIABLE] = str(os.getpid())
    environment.pop(KERNEL_VARIABLE, None)  # set if a cell started this server
    if copies_folder() is not None:
        environment[LIVE_VARIABLE] = str(live_folder())  # kernels may have a different TMPDIR
    if settings.set_memory_growth and GROWTH_VARIABLE not in environment:
        environment[GROWTH_VARIABLE] = "true"
        environment[GROWTH_MARKER_VARIABLE] = "1"
