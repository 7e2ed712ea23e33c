"""Feeds the readers of recordings and reports with damaged and forged input:

    python tests/rigs/fuzz.py --count N --seed S [--jobs 2] [--json]
    python tests/rigs/fuzz.py --only NUMBER --seed S     one input again, with the whole traceback
    python tests/rigs/fuzz.py --make-corpus              write the files in corpus/ anew

Input `NUMBER` of a seed is always the same. Four in five are record files, which a second reader, written from the page of
the format alone, must read alike; the others are whole recordings, followed files, reports, and bundles to be diagnosed.
Nothing may be raised but the errors that are declared, no input may take 100 ms of processor time, and all inputs of a
process together may not take 64 MiB of memory.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.rigs.fuzz_targets import BUNDLE_ID, CORPUS, RINGS, Targets, Wrong
from tests.rigs.long_run import Progress, Totals, long_run, options, show

LIMIT_SECONDS = 0.1
LIMIT_BYTES = 64 * 1024 * 1024
BAD = ("slow", "undeclared", "disagreed", "memory")


class Fuzz:
    """The work of one process: makes inputs and checks them."""

    def __init__(self, seed: int, base: Path) -> None:
        self._seed, self._base = seed, base

    def __call__(self, first: int, end: int, progress: Progress) -> Totals:
        """Try the inputs `first` .. `end`."""
        totals: Totals = dict.fromkeys(("inputs", *BAD), 0) | {"kinds": {}, "failures": []}
        kinds = totals["kinds"]
        slowest = 0.0
        with tempfile.TemporaryDirectory(dir=self._base) as folder:
            targets = Targets(Path(folder))
            gc.collect()
            before = _limit_memory()
            for number in range(first, end):
                progress.at(number)
                began = time.process_time()
                try:
                    kind = targets.one(self._seed, number)
                    kinds[kind] = kinds.get(kind, 0) + 1
                except Wrong as bad:
                    self._count("disagreed", number, str(bad), totals)
                except MemoryError:
                    self._count("memory", number, "more than 64 MiB", totals)
                except Exception:
                    self._count("undeclared", number, traceback.format_exc()[-500:], totals)
                took = time.process_time() - began
                slowest = max(slowest, took)
                if took > LIMIT_SECONDS:
                    self._count("slow", number, f"{took:.3f} s", totals)
            totals["inputs"] = end - first
            totals["highest_milliseconds"] = round(1000 * slowest, 2)
            totals["highest_memory_kib"] = max(0, _resident_kib() - before)
        return totals

    def _count(self, name: str, number: int, text: str, totals: Totals) -> None:
        totals[name] += 1
        # Of what fails alike, a few are enough to look at.
        alike = [f for f in totals["failures"] if str(f.get(name))[-60:] == text[-60:]]
        if len(alike) < 2:
            totals["failures"].append({"input": number, name: text})


@contextlib.contextmanager
def folder_in_memory() -> Iterator[Path]:
    """A folder of our own, on a file system in memory where there is one: the disk is not what is tried."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    path = Path(tempfile.mkdtemp(prefix="tfguard-fuzz-", dir=base))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _limit_memory() -> int:
    """From here on this process gets 64 MiB more, and MemoryError beyond. Returns its highest resident KiB so far."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + LIMIT_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    return _resident_kib()


def _resident_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def make_corpus() -> None:
    """Write the corpus anew, with the product's own writer, in small sizes."""
    from jupyter_tfguard.diagnosis.diagnose import diagnose
    from jupyter_tfguard.metrics import Metric, Sample, Unit
    from jupyter_tfguard.postmortem.capture import capture
    from jupyter_tfguard.record import recording as module
    from jupyter_tfguard.record.bundle import BundleStore
    from jupyter_tfguard.record.identity import ProcessIdentity
    from jupyter_tfguard.report.wire import to_entry_and_report

    for name in ("SAMPLES", "SECONDS", "MINUTES", "EVENTS"):
        setattr(module, f"{name}_CAPACITY", 8)
    module.EVENT_RECORD_BYTES = 256
    metrics = [
        Metric("process.rss_bytes", "Resident memory", Unit.BYTES, "VmRSS"),
        Metric("cgroup.used_bytes", "Used by the cgroup", Unit.BYTES, "memory.current"),
        Metric("host.available_bytes", "Available", Unit.BYTES, "MemAvailable"),
    ]
    header = {
        "kernel_id": "corpus",
        "notebook_path": "train.ipynb",
        "parent_pid": 1,
        "guard": {"problems": []},
    }
    with tempfile.TemporaryDirectory(prefix="tfguard-corpus-") as folder:
        identity = ProcessIdentity(4711, 815)
        recording = module.Recording(Path(folder), identity, header, metrics)
        for number in range(1, 13):
            values = {m.name: number * 1e6 for m in metrics[: 1 + number % 3]}
            moment = 20.0 * number
            recording.sample(Sample(number, 1000 + moment, 1.8e9 + moment, values))
        recording.event("cell_start", number=1, text="history = model.fit(images, labels)")
        recording.event("fit_start", what="fit", batch_size=32, optimizer="Adam" * 60)
        recording.event("limit", text="host memory é" * 40)
        for step in (1, 2):
            recording.set_progress({"step": step, "epoch": 1, "loss": 0.5, "kind": "fit"})
            device = {"device": "GPU:0", "in_use_bytes": step << 30, "peak_bytes": 3 << 30}
            recording.set_gpu_memory([device, device | {"device": "GPU:1"}])
        recording.end("quit")
        place = recording.folder.path
        recording.close()
        (place / "fault.txt").write_text(
            "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f3a (most recent call first):\n"
            '  File "/tmp/ipykernel_4711/1234567890.py", line 4 in poke\n'
        )
        (place / "signal-SIGTERM.txt").write_text('  File "<stdin>", line 1 in <module>\n')
        (place / "stderr.0.txt").write_text("Check failed: 1 == 2\nfree(): invalid pointer\n")
        bundle = capture(identity=identity, recording=place)
        bundle["id"] = BUNDLE_ID
        entry, report = to_entry_and_report(bundle, diagnose(bundle))
        store = BundleStore(Path(folder) / "bundles")
        store.save(bundle, report, entry)
        shutil.rmtree(CORPUS, ignore_errors=True)
        (CORPUS / "recording").mkdir(parents=True)
        for path in place.iterdir():
            if path.stat().st_size:
                shutil.copy(path, CORPUS if path.name in RINGS else CORPUS / "recording")
        shutil.copytree(store.root / BUNDLE_ID, CORPUS / "bundle")


def main() -> int:
    """Run what the command line asks for."""
    parser = options(str(__doc__).splitlines()[0].rstrip(":"), count=20_000)
    parser.add_argument("--only", type=int, metavar="NUMBER", help="one input")
    parser.add_argument("--make-corpus", action="store_true")
    chosen = parser.parse_args()
    if chosen.make_corpus:
        make_corpus()
        return 0
    if chosen.only is not None:
        with folder_in_memory() as folder:
            print(Targets(folder).one(chosen.seed, chosen.only))
        return 0
    with folder_in_memory() as base:
        totals = long_run(
            Fuzz(chosen.seed, base),
            chosen.count,
            piece=20_000 if chosen.count > 200_000 else 2_500,
            jobs=chosen.jobs,
        )
    return show(totals | {"seed": chosen.seed}, as_json=chosen.json, bad=BAD)


if __name__ == "__main__":
    sys.exit(main())
