"""Plays a recorded death again, in a Jupyter server of its own: ``jupyter tfguard replay``."""

from __future__ import annotations

from typing import Any


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    """What stands in the place of the guard in that server."""
    from .extension import ReplayExtension

    return [{"module": "jupyter_tfguard.replay.extension", "app": ReplayExtension}]
