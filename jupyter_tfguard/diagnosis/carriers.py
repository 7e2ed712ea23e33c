"""What a collector, scheduler or page puts before every line of a log, or around it.

Such a mark is removed only where all lines of the text have it; a mark before some lines may be what the program itself printed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

_LEVEL = r"(?:(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL|debug|info|warn(?:ing)?|error|notice|fatal)\b:? (?:- )?)?"
_CARRIERS = tuple(
    re.compile(pattern)
    for pattern in (
        # A quoted mail, a commented block: without its first space only, as the others may be an indentation.
        r"(?:>{1,3}|#|//|\|) ?",
        # "2026-05-05 10:00:00,123 - train - ERROR - ", "2026-05-05 10:00:00.123 error ", "2026-05-05 10:00:00 "
        rf"\d{{4}}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?(?:Z|[+-]\d\d:?\d\d)? (?:std(?:err|out) [FP] |- )?(?:[\w.]{{1,60}} - )?{_LEVEL}",
        # "[2026-05-05, 10:00:00 UTC] {subprocess.py:93} INFO - ", "[10:00:00] ", "10:00:00 "
        rf"\[\d{{4}}-\d\d-\d\d,? \d\d:\d\d:\d\d[^\]]{{0,12}}\] (?:\{{[\w.]{{1,60}}:\d{{1,6}}\}} )?{_LEVEL}",
        rf"\[\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?\] {_LEVEL}",
        rf"\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})? {_LEVEL}",
        # "I0203 10:11:12.000001 139724501083904 run_docker.py:258] "
        r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{1,9} {1,12}\d{1,20} [\w.-]{1,60}\.py:\d{1,6}\] ",
        # "0: " of srun --label, "[1,mpirank:0,algo-1]<stderr>:", "[stderr] ", "stderr: "
        r"\d{1,5}: ",
        r"\[\d{1,4},[\w:.,-]{1,60}\](?:<std(?:err|out)>)?: ?",
        r"\[std(?:err|out)\]:? |std(?:err|out): ",
        # "notebook_1    | "
        r"[A-Za-z][\w.-]{0,62}_\d{1,4} {1,20}\| ",
        # Numbers of lines: "  12  ", "12\t"
        r" {0,8}\d{1,6}(?:\t|  )",
    )
)
_TEXT = ("log", "message", "msg", "textPayload")
_BESIDE = frozenset(
    ("stream", "time", "attrs", "timestamp", "ts", "level", "severity", "logger", "name", "insertId")
)  # fmt: skip


def uncarried(lines: Sequence[str]) -> list[str]:
    """The lines, without what stands before every line of the text, and without a JSON object around each."""
    found = [_of_object(line) if line.startswith('{"') else line for line in lines]
    filled = [line for line in found if line.strip()]
    if len(filled) < 2:
        return found
    for carrier in _CARRIERS:
        if all(carrier.match(line) for line in filled):
            return [carrier.sub("", line, count=1) for line in found]
    return found


def _of_object(line: str) -> str:
    """The text of a line like {"log":"Killed\\n","stream":"stderr","time":"..."}; other lines as they are."""
    try:
        found = json.loads(line)
    except ValueError:
        return line
    text = next((found[key] for key in _TEXT if key in found), None)
    if not isinstance(text, str) or not _BESIDE.issuperset(found.keys() - set(_TEXT)):
        return line
    return text.rstrip("\n").replace("\n", "\r")
