"""Which limit binds: the one with the least headroom."""

from __future__ import annotations

import pytest

from jupyter_tfguard.memory.limits import (
    Limit,
    LimitKind,
    binding_limit,
    memory_in_use,
    memory_limit,
    named,
)

GIB = 1 << 30


def values(
    space: float | None = None, data: float | None = None, group: float | None = None
) -> dict[str, float]:
    """A machine of 16 GiB, half of it in use; in GiB, what is used of limits of 4 GiB each."""
    found: dict[str, float] = {"host.total_bytes": 16 * GIB, "host.available_bytes": 8 * GIB}
    if space is not None:
        found |= {
            "process.address_space_bytes": space * GIB,
            "process.address_space_limit_bytes": 4 * GIB,
        }
    if data is not None:
        found |= {"process.data_bytes": data * GIB, "process.data_limit_bytes": 4 * GIB}
    if group is not None:
        found |= {"cgroup.used_bytes": group * GIB, "cgroup.limit_bytes": 4 * GIB}
    return found


@pytest.mark.parametrize(
    ("seen", "kind"),
    [
        (values(), LimitKind.HOST),
        (values(group=1), LimitKind.CGROUP),
        (values(space=1.9), LimitKind.ADDRESS_SPACE),
        (values(space=2.9), LimitKind.ADDRESS_SPACE),
        (values(space=2.9, group=3), LimitKind.CGROUP),
        (values(space=2.9, data=3.1, group=3), LimitKind.DATA),
    ],
)
def test_the_limit_with_the_least_headroom_binds(seen: dict[str, float], kind: LimitKind) -> None:
    found = binding_limit(seen)
    assert found is not None
    assert found.kind is kind


def test_a_limit_whose_use_is_not_known_does_not_bind() -> None:
    seen = values(space=3.9)
    del seen["process.address_space_bytes"]
    assert binding_limit(seen) == Limit(16 * GIB, LimitKind.HOST)
    assert binding_limit({}) is None


def test_a_limit_of_the_process_alone_binds() -> None:
    seen = {
        "process.data_bytes": 0.1 * GIB,
        "process.data_limit_bytes": 4.0 * GIB,
    }
    assert binding_limit(seen) == Limit(4 * GIB, LimitKind.DATA)


def test_each_limit_has_its_kind_and_its_use() -> None:
    space = Limit(4 * GIB, LimitKind.ADDRESS_SPACE)
    assert [
        limit.wire_kind for limit in (space, Limit(1, LimitKind.CGROUP), Limit(1, LimitKind.HOST))
    ] == [
        "ulimit",
        "cgroup",
        "host",
    ]
    assert space.used(values(space=2.9)) == 2.9 * GIB
    assert space.used(values()) is None


def test_a_name_with_a_bracket_is_not_put_into_another() -> None:
    space = Limit(4 * GIB, LimitKind.ADDRESS_SPACE)
    assert Limit(4 * GIB, LimitKind.CGROUP).text() == "4.00 GiB (container limit)"
    assert (
        space.text() == named("4.00 GiB", space.name) == "4.00 GiB, address space limit (ulimit -v)"
    )


def test_the_memory_in_use_is_what_the_limit_counts_or_else_resident_memory() -> None:
    resident = {"process.rss_bytes": 3.0 * GIB}
    assert memory_in_use(Limit(4 * GIB, LimitKind.CGROUP), values(group=2) | resident) == 2 * GIB
    assert memory_in_use(Limit(4 * GIB, LimitKind.CGROUP), resident) == 3 * GIB
    assert memory_in_use(None, resident) == 3 * GIB
    assert memory_in_use(None, {}) is None


def test_the_machine_binds_where_other_programs_fill_it() -> None:
    seen = values(group=1) | {"host.available_bytes": 2.0 * GIB}
    assert memory_limit(seen) == binding_limit(seen) == Limit(16 * GIB, LimitKind.HOST)
    assert memory_limit(values(group=1)) == Limit(4 * GIB, LimitKind.CGROUP)
