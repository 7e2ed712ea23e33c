"""Our figures of a real NVIDIA card beside those of ``nvidia-smi`` and of the framework that holds the memory.

A child process takes memory on the card in steps (``gpu_users.py``: TensorFlow, else the CUDA driver
alone). After each step the process that reads the GPUs for the panel, and ``nvidia-smi``, are asked the same. Printed: device
total, used and free, the child's memory, how much more it is than at the first use beside what the framework says that it took, ratios,
and the processor time of a tick beside that of the same questions asked with nvidia-ml-py alone. With TensorFlow also what
it takes at its first use without memory growth, with the variable that the guard sets, and with a cap.

It takes at most a quarter of what is free, provokes no fault, and changes nothing on the card.
Exit code 2 where there is no card to look at.

``python tests/bench/gpu_truth.py [--framework NAME] [--json]``
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.bench.bench import machine, summary
from tests.bench.gpu_users import NAMES

USERS = Path(__file__).with_name("gpu_users.py")
TICKS = 30
MIB = 1 << 20
FIGURES = ("total", "used", "free", "process")
# What a step of the child changes is in the driver's books within milliseconds; one whole tick lies between.
SETTLE_TICKS = 2
# name: environment of TensorFlow for its first use
GROWTH = {
    "TensorFlow's default": {"TF_FORCE_GPU_ALLOW_GROWTH": "false"},
    "growth, as the guard sets it": {"TF_FORCE_GPU_ALLOW_GROWTH": "true"},
    "TF_PER_DEVICE_MEMORY_LIMIT_MB=2048": {"TF_PER_DEVICE_MEMORY_LIMIT_MB": "2048"},
    "the same, with growth": {
        "TF_PER_DEVICE_MEMORY_LIMIT_MB": "2048",
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    },
}

Row = dict[str, Any]


class Reader:
    """The process that reads the GPUs, as the server starts it, and the newest of its lines."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "jupyter_tfguard.collectors.gpu", "0.2"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def line(self) -> Row:
        """The next line."""
        assert self._process.stdout is not None
        found = self._process.stdout.readline()
        if not found:
            raise SystemExit("the process that reads the GPUs ended")
        told: Row = json.loads(found)
        return told

    def now(self) -> Row:
        """A line that was taken after this call."""
        asked = time.time()
        told = self.line()
        while told["state"] == "ok" and told["time"] <= asked:
            told = self.line()
        for _ in range(SETTLE_TICKS if told["state"] == "ok" else 0):
            told = self.line()
        return told

    def stop(self) -> None:
        """End it, as a server does: by closing its input."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)


def smi(query: str, *fields: str) -> list[dict[str, float | None]]:
    """What ``nvidia-smi`` says, one dictionary per line; MiB as bytes, None where it does not tell."""
    command = ["nvidia-smi", f"--query-{query}={','.join(fields)}", "--format=csv,noheader,nounits"]
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    rows = csv.reader(text.splitlines(), skipinitialspace=True)
    return [dict(zip(fields, map(_number, row), strict=False)) for row in rows]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


@contextmanager
def child(framework: str, sizes: list[int], environment: dict[str, str]) -> Iterator[Any]:
    """A user of GPU memory; calling it takes the next step and gives its line, None after the last."""
    command = [sys.executable, str(USERS), framework, *map(str, sizes)]
    given = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "0"} | environment
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=given, text=True
    ) as process:
        begun = False

        def step() -> Row | None:
            nonlocal begun
            assert process.stdin is not None
            assert process.stdout is not None
            if begun:
                process.stdin.write("\n")
                process.stdin.flush()
            begun = True
            line = process.stdout.readline()
            told: Row | None = json.loads(line) if line else None
            return told

        try:
            yield step
        finally:
            process.kill()


def compared(reader: Reader, told: Row) -> Row:
    """One step: what each of the three says."""
    device = reader.now()["devices"][0]
    own = [p for p in device["processes"] or () if p["pid"] == told["pid"]]
    card = smi("gpu", "memory.total", "memory.used", "memory.free")[0]
    apps = [app for app in smi("compute-apps", "pid", "used_memory") if app["pid"] == told["pid"]]
    return {
        "step": told["step"],
        "held_by_framework": told["held_bytes"],
        **{f"{name}_ours": device[f"memory_{name}_bytes"] for name in ("total", "used", "free")},
        **{f"{name}_smi": _bytes(card[f"memory.{name}"]) for name in ("total", "used", "free")},
        "process_ours": own[0]["used_bytes"] if own else None,
        "process_smi": _bytes(apps[0]["used_memory"]) if apps else None,
        "processes_note": device["processes_reason"],
    }


def _bytes(mib: float | None) -> float | None:
    return None if mib is None else mib * MIB


def truth(reader: Reader, framework: str) -> tuple[str, list[Row]] | str:
    """The comparison with one framework, and its version; a sentence where it cannot be had."""
    free = reader.now()["devices"][0]["memory_free_bytes"]
    sizes = [size for size in (256 * MIB, 1024 * MIB, 4096 * MIB) if size < free / 8]
    rows = []
    with child(framework, sizes, {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}) as step:
        version = ""
        while (told := step()) is not None:
            if "missing" in told:
                return str(told["missing"])
            version = str(told["version"])
            rows.append(compared(reader, told))
    return f"{framework} {version}", rows


def first_use(reader: Reader, environment: dict[str, str]) -> float | None:
    """Bytes that a TensorFlow process holds after its first use of the card."""
    with child("tensorflow", [], environment) as step:
        for name in ("loaded", "first use"):
            told = step()
            if told is None or told.get("step") != name:
                return None
        found: float | None = compared(reader, told)["process_ours"]
        return found


def costs(reader: Reader) -> dict[str, list[float]]:
    """Milliseconds of processor time: a tick of ours, and the same questions asked plainly."""
    peer = (
        "import json, pynvml as n, time\nn.nvmlInit()\n"
        "cards = [n.nvmlDeviceGetHandleByIndex(i) for i in range(n.nvmlDeviceGetCount())]\n"
        f"for _ in range({TICKS}):\n    began = time.process_time()\n    for card in cards:\n"
        "        n.nvmlDeviceGetMemoryInfo(card, n.nvmlMemory_v2)\n"
        "        for ask in (n.nvmlDeviceGetUtilizationRates, n.nvmlDeviceGetPowerUsage,\n"
        "                    n.nvmlDeviceGetComputeRunningProcesses):\n            ask(card)\n"
        "        n.nvmlDeviceGetTemperature(card, 0)\n"
        "    print(json.dumps(1000 * (time.process_time() - began)), flush=True)\n    time.sleep(0.05)"
    )
    ours = [1000 * reader.line()["cost_seconds"] for _ in range(TICKS)]
    done = subprocess.run(
        [sys.executable, "-c", peer], capture_output=True, text=True, check=True, timeout=120
    )
    return {"tick, ours": ours, "nvidia-ml-py alone": [float(x) for x in done.stdout.split()]}


def ratio(row: Row, above: str, below: str) -> float | None:
    """One figure over another; None where one is not told."""
    return row[above] / row[below] if row[above] is not None and row[below] else None


def show(name: str, rows: list[Row]) -> None:
    """The table of one framework."""
    print(f"\n{name}\n{'step':12} {'figure':9} {'ours':>12} {'nvidia-smi':>12} {'ratio':>8}   MiB")
    for row in rows:
        for figure in FIGURES:
            ours, theirs = row[f"{figure}_ours"], row[f"{figure}_smi"]
            found = ratio(row, f"{figure}_ours", f"{figure}_smi")
            told = "-" if found is None else f"{found:.4f}"
            print(f"{row['step']:12} {figure:9} {_mib(ours):>12} {_mib(theirs):>12} {told:>8}")
    start = next((row for row in rows if row["step"] == "first use"), None)
    for row in rows:
        if start and row["process_ours"] and start["process_ours"] and row["held_by_framework"]:
            grown = row["process_ours"] - start["process_ours"]
            told = row["held_by_framework"] - (start["held_by_framework"] or 0)
            print(f"{row['step']:12} more than at the first use: ours {_mib(grown)}, framework {_mib(told)}")  # fmt: skip
    for figure, most in deviation(rows).items():
        told = "not told by both" if most is None else f"{100 * most:.2f} %"
        print(f"{figure}: ours differs from nvidia-smi's by at most {told}")
    for note in {row["processes_note"] for row in rows} - {None}:
        print(f"note: {note}")


def deviation(rows: list[Row]) -> dict[str, float | None]:
    """By figure, how far ours was from nvidia-smi's at most, as a fraction; None where one of them was never told."""
    found: dict[str, float | None] = {}
    for figure in FIGURES:
        ratios = (ratio(row, f"{figure}_ours", f"{figure}_smi") for row in rows)
        found[figure] = max((abs(r - 1) for r in ratios if r is not None), default=None)
    return found


