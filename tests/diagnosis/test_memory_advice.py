"""The batch to try next is reckoned with the limit that ended the run, and with what that limit counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.diagnosis.diagnose import diagnose
from jupyter_tfguard.units import GIB, human_bytes

pytestmark = pytest.mark.quick

EXAMPLES = Path(__file__).parents[1] / "examples"
# In use of the limit in the last seven seconds; the fit begins in the fourth.
RESERVED = [int(size * GIB) for size in (4.0, 4.0, 4.0, 4.1, 5.0, 5.6, 5.6)]


def refused(metrics: tuple[str, str] | None) -> dict[str, Any]:
    """A kernel that was refused memory while a fit ran, with a container of 4 GiB around it."""
    bundle: dict[str, Any] = json.loads(
        (EXAMPLES / "cpu_alloc_failure" / "fires-bad-alloc.json").read_text()
    )
    if metrics is not None:
        server = bundle["server"]
        server["columns"] += metrics
        for row, used in zip(server["rows"], RESERVED, strict=True):
            row[1] = row[2] = GIB  # resident memory stays far from the container's limit
            row += [used, 6 * GIB]
        server["peak_bytes"] = GIB
    return bundle


def advice(bundle: dict[str, Any], rule: str = "cpu_alloc_failure") -> list[str]:
    """Every text of the advice of this finding."""
    finding = next(found for found in diagnose(bundle).findings if found.cause == rule)
    return [" ".join(filter(None, (a.title, a.text, a.code))) for a in finding.advice]


def test_of_a_limit_of_the_process_only_raising_it_is_advice() -> None:
    metrics = ("process.address_space_bytes", "process.address_space_limit_bytes")
    *_, raising = advice(refused(metrics))
    assert "raise the limit of 6.00 GiB" in raising
    assert "ulimit -v" in raising
    assert not any("batch_size" in text for text in advice(refused(metrics)))


def test_without_one_the_batch_is_estimated_for_the_containers() -> None:
    batch = advice(refused(None))[0]
    assert "the limit is 4.00 GiB (container limit)" in batch


def test_a_full_machine_is_the_limit_though_the_container_has_a_smaller_one() -> None:
    bundle = json.loads(
        (EXAMPLES / "host_oom" / "fires-own-group-counted-no-limit-hit.json").read_text()
    )
    total = bundle["server"]["before"]["host_total_bytes"]
    for look in ("before", "after"):
        bundle["server"][look]["groups"][0]["limit_bytes"] = total - GIB
    batch = advice(bundle, "host_oom")[0]
    assert f"the limit is {human_bytes(total)} (machine memory)" in batch


FILLING = "W tensorflow/core/kernels/data/shuffle_dataset_op.cc:452] ShuffleDatasetV3:12: Filling up shuffle buffer (this may take a while): 3471 of 20000"
FILLED = "W tensorflow/core/kernels/data/shuffle_dataset_op.cc:482] Shuffle buffer filled."


@pytest.mark.parametrize(
    ("lines", "is_named"),
    [
        ([FILLING], True),
        ([FILLING, "another line"], True),
        ([FILLING, FILLED], False),
        ([f"2001-01-01 00:00:00.5: {FILLING}"], False),
    ],
)
def test_a_shuffle_buffer_that_was_being_filled_is_named(lines: list[str], is_named: bool) -> None:
    bundle = refused(None)
    bundle["kernel"]["stderr_tail"] = [*lines, *bundle["kernel"]["stderr_tail"]]
    first = advice(bundle)[0]
    assert ("3,471 of 20,000 elements" in first) == is_named
    assert ("batch" in first) != is_named


@pytest.mark.parametrize(("size_bytes", "is_named"), [(2 * GIB, True), (GIB // 8, False)])
def test_a_buffer_as_large_as_half_of_the_growth_is_named(size_bytes: int, is_named: bool) -> None:
    bundle = refused(None)
    start = next(event for event in bundle["kernel"]["events"] if event["kind"] == "fit_start")
    start["kept_data"] = [{"text": "shuffle(5000) holds all.", "size_bytes": size_bytes}]
    first = advice(bundle)[0]
    assert (f"keep less in memory: {human_bytes(size_bytes)} in one step" in first) == is_named
    assert ("batch" in first) != is_named


@pytest.mark.parametrize(
    ("place", "text", "code"),
    [
        (None, "", "model.fit(..., batch_size="),
        ({"kind": "pipeline", "name": "padded_batch"}, "", "dataset = dataset.padded_batch("),
        ({"kind": "function", "name": "image_dataset_from_directory"}, "", "image_dataset_from_directory(..., batch_size="),
        ({"kind": "method", "name": "Train"}, " in Train.__getitem__.", None),
        ({"kind": "generator", "name": ""}, " from the generator.", None),
    ],
)  # fmt: skip
def test_a_smaller_batch_is_set_where_the_fit_had_it(
    place: dict[str, str] | None, text: str, code: str | None
) -> None:
    bundle = refused(None)
    start = next(event for event in bundle["kernel"]["events"] if event["kind"] == "fit_start")
    start |= {} if place is None else {"batch_place": place}
    found = next(f for f in diagnose(bundle).findings if f.cause == "cpu_alloc_failure").advice[0]
    assert found.text.endswith(text)
    assert (found.code is None) == (code is None)
    assert code is None or (found.code or "").startswith(code)


@pytest.mark.parametrize(
    ("children_bytes", "used_bytes", "is_named"),
    [
        (2 * GIB, 4 * GIB, True),
        (8 * GIB, 4 * GIB, True),  # they share pages: the group says how much is theirs
        (8 * GIB, int(1.6 * GIB), False),  # nearly all is shared with the kernel
        (GIB // 4, 4 * GIB, False),
    ],
)
def test_workers_that_hold_the_memory_come_first(
    children_bytes: int, used_bytes: int, is_named: bool
) -> None:
    bundle = json.loads((EXAMPLES / "cgroup_oom" / "fires-v2-own-limit.json").read_text())
    server = bundle["server"]
    used = server["columns"].index("cgroup.used_bytes")
    server["columns"].append("process.children_rss_bytes")
    for row in server["rows"]:
        row[server["columns"].index("process.rss_bytes")] = int(1.5 * GIB)
        row[used] = used_bytes
        row.append(children_bytes)
    for look in ("before", "after"):
        server[look]["groups"][0]["peak_bytes"] = used_bytes
    first = advice(bundle, "cgroup_oom")[0]
    assert first.startswith("Use fewer worker processes") == is_named
    assert ("the kernel itself 1.50 GiB" in first) == is_named
