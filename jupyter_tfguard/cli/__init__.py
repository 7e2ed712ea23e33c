"""The command line: ``jupyter tfguard ...``. Each command is one thin file, which is discovered automatically."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Sequence

from .._version import __version__
from ..errors import TfGuardError
from ..redact import printable

_PROGRAM = "jupyter tfguard"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        Exit code: 0 success, 2 failure; `doctor` also returns 1 if it found a problem.
    """
    chosen = make_parser().parse_args(arguments)
    try:
        code: int = chosen.run(chosen)
    except TfGuardError as bad:
        # A message may quote the name of a file, which can contain anything.
        print(f"{_PROGRAM}: {printable(str(bad))}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader (head, less) closed the pipe.
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        return 130
    return code


def make_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line. The documentation is generated from it too."""
    parser = argparse.ArgumentParser(
        prog=_PROGRAM,
        description="Explains why a Jupyter kernel died, and records the running ones.",
    )
    parser.add_argument("--version", action="version", version=f"jupyter-tfguard {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"{__name__}.{module.name}").add_to(commands)
    return parser
