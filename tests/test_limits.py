"""Which limit binds: the fullest, and not another one each second."""

from __future__ import annotations

import pytest

from jupyter_tfguard.limits import (
    ADDRESS_SPACE_LIMIT,
    CONTAINER_LIMIT,
    DATA_LIMIT,
    MACHINE_MEMORY,
    Limit,
    fullest_limit,
    memory_in_use,
    used_of,
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
    ("seen", "name"),
    [
        (values(), MACHINE_MEMORY),
        (values(group=1), CONTAINER_LIMIT),
        (values(space=1.9), MACHINE_MEMORY),
        (values(space=2.9), ADDRESS_SPACE_LIMIT),
        (values(space=2.9, group=3), CONTAINER_LIMIT),
        (values(space=2.9, data=3.1, group=3), DATA_LIMIT),
    ],
)
def test_the_fullest_limit_binds(seen: dict[str, float], name: str) -> None:
    found = fullest_limit(seen)
    assert found is not None
    assert found.name == name


def test_a_limit_whose_use_is_not_known_does_not_bind() -> None:
    seen = values(space=3.9)
    del seen["process.address_space_bytes"]
    assert fullest_limit(seen) == Limit(16 * GIB, MACHINE_MEMORY)
    assert fullest_limit({}) is None


def test_a_limit_of_the_process_alone_binds() -> None:
    seen = {
        "process.data_bytes": 0.1 * GIB,
        "process.data_limit_bytes": 4.0 * GIB,
    }
    assert fullest_limit(seen) == Limit(4 * GIB, DATA_LIMIT)


def test_each_limit_has_its_kind_and_its_use() -> None:
    space = Limit(4 * GIB, ADDRESS_SPACE_LIMIT)
    assert [
        limit.kind for limit in (space, Limit(1, CONTAINER_LIMIT), Limit(1, MACHINE_MEMORY))
    ] == [
        "ulimit",
        "cgroup",
        "host",
    ]
    assert used_of(*space, values(space=2.9)) == 2.9 * GIB
    assert used_of(*space, values()) is None


def test_a_name_with_a_bracket_is_not_put_into_another() -> None:
    assert Limit(1, CONTAINER_LIMIT).text("4.0 GiB") == "4.0 GiB (container limit)"
    assert (
        Limit(1, ADDRESS_SPACE_LIMIT).text("4.0 GiB") == "4.0 GiB, address space limit (ulimit -v)"
    )


def test_the_memory_in_use_is_what_the_limit_counts_or_else_resident_memory() -> None:
    resident = {"process.rss_bytes": 3.0 * GIB}
    assert memory_in_use(Limit(4 * GIB, CONTAINER_LIMIT), values(group=2) | resident) == 2 * GIB
    assert memory_in_use(Limit(4 * GIB, CONTAINER_LIMIT), resident) == 3 * GIB
    assert memory_in_use(None, resident) == 3 * GIB
    assert memory_in_use(None, {}) is None
