"""What a look at the GPUs costs the process that makes it: ``python -m tests.benchmarks.gpu_tick [--quick] [--json] [--only NAME]``.

Processor time of a tick for 8 cards with 40 processes, and for one card, before the stand-in for NVIDIA's library: our
reader, with all that it prints, and beside it, by turns in the same run, a plain loop of the same calls with nvidia-ml-py
alone that keeps nothing and prints nothing. The real driver's own time comes on top of both.

Then what the server does with a line of 8 cards and 40 processes, 10 of them kernels: joining them, in the thread that reads the
lines, and putting together what one page is told, on the event loop.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from jupyter_tfguard.server.gpu_state import GpuWatch
from jupyter_tfguard.watch.gpu_map import GpuMap
from tests.rigs.nvml.library import build, environ
from tests.rigs.nvml.reader import Reader
from tests.rigs.nvml.scenario import Scenario, eight_gpus, one_gpu
from tests.watch.gpu_rig import Machine, card, process, told

LIMIT_SECONDS = 0.002
SCENARIOS = {"8 cards, 40 processes": eight_gpus, "1 card, 1 process": one_gpu}
TICK_SECONDS = 0.1
JOINED, ANSWERED = "joins a line", "tells a page"

# What our reader asks at nine ticks of ten.
PLAIN = """
import json, sys, time
import pynvml as n
n.nvmlInit()
handles = [n.nvmlDeviceGetHandleByIndex(i) for i in range(n.nvmlDeviceGetCount())]
costs = []
for _ in range(int(sys.argv[1])):
    began = time.thread_time()
    for h in handles:
        n.nvmlDeviceGetMemoryInfo(h, version=n.nvmlMemory_v2)
        n.nvmlDeviceGetUtilizationRates(h)
        n.nvmlDeviceGetPowerUsage(h)
        n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM)
        n.nvmlDeviceGetCurrentClocksEventReasons(h)
        n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU)
        n.nvmlDeviceGetComputeRunningProcesses_v3(h)
    costs.append(time.thread_time() - began)
    time.sleep(float(sys.argv[2]))
print(json.dumps(costs))
"""


def ours(folder: Path, scenario: Scenario, ticks: int) -> list[float]:
    """Seconds of each tick of our reader but the first, which also reads what never changes."""
    with Reader(folder, folder / "scenario.txt", scenario, TICK_SECONDS) as reader:
        return [reader.line()["cost_seconds"] for _ in range(ticks + 1)][1:]


def plain(folder: Path, scenario: Scenario, ticks: int) -> list[float]:
    """Seconds of each round of the plain loop but the first."""
    path = scenario.save(folder / "scenario.txt")
    done = subprocess.run(
        [sys.executable, "-c", PLAIN, str(ticks + 1), str(TICK_SECONDS)],
        env=os.environ | environ(folder, path),
        capture_output=True,
        check=True,
    )
    costs: list[float] = json.loads(done.stdout)
    return costs[1:]


def in_server(folder: Path, ticks: int) -> dict[str, list[float]]:
    """Seconds of each joining of a line with the kernels, and of each answer to a page; the first line is left out."""
    machine = Machine(folder)
    try:
        kernels = [machine.kernel(f"k{n}") for n in range(10)]
        pids = [*(k.identity.pid for k in kernels), *(machine.has(900_000 + n) for n in range(30))]
        lists = [[process(pid) for pid in pids[5 * n : 5 * n + 5]] for n in range(8)]
        watch = GpuWatch(GpuMap(lambda: machine.witnesses, machine.check))
        costs: dict[str, list[float]] = {JOINED: [], ANSWERED: []}
        for second in range(ticks + 1):
            gpus = told(*(card(n, listed) for n, listed in enumerate(lists)), time=float(second))
            began = time.thread_time()
            watch.take(gpus)
            joined = time.thread_time()
            watch.state(gpus, "k3")
            watch.of_kernel(kernels[3], gpus)
            costs[JOINED].append(joined - began)
            costs[ANSWERED].append(time.thread_time() - joined)
    finally:
        machine.close()
    return {what: values[1:] for what, values in costs.items()}


def figures(costs: list[float]) -> dict[str, Any]:
    """Median and spread, in seconds."""
    cut = statistics.quantiles(costs, n=100)
    return {
        "ticks": len(costs),
        "median_seconds": statistics.median(costs),
        "p5_seconds": cut[4],
        "p95_seconds": cut[94],
        "highest_seconds": max(costs),
    }


def main() -> int:
    """Print the table; 1 when a tick for eight cards costs more than it may."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer ticks")
    parser.add_argument("--json", action="store_true", help="figures only")
    parser.add_argument("--only", choices=SCENARIOS, help="one scenario")
    chosen = parser.parse_args()
    rounds, ticks = (2, 20) if chosen.quick else (5, 60)
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = build(Path(name))
        if folder is None:
            sys.exit("no C compiler here")
        for title, make in SCENARIOS.items():
            if chosen.only in (None, title):
                costs: dict[str, list[float]] = {"ours": [], "plain": []}
                for _ in range(rounds):
                    costs["plain"] += plain(folder, make(), ticks)
                    costs["ours"] += ours(folder, make(), ticks)
                found[title] = {who: figures(values) for who, values in costs.items()}
        if chosen.only is None:
            server = in_server(folder, rounds * ticks)
            found["the server"] = {what: figures(values) for what, values in server.items()}
    if chosen.json:
        print(json.dumps(found))
    else:
        show(found)
    worst = max(of["ours"]["median_seconds"] for of in found.values() if "ours" in of)
    return int(worst > LIMIT_SECONDS)


def show(found: dict[str, dict[str, dict[str, Any]]]) -> None:
    """Print the figures as people read them, in milliseconds."""
    print(f"{'processor time of a tick, ms':32} median   5 %   95 %  highest  ticks")
    for title, of in found.items():
        for who, of_one in of.items():
            keys = ("median_seconds", "p5_seconds", "p95_seconds", "highest_seconds")
            numbers = "  ".join(f"{of_one[key] * 1000:5.2f}" for key in keys)
            print(f"{title + ', ' + who:32} {numbers}   {of_one['ticks']}")
    print(f"limit: median of ours at most {LIMIT_SECONDS * 1000:.0f} ms")


if __name__ == "__main__":
    sys.exit(main())
