"""Core tests of NumPy and Keras inside a kernel, without the guard and with its stop at the strongest level.

Apart from the normal tests, because it takes an hour and downloads what the suites need:

    python -m tests.rigs.gated_suites [--only NAME ...] [--keep FOLDER] [--json]

Runs in an environment in which jupyter-tfguard is installed. The tests are those in the installed packages. A test that passes
without the guard and not with it runs again, alone, in both kernels. Exit code 1 when one differs again, none passes, or the allocation gate was not armed. A test file whose packages are
missing is an error in both; Keras needs scipy, torch, jax and grain for all of its files.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tests.conftest import write_options
from tests.kernel.rig import guarded_kernel
from tests.rigs.guests import Results, counts, passing_bare_only, results_of
from tests.rigs.trials import Outcome, try_rows

_TOOLS = ("hypothesis", "pytest-timeout")
_TEST_SECONDS = 300
_SUITE_SECONDS = 3 * 3600
_RUN = """
import pytest
print(int(pytest.main([
    "-q", "-c", {ini!r}, "--rootdir", {root!r}, "--junit-xml", {report!r}, "--capture=sys",
    "-p", "no:faulthandler", "-p", "no:cacheprovider", "--continue-on-collection-errors", *{tests!r},
])))
"""
_GATE = """
from jupyter_tfguard.kernel.current import current
stop = current().stop
print(stop.state()["state"], sorted(name for name, reason in stop.guard.parts.items() if reason is None))
"""


@dataclass(frozen=True)
class Suite:
    """Tests of an installed package.

    Attributes:
        name: The package.
        folders: Where its tests are, below the package.
        parts: Of the gate, which must be armed.
    """

    name: str
    folders: tuple[str, ...]
    parts: tuple[str, ...]

    @property
    def root(self) -> Path:
        """The folder of the package."""
        spec = find_spec(self.name)
        assert spec is not None
        assert spec.origin is not None
        return Path(spec.origin).parent

    @property
    def tests(self) -> list[str]:
        """Folders to run."""
        return [str(self.root / folder) for folder in self.folders]


SUITES = (
    Suite("numpy", ("_core/tests", "lib/tests", "ma/tests"), ("numpy", "python")),
    Suite(
        "keras",
        (
            "src/backend/tests",
            "src/callbacks",
            "src/layers/core",
            "src/layers/convolutional",
            "src/models",
            "src/ops",
            "src/optimizers",
            "src/trainers",
        ),
        ("numpy", "python", "tensorflow"),
    ),
)


def prepare(folder: Path) -> Path:
    """A folder with the tools that the suites import, and that this environment may lack."""
    tools = folder / "tools"
    if not tools.exists():
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(tools)]
        subprocess.run([*pip, *_TOOLS, "sortedcontainers"], check=True)
    return tools


def trial(suite: Suite, tools: Path, folder: Path) -> Outcome:
    """Run the suite in both kernels and compare the outcomes test by test."""
    bare, _ = _run(suite, tools, folder, suite.tests, guarded=False)
    guarded, gate = _run(suite, tools, folder, suite.tests, guarded=True)
    differing = []
    for test in passing_bare_only(bare, guarded):
        alone = [str(suite.root.parent / test)]
        again = [_run(suite, tools, folder, alone, guarded=one)[0] for one in (False, True)]
        differing += passing_bare_only({test: "passed"} | again[0], again[1])
    is_armed = gate.startswith("on") and all(repr(part) in gate for part in suite.parts)
    text = f"bare: {counts(bare)}; guarded: {counts(guarded)}; gate: {gate}"
    for test in differing:
        text += f"\n    passes bare only: {test}"
    has_passed = "passed" in bare.values()
    return "ok" if is_armed and has_passed and not differing else "FAILED", text


def _run(
    suite: Suite, tools: Path, folder: Path, tests: list[str], *, guarded: bool
) -> tuple[Results, str]:
    """What came of each test, and the state of the gate afterwards."""
    place = folder / suite.name / ("guarded" if guarded else "bare")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    write_options(place / "config", "full")
    ini, report = place / "pytest.ini", place / "report.xml"
    ini.write_text(f"[pytest]\njunit_family = xunit1\ntimeout = {_TEST_SECONDS}\n")
    environment = {
        "PYTHONPATH": str(tools),
        "KERAS_HOME": str(place),
        "KERAS_BACKEND": "tensorflow",
        "NPY_AVAILABLE_MEM": "2 GB",  # some tests of NumPy would take half of a machine's memory
    }
    if not guarded:
        environment["TFGUARD_DISABLE"] = "1"
    code = _RUN.format(ini=str(ini), root=str(suite.root.parent), report=str(report), tests=tests)
    with guarded_kernel(place, environment=environment) as kernel:
        ran = kernel.run(code, timeout=_SUITE_SECONDS)
        (place / "output.txt").write_text(ran.text)
        state = kernel.run(_GATE) if guarded else None
    return results_of(report), "" if state is None else state.stdout.strip() or str(state.error)


if __name__ == "__main__":
    sys.exit(try_rows(__doc__.partition("\n")[0], SUITES, prepare, trial))
