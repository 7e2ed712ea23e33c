"""``jupyter tfguard replay BUNDLE``: a recorded death once more, in panel, notice and report."""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
from pathlib import Path
from typing import Any

from ..errors import TfGuardError
from ._records import one_id, open_store

_SPEEDS = (0.1, 100.0)
_DEFAULT_SECONDS = 120.0


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("replay", help="play a recorded death in JupyterLab")
    parser.add_argument(
        "bundle",
        metavar="BUNDLE",
        help="id of a report (its first characters will do), folder of one, or an exported zip",
    )
    parser.add_argument(
        "--speed", type=float, default=1.0, metavar="N", help="N times as quick as it was"
    )
    parser.add_argument(
        "--at",
        type=float,
        default=_DEFAULT_SECONDS,
        metavar="SECONDS",
        help="begin so long before the death (default: 120)",
    )
    parser.add_argument("--loop", action="store_true", help="begin again after the end")
    parser.add_argument(
        "--no-browser", action="store_true", help="print the address and open no browser"
    )
    parser.add_argument(
        "--json", action="store_true", help="print address and kernel as JSON; opens no browser"
    )
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Check what was given, then play it until Ctrl-C."""
    from ..replay.recorded import read_recorded
    from ..replay.run import run as play
    from ..replay.tape import tape_of

    low, high = _SPEEDS
    if not low <= chosen.speed <= high:
        raise TfGuardError(f"--speed takes a number from {low:g} to {high:g}.")
    if not math.isfinite(chosen.at) or chosen.at < 0:
        raise TfGuardError("--at takes a number of seconds, 0 or more.")
    if importlib.util.find_spec("jupyterlab") is None:
        raise TfGuardError("A replay needs JupyterLab: python -m pip install jupyterlab")
    store = open_store()
    told = str(chosen.bundle)
    if not os.path.exists(told) and not Path(told).suffix:
        told = one_id([entry["id"] for entry in store.entries()], told)
    return play(
        tape_of(read_recorded(told, store)),
        speed=chosen.speed,
        before_seconds=chosen.at,
        loop=chosen.loop,
        browser=not (chosen.no_browser or chosen.json),
        as_json=chosen.json,
    )
