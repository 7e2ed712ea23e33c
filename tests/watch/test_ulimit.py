"""A process under a limit of its own: the limit is seen, kept for the report, and foreseen."""

from __future__ import annotations

import resource
import time
from dataclasses import asdict

import pytest

from jupyter_tfguard.diagnosis.evidence import Evidence
from jupyter_tfguard.memory.limits import Limit, LimitKind
from jupyter_tfguard.report.memory import memory_json, memory_sentence
from jupyter_tfguard.server.state import KernelView, kernel_state
from tests.rigs.waiting import wait_until

from .conftest import MIB, Start, Watch

RESERVE = """
import mmap, sys
# Reserved, never touched: address space that is not resident.
held = mmap.mmap(-1, 700 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
print(flush=True)
sys.stdin.readline()
"""
LIMIT_BYTES = 800 * MIB


def test_address_space_binds_though_little_is_resident(watch: Watch, start: Start) -> None:
    process = start(RESERVE)
    resource.prlimit(process.pid, resource.RLIMIT_AS, (LIMIT_BYTES, resource.RLIM_INFINITY))
    monitored = watch.begin(process.pid)
    limit = Limit(LIMIT_BYTES, LimitKind.ADDRESS_SPACE)
    wait_until(lambda: monitored.binding_limit() == limit)
    assert monitored.limit() == (LIMIT_BYTES, "ulimit")
    host = kernel_state(KernelView(monitored.kernel, "python", monitored, None))["host"]
    assert (host["limit"]["name"], host["limit"]["kind"]) == (limit.name, "ulimit")
    assert 700 * MIB < host["used_bytes"] < LIMIT_BYTES
    assert host["rss_bytes"] < 100 * MIB
    wait_until(
        lambda: len(monitored.history.rows) > 15
    )  # with samples after the look that saw the limit
    facts = asdict(monitored.seen(time.time()))
    assert facts["columns"][-4:] == (
        "process.address_space_bytes",
        "process.address_space_limit_bytes",
        "process.data_bytes",
        "process.data_limit_bytes",
    )
    assert {len(row) for row in facts["rows"]} == {len(facts["columns"])}
    assert facts["rows"][-1][-2:] == (None, None)
    seen = Evidence({"identity": {"died": facts["died"]}, "server": facts})
    assert seen.limit() == limit
    assert seen.memory_limit() != limit
    memory = memory_json(seen)
    assert memory is not None
    assert (memory["limit_bytes"], memory["limit_name"]) == (limit.size_bytes, limit.name)
    curve = next(curve for curve in memory["curves"] if curve["name"] == "limit.used_bytes")
    assert curve["title"] == "Address space in use"
    assert curve["samples"][-1][1] == pytest.approx(host["used_bytes"], rel=0.01)
    sentence = memory_sentence({"memory": memory})
    assert sentence is not None
    assert sentence.endswith("limit 800 MiB, address space limit (ulimit -v)")


def test_without_a_limit_nothing_is_added_to_what_is_kept(watch: Watch, start: Start) -> None:
    monitored = watch.begin(start(RESERVE).pid)
    wait_until(
        lambda: monitored.latest is not None and "process.peak_bytes" in monitored.latest.values
    )
    columns = monitored.seen(time.time()).columns
    assert not [name for name in columns if "address_space" in name]
