"""Deaths that are counted: exactly, by several processes at once, and within bounds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.errors import BundleNotFound, RecordTooNew, RecordUnreadable
from jupyter_tfguard.record import counted, groups
from jupyter_tfguard.record.bundle import ANNOUNCED, READ, BundleStore
from jupyter_tfguard.record.counted import Death, Group
from jupyter_tfguard.record.groups import GroupStore
from jupyter_tfguard.report.grouped import render_group

pytestmark = pytest.mark.quick

DEATH = Death(
    kernel_id="k1",
    kernel_name="python3",
    notebook_path="a.ipynb",
    cause="segfault_native",
    confidence="certain",
    short_title="Segmentation fault",
    died=time.time() - 60,
)


@pytest.fixture
def store(data_folder: Path) -> BundleStore:
    return BundleStore(data_folder / "bundles")


def count(store: BundleStore, *deaths: Death, one_kernel: bool = True, limit: int = 50) -> Group:
    return store.groups.count(deaths, render_group, one_kernel=one_kernel, limit_count=limit)


def test_each_death_of_a_kernel_adds_one_to_one_group(store: BundleStore) -> None:
    for number in range(30):
        cause = "cgroup_oom" if number % 3 == 0 else "segfault_native"
        count(store, replace(DEATH, cause=cause, short_title=cause, died=DEATH.died + number))
    (entry,) = store.entries()
    group = entry["group"]
    assert group["deaths_count"] == 30
    assert group["kernels_count"] == 1
    assert [(c["cause"], c["count"]) for c in group["causes"]] == [
        ("segfault_native", 20),
        ("cgroup_oom", 10),
    ]
    assert entry["kernel_id"] == "k1"
    assert entry["notebook_path"] == "a.ipynb"
    assert entry["unread"] is True
    assert entry["died_at"] == group["last_at"] > group["first_at"]
    assert "died 30 more times in 29 s: 20 × segfault_native, 10 × cgroup_oom" in entry["title"]


def test_deaths_of_another_kernel_and_of_children_are_other_sums(store: BundleStore) -> None:
    count(store, DEATH)
    count(store, replace(DEATH, kernel_id="k2"))
    count(store, replace(DEATH, kernel_alive=True))
    assert [entry["group"]["deaths_count"] for entry in store.entries()] == [1, 1, 1]


def test_without_a_kernel_id_the_notebook_tells_kernels_apart(store: BundleStore) -> None:
    anonymous = replace(DEATH, kernel_id=None)
    count(store, anonymous)
    count(store, anonymous)
    count(store, replace(anonymous, notebook_path="b.ipynb"))
    counts = sorted(entry["group"]["deaths_count"] for entry in store.entries())
    assert counts == [1, 2]


def test_many_kernels_have_one_line_with_the_number_of_kernels(store: BundleStore) -> None:
    for number in range(200):
        count(store, replace(DEATH, kernel_id=f"k{number % 150}"), one_kernel=False)
    (entry,) = store.entries()
    assert entry["group"]["deaths_count"] == 200
    assert entry["group"]["kernels_count"] == 150
    assert entry["group"]["kernels_count_is_exact"] is True
    assert entry["kernel_id"] is None
    assert "150 kernels" in entry["where"]


def test_beyond_the_kernels_that_are_told_apart_their_number_is_at_least(
    store: BundleStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counted, "KERNELS_LIMIT", 10)
    monkeypatch.setattr("jupyter_tfguard.report.grouped.KERNELS_LIMIT", 10)
    deaths = [replace(DEATH, kernel_id=f"k{number}") for number in range(25)]
    count(store, *deaths, one_kernel=False)
    (entry,) = store.entries()
    assert entry["group"]["deaths_count"] == 25
    assert entry["group"]["kernels_count"] == 10
    assert entry["group"]["kernels_count_is_exact"] is False
    assert "at least 10 kernels" in entry["title"].lower()


def test_a_store_opened_anew_goes_on_counting(store: BundleStore) -> None:
    count(store, DEATH, DEATH, DEATH)
    again = BundleStore(store.root)
    group = count(again, DEATH)
    assert group.deaths_count == 4
    assert len(again.groups.ids()) == 1


def test_after_an_hour_of_peace_a_new_group_begins(store: BundleStore) -> None:
    count(store, DEATH)
    count(store, replace(DEATH, died=DEATH.died - groups.GAP_SECONDS - 5))
    assert [entry["group"]["deaths_count"] for entry in store.entries()] == [1, 1]


def test_a_clock_that_was_set_back_loses_no_count(store: BundleStore) -> None:
    for died in (DEATH.died, DEATH.died - 900, DEATH.died + 30):
        count(store, replace(DEATH, died=died))
    (entry,) = store.entries()
    assert entry["group"]["deaths_count"] == 3


def test_read_and_announced_hold_until_the_next_death(store: BundleStore) -> None:
    group = count(store, DEATH)
    store.mark(group.id, READ)
    store.mark(group.id, ANNOUNCED)
    entry = store.entry(group.id)
    assert (entry["unread"], entry["announced"]) == (False, True)
    assert store.report(group.id)["unread"] is False
    count(store, DEATH)
    entry = store.entry(group.id)
    assert (entry["unread"], entry["announced"]) == (True, False)
    assert store.groups.group(group.id).deaths_count == 2


def test_while_too_many_kernels_loop_one_more_is_counted_with_the_others(
    store: BundleStore,
) -> None:
    now = time.time()
    for number in range(5):
        group = count(store, replace(DEATH, kernel_id=f"k{number}", died=now), limit=3)
    assert group.one_kernel is False
    assert len(store.groups.ids()) == 4
    assert sum(entry["group"]["deaths_count"] for entry in store.entries()) == 5
    # Their own groups go on.
    assert count(store, replace(DEATH, kernel_id="k1", died=now), limit=3).kernel_id == "k1"


def test_a_group_that_is_over_makes_room_for_a_new_one(store: BundleStore) -> None:
    old = count(store, replace(DEATH, died=time.time() - 2 * groups.GAP_SECONDS), limit=1)
    new = count(store, replace(DEATH, kernel_id="k2", died=time.time()), limit=1)
    assert new.one_kernel is True
    assert store.groups.ids() == [new.id]
    with pytest.raises(BundleNotFound):
        store.entry(old.id)


def test_causes_are_bounded_and_the_sum_stays_exact(store: BundleStore) -> None:
    deaths = [replace(DEATH, cause=f"cause-{number}") for number in range(100)]
    count(store, *deaths)
    (entry,) = store.entries()
    causes = entry["group"]["causes"]
    assert len(causes) == counted.CAUSES_LIMIT + 1
    assert causes[0]["cause"] == counted.OTHER_CAUSES
    assert sum(cause["count"] for cause in causes) == 100


def test_a_cause_is_only_as_sure_as_its_least_sure_death(store: BundleStore) -> None:
    sure = ("certain", "possible", "likely")
    count(store, *(replace(DEATH, confidence=word) for word in sure))
    assert store.entries()[0]["confidence"] == "possible"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'{"format": [1, 0]}',
        b'{"format": [1, 0], "group": {}, "entry": {}, "report": {}}',
        b'{"format": [1, 0], "group": {"causes": 3}, "entry": [], "report": {}}',
        b"\xff" * 500,
    ],
)
def test_a_damaged_group_hides_nothing_and_is_a_sentence(
    store: BundleStore, content: bytes
) -> None:
    group = count(store, DEATH)
    other = count(store, replace(DEATH, kernel_id="k2"))
    (store.groups.root / f"{group.id}.json").write_bytes(content)
    assert [entry["id"] for entry in store.entries()] == [other.id]
    with pytest.raises(RecordUnreadable):
        store.report(group.id)
    # The loop goes on; what was counted in the damaged file is lost, the rest is exact.
    later = replace(DEATH, died=DEATH.died + 1)
    count(store, later)
    count(store, later)
    assert store.entries()[0]["group"]["deaths_count"] == 2


def test_a_group_of_a_newer_tfguard_is_refused_in_a_sentence(store: BundleStore) -> None:
    group = count(store, DEATH)
    path = store.groups.root / f"{group.id}.json"
    content: dict[str, Any] = json.loads(path.read_bytes())
    path.write_text(json.dumps(content | {"format": [99, 0]}))
    with pytest.raises(RecordTooNew, match="update jupyter-tfguard"):
        store.report(group.id)


def test_a_forgotten_group_begins_again_at_one(store: BundleStore) -> None:
    group = count(store, DEATH, DEATH)
    store.remove(group.id)
    assert store.entries() == []
    with pytest.raises(BundleNotFound):
        store.remove(group.id)
    assert count(store, DEATH).deaths_count == 1


COUNTER = """
import sys
from pathlib import Path
from jupyter_tfguard.record.counted import Death
from jupyter_tfguard.record.groups import GroupStore
from jupyter_tfguard.report.grouped import render_group
store = GroupStore(Path(sys.argv[1]))
for number in range(int(sys.argv[3])):
    death = Death(f"{sys.argv[2]}-{number}", None, None, "cause", "certain", "Cause", 1_790_000_000.0)
    store.count([death], render_group, one_kernel=False, limit_count=50)
    print(number, flush=True)
