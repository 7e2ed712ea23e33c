"""What a bundle is told of the crashes before it, and what comes of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.config import TfGuard
from jupyter_tfguard.postmortem.capture import capture
from jupyter_tfguard.postmortem.handle import EARLIER_LIMIT, Postmortem
from jupyter_tfguard.record.bundle import BundleStore
from jupyter_tfguard.record.facts import ExitFacts, ServerFacts
from jupyter_tfguard.record.identity import ProcessIdentity

pytestmark = pytest.mark.quick

NOW = time.time()


@pytest.fixture
def postmortem(data_folder: Path) -> Postmortem:
    return Postmortem(data_folder / "recordings", BundleStore(data_folder / "bundles"), TfGuard())


def crash(
    ago: float, signal: str = "SIGSEGV", *, alive: bool = False, pid: int = 4711, **whose: str
) -> dict[str, Any]:
    facts = ServerFacts(
        exit=None if alive else ExitFacts(signal, None, "waitid"),
        died=NOW - ago,
        kernel_alive=alive,
    )
    told = {"kernel_id": "k1", "notebook_path": "train.ipynb"} | whose
    return capture(identity=ProcessIdentity(pid, 1), server=facts, **told)


def others_of(postmortem: Postmortem, bundle: dict[str, Any]) -> list[str]:
    entry = postmortem.report(bundle)
    report = postmortem._store.report(entry["id"])
    return [finding["cause"] for finding in report["other_findings"]]


def test_a_bundle_has_the_crashes_before_it(postmortem: Postmortem) -> None:
    postmortem.report(crash(3000, "SIGBUS", notebook_path="other.ipynb", kernel_id="k2"))
    postmortem.report(crash(2000, alive=True))
    postmortem.report(crash(90_000))
    bundle = crash(0)
    postmortem.report(bundle)
    child, told = bundle["earlier_deaths"]
    assert (child["kernel_alive"], child["kernel_id"]) == (True, "k1")
    assert told == {
        "kernel_alive": False,
        "cause": "segfault_native",
        "kernel_id": "k2",
        "notebook_path": "other.ipynb",
        "died": pytest.approx(NOW - 3000, abs=1),
    }
    assert postmortem._store.bundle(bundle["id"])["earlier_deaths"] == bundle["earlier_deaths"]


def test_the_third_death_of_a_kind_is_a_loop(postmortem: Postmortem) -> None:
    assert others_of(postmortem, crash(1500, kernel_id="k1")) == []
    assert others_of(postmortem, crash(1000, kernel_id="k2")) == []
    assert others_of(postmortem, crash(500, kernel_id="k3")) == ["crash_loop"]
    report = postmortem._store.report(postmortem._store.ids()[0])
    assert report["other_findings"][0]["title"].startswith(
        "The same crash for the 3rd time in 16 min"
    )


def test_a_long_history_is_cut(postmortem: Postmortem) -> None:
    for number in range(EARLIER_LIMIT + 5):
        postmortem.report(crash(20_000 - 100 * number, kernel_id=f"k{number}", pid=5000 + number))
    bundle = crash(0)
    postmortem.report(bundle)
    assert len(bundle["earlier_deaths"]) == EARLIER_LIMIT
    times = [told["died"] for told in bundle["earlier_deaths"]]
    assert times == sorted(times, reverse=True)
