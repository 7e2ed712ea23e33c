"""``jupyter tfguard explain [FILE | -]``: explain a crash from a log, without a recording."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any, BinaryIO

from ..diagnosis.diagnose import explain
from ..diagnosis.exit_status import exit_status
from ..diagnosis.pasted import Pasted
from ..errors import TfGuardError
from ..report import explained
from ..report.pasted_report import pasted_report

# The cause of a crash is at the end of a log; earlier text is not read.
LONGEST_BYTES = 4 * 1024 * 1024


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "explain",
        help="explain a crash from a log",
        description="Explains why a program died from its output. Needs no recording. Paste the whole end of the log.",
    )
    parser.add_argument(
        "file", nargs="?", default="-", help="the log; - or no FILE reads standard input"
    )
    parser.add_argument(
        "--kernel-log",
        metavar="FILE",
        help="file with lines of the operating system's log (dmesg, journalctl -k)",
    )
    parser.add_argument(
        "--exit-signal", metavar="NAME", help="signal that ended the program: SIGKILL, KILL or 9"
    )
    parser.add_argument(
        "--exit-code",
        metavar="N",
        type=int,
        help="exit code of the program, as a shell or Windows shows it",
    )
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print the findings for the text."""
    try:
        status = exit_status(chosen.exit_signal, chosen.exit_code)
    except ValueError as bad:
        raise TfGuardError(str(bad)) from bad
    if chosen.file == "-" and sys.stdin.isatty():
        print("Paste the log, then press Ctrl-D on a line of its own.", file=sys.stderr)
    text = _read(chosen.file)
    kernel_log = _read(chosen.kernel_log) if chosen.kernel_log else ""
    found = pasted_report(text) or explained.to_json(explain(Pasted(text, kernel_log, status)))
    print(json.dumps(found, indent=2) if chosen.json else explained.render(found), end="")
    if chosen.json:
        print()
    return 0


def _read(name: str) -> str:
    """The end of a file, decoded. Its bytes may be in any encoding.

    Raises:
        TfGuardError: It cannot be read.
    """
    try:
        if name == "-":
            raw = end_of(sys.stdin.buffer)
        else:
            with Path(name).open("rb") as file:
                raw = end_of(file)
    except OSError as bad:
        raise TfGuardError(f"Could not read {name}: {bad.strerror or bad}.") from bad
    return decoded(raw)


def end_of(file: BinaryIO) -> bytes:
    if file.seekable():  # a pipe is not
        file.seek(max(0, file.seek(0, os.SEEK_END) - LONGEST_BYTES))
    end = b""
    while part := file.read(LONGEST_BYTES):
        end = (end + part)[-LONGEST_BYTES:]
    return end


def decoded(raw: bytes) -> str:
    """Text of a log in UTF-8 or UTF-16: Windows consoles write UTF-16 into files."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return raw.decode("utf-16", "replace")
    if raw[1:200:2].count(0) > 40:  # the byte order mark was cut off or is missing
        return raw.decode("utf-16-le", "replace")
    return raw.decode("utf-8", "replace").removeprefix("\ufeff")