def _mib(value: float | None) -> str:
    return "-" if value is None else f"{value / MIB:.1f}"


def main() -> int:
    """Compare; the exit code."""
    parser = argparse.ArgumentParser(description="our figures of a card beside nvidia-smi's")
    parser.add_argument("--framework", choices=NAMES, action="append", help="may be repeated")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    reader = Reader()
    try:
        first = reader.line()
        if first["state"] != "ok" or shutil.which("nvidia-smi") is None:
            print(f"Nothing to compare with: {first['reason'] or 'nvidia-smi is not here'}.")
            return 2
        found: dict[str, Any] = {"frameworks": {}, "missing": {}, "growth": {}}
        for framework in options.framework or NAMES:
            told = truth(reader, framework)
            if isinstance(told, str):
                found["missing"][framework] = told
                continue
            found["frameworks"][told[0]] = told[1]
            if framework == "tensorflow":
                found["growth"] = {n: first_use(reader, e) for n, e in GROWTH.items()}
        measured = costs(reader)
    finally:
        reader.stop()
    cost = {n: summary([{"ms": v} for v in values])["ms"] for n, values in measured.items()}
    if options.json:
        print(json.dumps(found | {"cost": cost, "card": first["devices"][0]["name"]} | machine()))
        return 0
    print(f"{first['devices'][0]['name']}, {len(first['devices'])} in all\n{machine()}")
    for name, rows in found["frameworks"].items():
        show(name, rows)
    for name, why in found["missing"].items():
        print(f"\n{name}: {why}")
    for name, held in found["growth"].items():
        print(f"TensorFlow's first use, {name}: {_mib(held)} MiB")
    print("\nprocessor time, ms:")
    for name, s in cost.items():
        print(f"{name:22} median {s['median']:.3f}  10 % {s['low']:.3f}  90 % {s['high']:.3f}")
    medians = [statistics.median(values) for values in measured.values()]
    print(f"ratio plain / ours: {medians[1] / medians[0]:.2f}" if medians[0] else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
