"""The test suites of ipykernel, jupyter_client, nbclient and nbconvert, without the guard and with it.

Apart from the normal tests, because it downloads the source distributions and makes two environments:

    python tests/soak/guests.py [--only NAME ...] [--keep FOLDER] [--json]

The versions are those installed here. A test that passes without the guard and not with it runs again, alone, in both
environments. Exit code 1 when one differs again, or when no kernel of the suite was guarded.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.rigs.environments import installed_environment  # noqa: E402
from tests.rigs.trials import Outcome, build_wheel, try_rows  # noqa: E402

# What the four suites need.
_TOOLS = (
    "flaky",
    "ipyparallel",
    "matplotlib",
    "msgpack",
    "pytest>=9.0.1,<10",
    "pytest-asyncio>=1.3",
    "pytest-cov",
    "pytest-jupyter[client]",
    "pytest-timeout",
    "testpath",
    "xmltodict",
)
_TEST_SECONDS = 300
_SUITE_SECONDS = 3 * 3600
# Node id of a test, and "passed", "failed" or "skipped".
Results = dict[str, str]


@dataclass(frozen=True)
class Guest:
    """A package and its test suite."""

    name: str

    @property
    def requirement(self) -> str:
        """The version that is installed here."""
        return f"{self.name}=={version(self.name)}"


@dataclass(frozen=True)
class Environments:
    """Their interpreters."""

    bare: Path
    guarded: Path


GUESTS = tuple(map(Guest, ("ipykernel", "jupyter_client", "nbclient", "nbconvert")))


def prepare(folder: Path) -> Environments:
    """Two environments with the same packages, but for tfguard."""
    packages = [*(guest.requirement for guest in GUESTS), *_TOOLS, str(build_wheel(folder))]
    bare = installed_environment(folder / "bare", packages)
    guarded = installed_environment(folder / "guarded", packages)
    remove = [str(bare), "-m", "pip", "uninstall", "-q", "-y", "jupyter_tfguard"]
    subprocess.run(remove, check=True, capture_output=True)
    return Environments(bare, guarded)


def trial(guest: Guest, made: Environments, folder: Path) -> Outcome:
    """Run the suite in both environments and compare the outcomes test by test."""
    suite = _suite(guest, made, folder)
    data = folder / f"{guest.name}-recordings"
    shutil.rmtree(data, ignore_errors=True)
    bare = _run(suite, made.bare, data)
    guarded = _run(suite, made.guarded, data)
    was_guarded = (data / "recordings").is_dir()
    worse = [
        test
        for test in passing_bare_only(bare, guarded)
        if _fails_alone_when_guarded(suite, test, made, data)
    ]
    text = f"bare: {counts(bare)}; guarded: {counts(guarded)}"
    if not was_guarded:
        text += "\n    no kernel was guarded"
    for test in worse:
        text += f"\n    passes bare only: {test}"
    return "FAILED" if worse or not was_guarded else "ok", text


def _suite(guest: Guest, made: Environments, folder: Path) -> Path:
    """A folder with the tests only, so that they import the installed package."""
    suite = folder / guest.name
    if suite.exists():
        return suite
    with tempfile.TemporaryDirectory(dir=folder) as place:
        pip = [str(made.bare), "-m", "pip", "download", "-q", "--no-deps", "-d", place]
        subprocess.run([*pip, "--no-binary", guest.name, guest.requirement], check=True)
        shutil.unpack_archive(next(Path(place).glob("*.tar.gz")), place)
        source = next(path for path in Path(place).iterdir() if path.is_dir())
        suite.mkdir()
        shutil.copytree(source / "tests", suite / "tests")
        shutil.copy(source / "pyproject.toml", suite)
    return suite


def _run(suite: Path, python: Path, data: Path, tests: str = "tests") -> Results:
    """What came of each test."""
    with (
        tempfile.TemporaryDirectory(prefix="guests-") as place,
        open(suite / f"{python.parents[1].name}.txt", "ab") as log,
    ):
        keep = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TFGUARD_", "PYTEST_", "JUPYTER_", "IPYTHON"))
        }
        report = Path(place) / "report.xml"
        options = (
            "addopts=",
            "junit_family=xunit1",
            "asyncio_default_fixture_loop_scope=function",
            f"timeout={_TEST_SECONDS}",
            "timeout_method=signal",  # the other method ends the whole run
        )
        subprocess.run(
            [
                *(str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider"),
                *(word for option in options for word in ("-o", option)),
                *(f"--junit-xml={report}", f"--basetemp={place}/tests", tests),
            ],
            cwd=suite,
            env=keep
            | {
                "HOME": place,
                "TMPDIR": place,
                "TFGUARD_DIR": str(data),
                "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            timeout=_SUITE_SECONDS,
            check=False,
        )
        return results_of(report)


def results_of(report: Path) -> Results:
    """What came of each test, from pytest's XML report of the family "xunit1"."""
    found: Results = {}
    for case in ElementTree.parse(report).iter("testcase"):
        file = case.get("file", "")
        module = file.removesuffix(".py").replace("/", ".")
        group = case.get("classname", "").removeprefix(module).strip(".").replace(".", "::")
        parts = (file, group, case.get("name", ""))
        found["::".join(part for part in parts if part)] = _outcome(case)
    return found


def _outcome(case: ElementTree.Element) -> str:
    kinds = {child.tag for child in case}
    if kinds & {"failure", "error"}:
        return "failed"
    return "skipped" if "skipped" in kinds else "passed"


def passing_bare_only(bare: Results, guarded: Results) -> list[str]:
    """The tests that pass bare and do not pass guarded."""
    passed = (test for test, outcome in bare.items() if outcome == "passed")
    return [test for test in passed if guarded.get(test) != "passed"]


def _fails_alone_when_guarded(suite: Path, test: str, made: Environments, data: Path) -> bool:
    bare, guarded = (_run(suite, python, data, test) for python in (made.bare, made.guarded))
    return bool(passing_bare_only({test: "passed"} | bare, guarded))


def counts(results: Results) -> str:
    """How many passed, failed and were skipped, as text."""
    counted = Counter(results.values())
    return ", ".join(f"{counted[kind]} {kind}" for kind in ("passed", "failed", "skipped"))


if __name__ == "__main__":
    sys.exit(
        try_rows(
            "The test suites of Jupyter's packages, without the guard and with it.",
            GUESTS,
            prepare,
            trial,
        )
    )
