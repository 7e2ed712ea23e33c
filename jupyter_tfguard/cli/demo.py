"""``jupyter tfguard demo``: real crashes, real reports, and with ``--lab`` JupyterLab with the panel."""

from __future__ import annotations

import argparse
import importlib.util
from typing import Any

from ..errors import TfGuardError


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("demo", help="crash real kernels and show their reports")
    parser.add_argument(
        "--lab",
        action="store_true",
        help="open the walk-through notebook in JupyterLab and keep it running",
    )
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Check that the required packages are installed, then run the demo."""
    from ..demo.run import run as run_demo

    needed = ("tensorflow", "jupyterlab") if chosen.lab else ("tensorflow",)
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise TfGuardError(
            f"The demo needs {' and '.join(missing)}: python -m pip install 'jupyter-tfguard[demo]'"
        )
    return run_demo(lab=chosen.lab)
