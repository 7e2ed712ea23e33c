"""The bound before ``fit`` under real memory limits: ``python -m tests.benchmarks.bound_limits TRUTHS``.

`TRUTHS` is the file of ``bound.py --truths``. Every case runs twice in a control group of its own that it enters just before
the fit: with the memory that the fit really takes and six percent, where it must not be refused and must live; and with a little less than the
bound, where it must be refused, and dies when it is run all the same.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from jupyter_tfguard.demo.limits import LimitedGroup
from jupyter_tfguard.memory.groups import memory_groups

CASES = (
    "conv3d 48 adam",
    "conv1d 400 adam",
    "frames 80 adam",
    "lstm 400 adam",
    "cnn_photo 160 adam",
)
CASES += ("language_model 96 adam", "resnet 448 adam", "mlp 64 adam")
MIB = 1 << 20
# Pages of libraries that the first fit reads count too.
_FILE_BYTES = 24 * MIB


def child(name: str, batch: int, optimizer: str, folder: str) -> None:
    """Enter the group, print what is said about the fit, and run it."""
    from jupyter_tfguard.predict.refusal import check_fit
    from tests.benchmarks import bound_models

    model, x, y, loss = getattr(bound_models, name)(batch)
    model.compile(optimizer=optimizer, loss=loss)
    arguments = {"x": x, "y": y, "batch_size": None if y is None else batch, "epochs": 2}
    Path(folder, "cgroup.procs").write_text(str(os.getpid()))
    group = memory_groups(os.getpid())[0]

    def available() -> int:
        numbers = group.limit_bytes(), group.used_bytes(), group.reclaimable_bytes()
        limit, used, cache = (number or 0 for number in numbers)
        return limit - used + cache

    refusal = check_fit(arguments, model, available, group.limit_bytes())
    print("runs" if refusal is None else refusal.text(), flush=True)
    model.fit(**arguments, verbose=0)


def tried(case: str, limit: int) -> tuple[str, int]:
    """What is said about the fit with this limit, and the status of its process."""
    group = LimitedGroup(limit)
    try:
        done = subprocess.run(
            [sys.executable, __file__, "--child", *case.split(), str(group.folder)],
            env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=False,
        )
    finally:
        group.remove()
    return done.stdout.strip(), done.returncode


def main() -> None:
    """Try all cases and print a table; exit with 1 when one is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("truths", type=Path, nargs="?")
    parser.add_argument("--only", nargs="*", default=CASES, metavar="CASE")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        name, batch, optimizer, folder = chosen.child
        child(name, int(batch), optimizer, folder)
        return
    from tests.benchmarks.bound import measured

    truths = json.loads(chosen.truths.read_text())
    wrong = 0
    for case in chosen.only:
        name, batch, optimizer = case.split()
        bound = measured(name, int(batch), optimizer, with_fit=False)
        enough = int(max(one["truth"] for one in truths[case]) * 1.06) + _FILE_BYTES
        little = int(bound["bound"] * 0.95) - bound["reusable"]
        for what, limit in (("enough", enough), ("too little", little)):
            said, status = tried(case, limit)
            is_right = (
                said == "runs" and status == 0
                if what == "enough"
                else "needs" in said and status != 0
            )
            wrong += not is_right
            print(
                f"{case:26} {what:10} {limit / MIB:6.0f} MiB  status {status:3}  {said}", flush=True
            )
    sys.exit(f"{wrong} wrong" if wrong else 0)


if __name__ == "__main__":
    main()