"""


def counter(root: Path, name: str, deaths: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", COUNTER, str(root), name, str(deaths)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def test_several_processes_count_into_one_group_and_lose_none(data_folder: Path) -> None:
    store = GroupStore(data_folder / "bundles" / "groups")
    counters = [counter(store.root, f"p{number}", 50) for number in range(4)]
    reads = 0
    while any(process.poll() is None for process in counters):
        for group_id in store.ids():
            assert store.entry(group_id)["group"]["deaths_count"] >= 1
            reads += 1
    assert reads
    assert [process.communicate()[0].count(b"\n") for process in counters] == [50] * 4
    (group_id,) = store.ids()
    group = store.group(group_id)
    assert (group.deaths_count, group.kernels_count) == (200, 200)


def test_a_counter_killed_in_the_middle_loses_no_finished_count(data_folder: Path) -> None:
    store = GroupStore(data_folder / "bundles" / "groups")
    finished = 0
    for round_number in range(5):
        process = counter(store.root, f"p{round_number}", 10_000)
        assert process.stdout is not None
        for _ in range(3 + round_number):
            process.stdout.readline()
        process.kill()
        finished += 3 + round_number + process.stdout.read().count(b"\n")
        process.communicate()
    (group_id,) = store.ids()
    # At most the one in flight more per kill: counted, but not said.
    assert finished <= store.group(group_id).deaths_count <= finished + 5
    assert os.listdir(store.root)
