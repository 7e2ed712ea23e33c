"""An animated picture from screenshots of a page. Needs Pillow: ``pip install pillow``."""

from __future__ import annotations

import importlib
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

WIDTH_PIXELS = 960
# How long each scene takes, in milliseconds, and how many frames it has at most.
SCENES = {"climb": (4500, 36), "warning": (2500, 16), "dialog": (2000, 1), "report": (3000, 1)}


class Animation:
    """Frames of some scenes, each played in its own time."""

    def __init__(self) -> None:
        # Not a plain import: the type checker of an environment without Pillow would miss it.
        self._images = importlib.import_module("PIL.Image")
        self._shots: dict[str, list[bytes]] = {name: [] for name in SCENES}

    def add(self, page: Page, scene: str) -> None:
        """Take a screenshot as the next frame of this scene."""
        self._shots[scene].append(page.screenshot())

    def save(self, path: Path) -> None:
        """Write the animation as WebP."""
        frames, durations = [], []
        for scene, (milliseconds, most) in SCENES.items():
            shots = _spread(self._shots[scene], most)
            for shot in shots:
                image = self._images.open(io.BytesIO(shot)).convert("RGB")
                height = round(image.height * WIDTH_PIXELS / image.width)
                frames.append(image.resize((WIDTH_PIXELS, height), self._images.Resampling.LANCZOS))
                durations.append(round(milliseconds / len(shots)))
        frames[0].save(
            path,
            save_all=True,
            append_images=frames[1:],
            duration=durations,
            loop=0,
            quality=75,
            method=4,
        )


def _spread(shots: list[bytes], most: int) -> list[bytes]:
    """At most so many shots, evenly from the first to the last."""
    if len(shots) <= most:
        return shots
    if most == 1:
        return shots[-1:]
    return [shots[round(place * (len(shots) - 1) / (most - 1))] for place in range(most)]
