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
ADDRESS_SPACE = ("process.address_space_bytes", "process.address_space_limit_bytes")
# In use of the limit in the last seven seconds; the fit begins in the fourth.
RESERVED = [int(size * GIB) for size in (4.0, 4.0, 4.0, 4.1, 5.0, 5.6, 5.6)]


def refused(metrics: tuple[str, str] | None, reserved: list[int] = RESERVED) -> dict[str, Any]:
    """A kernel that was refused memory while a fit ran, with a container of 4 GiB around it."""
    bundle: dict[str, Any] = json.loads(
        (EXAMPLES / "cpu_alloc_failure" / "fires-bad-alloc.json").read_text()
    )
    if metrics is not None:
        server = bundle["server"]
        server["columns"] += metrics
        for row, used in zip(server["rows"], reserved, strict=True):
            row[1] = row[2] = GIB  # resident memory stays far from the container's limit
            row += [used, 6 * GIB]
        server["peak_bytes"] = GIB
    return bundle


def advice(bundle: dict[str, Any], rule: str = "cpu_alloc_failure") -> list[str]:
    """Every text of the advice of this finding."""
    finding = next(found for found in diagnose(bundle).findings if found.cause == rule)
    return [" ".join(filter(None, (a.title, a.text, a.code))) for a in finding.advice]


@pytest.mark.parametrize(
    ("metrics", "name"),
    [
        (ADDRESS_SPACE, "address space limit (ulimit -v)"),
        (("process.data_bytes", "process.data_limit_bytes"), "data size limit (ulimit -d)"),
    ],
)
def test_a_limit_of_the_process_is_what_a_refused_batch_is_reckoned_with(
    metrics: tuple[str, str], name: str
) -> None:
    batch, *others = advice(refused(metrics))
    # 0.9 of 6 GiB less 4.1 at its beginning is room for 1.3 of more than 1.9; half of that, of 2048, as a power of two.
    assert "batch_size=512" in batch
    assert f"the limit is 6.00 GiB, {name}" in batch
    assert "more than 1.90 GiB on top of the 4.10 GiB in use when fit began" in batch
    assert "4.00 GiB" not in batch
    raising = next(text for text in others if "raise the limit" in text)
    assert "6.00 GiB" in raising
    assert name[-3:-1] in raising
    assert "container" not in raising


def test_what_was_in_use_at_the_beginning_must_be_known() -> None:
    bundle = refused(ADDRESS_SPACE)
    bundle["server"]["rows"] = bundle["server"]["rows"][4:]  # nobody looked before
    assert not any("batch" in text for text in advice(bundle) if "smaller" in text)


def test_where_nothing_is_left_a_smaller_batch_is_no_advice() -> None:
    full = [int(5.8 * GIB)] * 7
    assert not any("smaller batch" in text for text in advice(refused(ADDRESS_SPACE, full)))


def test_without_one_it_is_the_containers() -> None:
    batch = advice(refused(None))[0]
    assert "the limit is 4.00 GiB (container limit)" in batch


def test_a_kill_at_the_containers_limit_is_never_reckoned_with_a_limit_of_the_process() -> None:
    path = EXAMPLES / "cgroup_oom" / "fires-v2-own-limit.json"
    bundle = json.loads(path.read_text())
    plain = advice(bundle, "cgroup_oom")
    server = bundle["server"]
    server["columns"] += ADDRESS_SPACE
    for row in server["rows"]:
        row += [int(5.9 * GIB), 6 * GIB]
    assert advice(bundle, "cgroup_oom") == plain


def test_a_full_machine_is_the_limit_though_the_container_has_a_smaller_one() -> None:
    bundle = json.loads(
        (EXAMPLES / "host_oom" / "fires-own-group-counted-no-limit-hit.json").read_text()
    )
    total = bundle["server"]["before"]["host_total_bytes"]
    for look in ("before", "after"):
        bundle["server"][look]["groups"][0]["limit_bytes"] = total - GIB
    batch = advice(bundle, "host_oom")[0]
    assert f"the limit is {human_bytes(total)} (machine memory)" in batch
