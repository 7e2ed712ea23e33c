"""``jupyter tfguard enable --kernel NAME``: the guard for a kernel whose environment lacks it."""

from __future__ import annotations

import argparse
import json
import textwrap
from typing import Any

from ..kernelspecs.enable import disable, enable


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "enable",
        help="load the guard into a kernel of another environment",
        description="Loads this installation of tfguard into a kernel of another environment by changing the command in its kernel.json. "
        "Installs nothing there.",
    )
    parser.add_argument(
        "--kernel",
        required=True,
        metavar="NAME",
        help="name of the kernel in `jupyter kernelspec list`",
    )
    parser.add_argument("--off", action="store_true", help="undo the change")
    parser.add_argument("--json", action="store_true", help="print what was done as JSON")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Change the kernel specification and print what was done."""
    change = (disable if chosen.off else enable)(chosen.kernel)
    if chosen.json:
        print(json.dumps(vars(change), indent=2, default=str))
    else:
        for line in change.text.splitlines():
            print(textwrap.fill(line, 98, break_long_words=False, break_on_hyphens=False))
    return 0
