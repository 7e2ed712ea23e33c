"""What the guard costs at kernel start and at rest: ``python tests/bench/kernel_start.py [--quick]``.

Cases: ``guarded`` and ``bare`` start kernels; ``rest`` watches the guard's threads in an idle kernel.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.bench.bench import Bench, paired
from tests.kernel.rig import STARTUP_FILE, guarded_kernel

# Run before all startup files: the guard's own is timed where it would run, imports included.
TIMED = f"""
import os as _os, time as _time
_began = _time.perf_counter()
exec(compile(open({str(STARTUP_FILE)!r}).read(), "startup", "exec"))
_os.environ["STARTED"] = str(_time.perf_counter() - _began)
del _os, _time, _began
"""
REST = """
import os, threading, time
def cpu_seconds():
    ids = [t.native_id for t in threading.enumerate() if t.name.startswith("tfguard")]
    return sum(int(open(f"/proc/self/task/{i}/schedstat").read().split()[0]) for i in ids) / 1e9
"""


def environment(cache: Path, *, guarded: bool) -> dict[str, str]:
    """With compiled modules, as an installer leaves them."""
    found = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(cache)}
    return found if guarded else found | {"TFGUARD_DISABLE": "1"}


def start(cache: Path, *, guarded: bool) -> dict[str, float]:
    """Start one kernel; seconds of the guard's start and of the whole kernel's."""
    how = environment(cache, guarded=guarded)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        with guarded_kernel(
            Path(folder), environment=how, before=TIMED if guarded else ""
        ) as kernel:
            found = {"kernel_start_seconds": time.perf_counter() - began}
            if guarded:
                found["guard_start_seconds"] = float(
                    kernel.run("import os; print(os.environ['STARTED'])").stdout
                )
    return found


def rest(seconds: float) -> dict[str, float]:
    """Share of a core that the guard's threads take while nothing happens."""
    with tempfile.TemporaryDirectory() as folder, guarded_kernel(Path(folder)) as kernel:
        kernel.run(REST + "before = cpu_seconds(); began = time.monotonic()")
        time.sleep(seconds)
        ran = kernel.run("print((cpu_seconds() - before) / (time.monotonic() - began))")
        return {"core_fraction": float(ran.stdout)}


def main() -> None:
    """Measure and print."""
    bench = Bench(
        "kernel_start",
        "Guard start in a kernel, and cost at rest",
        repetitions=20,
        quick_repetitions=3,
    )
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        start(cache, guarded=True)  # fills the cache
        rows = bench.run(
            {
                "guarded": lambda: start(cache, guarded=True),
                "bare": lambda: start(cache, guarded=False),
                "rest": lambda: rest(4.0 if bench.quick else 15.0),
            }
        )
    number = "kernel_start_seconds"
    ratios = paired(rows, ("guarded", number), ("bare", number))
    bench.report(rows, {f"{number}, guarded / bare": ratios})


if __name__ == "__main__":
    main()
