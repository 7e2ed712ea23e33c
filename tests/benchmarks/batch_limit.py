"""Does the batch that the search names fit, and how long does the search take: ``python -m tests.benchmarks.batch_limit``.

A process in a memory group with a real limit searches the batch size for a model. Then a fresh process in the same group
trains six steps with that batch, and another one with 1.3 times as much: the first must live, the second should be killed.
``--beside PATH`` searches with the build of another checkout too, by its own ``.venv``, one after the other for each model. Needs the right to make memory groups.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from jupyter_tfguard.units import GIB  # noqa: E402
from tests.benchmarks.bound import Killed, in_fresh_process  # noqa: E402
from tests.crash.settings import memory_limit  # noqa: E402

CHILD = Path(__file__).with_name("batch_limit_child.py")
LARGER = 1.3
START_BATCH = 32
# Of prediction_models.py.
MODELS = (
    "autoencoder",
    "cnn_flat",
    "cnn_photo",
    "conv1d",
    "conv3d",
    "convlstm",
    "custom_step",
    "gru_stack",
    "lstm",
    "resnet",
    "separable",
    "subclassed",
    "transformer",
    "unet",
    "vit",
)


def main() -> None:
    """Search and verify for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=MODELS, metavar="NAME")
    parser.add_argument("--limit-gib", type=float, default=4.0)
    parser.add_argument("--beside", type=Path, metavar="PATH", help="another checkout")
    chosen = parser.parse_args()
    limit_bytes = int(chosen.limit_gib * GIB)
    with memory_limit(limit_bytes) as limit:
        if chosen.beside is None:
            alone(limit, limit_bytes, chosen.only)
        else:
            beside(limit, limit_bytes, chosen.only, chosen.beside)


def alone(limit: Any, limit_bytes: int, names: Sequence[str]) -> None:
    """Search with this build, and try more than it found."""
    held = killed = 0
    print(
        f"| model | batch, trials, time, processor time | found | used | {LARGER} times |\n|---|---|---|---|---|"
    )
    for name in names:
        found = search(limit, name, ROOT)
        fit, larger = used(limit, name, found), used(limit, name, found, LARGER)
        held, killed = held + (fit is not None), killed + (larger is None)
        how = "tried" if found["was_tried"] else "extrapolated"
        print(
            f"| {name} | {cell(found)} | {how} | {share(fit, limit_bytes)} | {share(larger, limit_bytes)} |",
            flush=True,
        )
    print(f"\n{held} of {len(names)} fit; {LARGER} times as much was killed in {killed}")


def beside(limit: Any, limit_bytes: int, names: Sequence[str], other: Path) -> None:
    """Search with another build and with this one, and train with what this one found; with the other batch if it is larger."""
    ratios: dict[str, list[float]] = {"Time": [], "Processor time": [], "Batch size": []}
    print(
        "| model | before: batch, trials, time, processor time | now | used before | used now | time | processor time |"
    )
    print("|---|---|---|---|---|---|---|", flush=True)
    for name in names:
        before, now = (search(limit, name, build) for build in (other, ROOT))
        is_smaller = now["batch_size"] < before["batch_size"]
        earlier = share(used(limit, name, before), limit_bytes) if is_smaller else ""
        shares = [earlier, share(used(limit, name, now), limit_bytes)]
        keys = ("seconds", "cpu_seconds", "batch_size")
        for found, key in zip(ratios.values(), keys, strict=True):
            found.append(now[key] / before[key])
        times = [f"{found[-1]:.2f}" for found in ratios.values()][:2]
        print(f"| {' | '.join([name, cell(before), cell(now), *shares, *times])} |", flush=True)
    for what, found in ratios.items():
        middle = statistics.median(found)
        print(f"{what}, now to before: median {middle:.2f} ({min(found):.2f} to {max(found):.2f}).")


def search(limit: Any, name: str, build: Path) -> dict[str, Any]:
    """What a search within the limit found, and how long it took.

    Raises:
        SystemExit: It was killed, or found no batch.
    """
    found = run(limit, "search", name, START_BATCH, build)
    if found is None or not found["batch_size"]:
        sys.exit(
            f"The search for {name} with {build} {'found nothing' if found else 'was killed'}."
        )
    return found


def cell(found: dict[str, Any]) -> str:
    """The cell of a search in the table."""
    times = (found["seconds"], found["cpu_seconds"])
    return ", ".join(
        [str(found["batch_size"]), str(found["trial_count"]), *(f"{one:.1f} s" for one in times)]
    )


def used(
    limit: Any, name: str, found: dict[str, Any], factor: float = 1.0
) -> dict[str, Any] | None:
    """A fit of the found batch in a fresh process within the limit; None if it was killed."""
    return run(limit, "fit", name, round(factor * found["batch_size"]), ROOT)


def share(fit: dict[str, Any] | None, limit_bytes: int) -> str:
    """The part of the limit that a fit used at its peak."""
    return "killed" if fit is None else f"{fit['peak_bytes'] / limit_bytes:.0%}"


def run(limit: Any, mode: str, name: str, batch: int, build: Path) -> dict[str, Any] | None:
    """The result of one process within the limit; None if it was killed."""
    python = sys.executable if build == ROOT else build / ".venv" / "bin" / "python"
    words = (str(CHILD), str(build), mode, name, str(batch))
    try:
        return in_fresh_process(*words, limit=limit, python=python)
    except Killed:
        return None


if __name__ == "__main__":
    main()
