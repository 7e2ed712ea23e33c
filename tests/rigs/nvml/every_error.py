"""``python -m tests.rigs.nvml.every_error SCENARIO CALL``: the process that reads the GPUs, with each of NVML's errors at a call.

One process each, forked, so that NVML is loaded anew and nothing is remembered. Prints a JSON line for each error:
``{"code", "exit", "lines"}`` with the wait status and the first lines, two if it goes on for so long.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path

import pynvml

from jupyter_tfguard.collectors import gpu

CODES = (*range(1, 31), 77, 999)  # 77: one that no header has
LINES = 2


def main(scenario: str, call: str) -> None:
    """Try all errors at `call`, which may go on with ``card 0``."""
    plain = Path(scenario).read_text()
    name, _, where = call.partition(" ")
    for code in CODES:
        path = Path(f"{scenario}.{code}")
        path.write_text(f"{plain}call {name} fail {code} {where}\n")
        status, lines = run(path)
        found = [json.loads(line) for line in lines]
        print(json.dumps({"code": code, "exit": status, "lines": found}), flush=True)


def run(scenario: Path) -> tuple[int, list[str]]:
    """The wait status and the first lines of one process."""
    life, give = os.pipe()
    take, out = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.environ["TFGUARD_NVML_SCENARIO"] = str(scenario)
        os.dup2(life, 0)
        os.dup2(out, 1)
        for descriptor in (life, give, take, out):
            os.close(descriptor)
        os._exit(gpu.main(0.01))
    os.close(life)
    os.close(out)
    with open(take) as stream:
        lines = [line for _, line in zip(range(LINES), stream, strict=False)]
        os.close(give)  # its standard input ends, and so does it
        with contextlib.suppress(OSError):
            stream.read()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), lines


if __name__ == "__main__":
    assert pynvml.nvmlLib is None, "the library must be loaded by each process for itself"
    main(sys.argv[1], sys.argv[2])
