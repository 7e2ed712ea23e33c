"""What a crash keeps of the GPUs: the list from before it, the driver's word from after it, and rows that stay few."""

from __future__ import annotations

import itertools
import json
import threading
import time

import pytest

from jupyter_tfguard.diagnosis.gpus import gpus_of
from jupyter_tfguard.watch.gpu.gpu_cards import OTHER_NUMBERS
from jupyter_tfguard.watch.gpu.gpu_facts import gpu_facts, wait_for_word
from jupyter_tfguard.watch.gpu.gpu_helper import Gpus
from jupyter_tfguard.watch.gpu.gpu_history import GpuHistory
from jupyter_tfguard.watch.gpu.gpu_map import GpuMap
from jupyter_tfguard.watch.live.live import Live
from tests.rigs.waiting import DEADLINE_SECONDS

from .gpu_rig import GIB, Machine, card, process, told

pytestmark = pytest.mark.quick


class TestDeath:
    def test_it_keeps_the_list_from_before_it_and_the_word_of_after_it(
        self, machine: Machine, gpu_map: GpuMap
    ) -> None:
        ours, other = machine.kernel("a"), machine.kernel("b")
        died = time.time()
        listed = [process(ours.identity.pid, 2 * GIB), process(other.identity.pid, 70 * GIB)]
        gpu_map.take(told(card(0, listed), card(1, []), time=died - 1.0))
        machine.monitored_kernels = (other,)
        event = {"time": died + 0.2, "xid": 79, "gpu_uuid": "GPU-0", "nvml_index": 0}
        old = {"time": died - 90.0, "xid": 48, "gpu_uuid": "GPU-0", "nvml_index": 0}
        lost = card(0, None, lost=True, memory_used_bytes=None, name=None, slowdown_celsius=None)
        gpu_map.take(told(lost, card(1, []), time=died + 0.4, events=(old, event)))
        first, second = gpus_of(list(gpu_facts(gpu_map, ours, died)), died)
        assert first.processes is not None
        assert [(p.kernel_id, p.notebook_path, p.used_bytes) for p in first.processes] == [
            ("b", "b.ipynb", 70 * GIB),
            ("a", "a.ipynb", 2 * GIB),
        ]
        assert (first.lost, first.xids, first.name) == (True, (79,), "NVIDIA A100")
        assert first.slowdown_celsius == 92
        assert first.series("own_bytes")[-1][1] == 2 * GIB
        assert first.series("temperature_celsius")[-1][1] == 60
        assert (second.lost, second.xids, second.holds(ours.identity.pid)) == (False, (), False)

    def test_a_kernel_that_left_the_list_before_it_was_dead_is_on_it(
        self, machine: Machine, gpu_map: GpuMap
    ) -> None:
        ours, died = machine.kernel("a"), time.time()
        gpu_map.take(told(card(0, [process(ours.identity.pid, 2 * GIB)]), time=died - 3.0))
        gpu_map.take(told(card(0, []), time=died - 0.5))
        (found,) = gpus_of(list(gpu_facts(gpu_map, ours, died)), died)
        assert found.holds(ours.identity.pid)

    def test_nothing_is_kept_of_a_driver_that_fell_silent_long_before(
        self, machine: Machine, gpu_map: GpuMap
    ) -> None:
        ours, died = machine.kernel("a"), time.time()
        gpu_map.take(told(card(0, []), time=died - 61.0))
        assert gpu_facts(gpu_map, ours, died) == ()

    def test_why_processes_could_not_be_identified_is_kept(
        self, machine: Machine, gpu_map: GpuMap
    ) -> None:
        ours, died = machine.kernel("a"), time.time()
        gpu_map.take(told(card(0, [process(3_999_999)]), time=died - 1.0))
        (found,) = gpus_of(list(gpu_facts(gpu_map, ours, died)), died)
        assert (found.processes, found.processes_reason) == (None, OTHER_NUMBERS)

    @pytest.mark.parametrize(
        ("signal", "code", "held", "waits"),
        [
            ("SIGABRT", None, True, True),
            (None, 1, True, True),
            ("SIGKILL", None, True, False),
            (None, 0, True, False),
            ("SIGABRT", None, False, False),
        ],
    )
    def test_only_an_end_of_its_own_after_use_of_a_gpu_is_waited_for(
        self,
        machine: Machine,
        gpu_map: GpuMap,
        signal: str | None,
        code: int | None,
        held: bool,
        waits: bool,
    ) -> None:
        ours, died = machine.kernel("a"), time.time()
        listed = [process(ours.identity.pid)] if held else []
        gpu_map.take(told(card(0, listed), time=died - 0.5))
        later = threading.Timer(0.3, lambda: gpu_map.take(told(card(0, []), time=died + 0.3)))
        later.start()
        began = time.monotonic()
        wait_for_word(gpu_map, ours, signal, code, died)
        took = time.monotonic() - began
        later.join()
        assert (took >= 0.25) is waits

    def test_where_processes_cannot_be_identified_what_it_reports_counts(
        self, machine: Machine, gpu_map: GpuMap
    ) -> None:
        ours = machine.kernel("a")
        gpu_map.take(told(card(0, [process(3_999_999)])))
        assert not gpu_map.held(ours)
        ours.live = Live(gpu_memory=({"device": "GPU:0"},))
        assert gpu_map.held(ours)
        gpu_map.take(told(card(0, [])))
        assert not gpu_map.held(ours)

    def test_nobody_waits_for_a_driver_that_is_not_read(
        self, machine: Machine, gpu_map: GpuMap
    ) -> None:
        ours, died = machine.kernel("a"), time.time()
        gpu_map.take(told(card(0, [process(ours.identity.pid)]), time=died - 0.5))
        gpu_map.take(Gpus("unavailable", "gone"))
        assert gpu_map.wait_for_news(died, DEADLINE_SECONDS)  # false after waiting in vain


class TestHistory:
    def test_a_day_is_kept_in_minutes_and_the_end_in_seconds(self) -> None:
        history = GpuHistory()
        for second in range(2 * 86400):
            lowest = 0.0 if second % 60 else -1.0
            history.add(float(second), second + lowest, second, 60)
        rows = history.rows()
        times = [row[0] or 0.0 for row in rows]
        assert times == sorted(times)
        assert len(rows) < 1600
        assert 85_000 < times[-1] - times[0] < 87_000
        gaps = [b - a for a, b in itertools.pairwise(times)]
        assert max(gaps) < 61
        assert max(gaps[-119:]) < 1.001
        assert rows[10][1] == (rows[10][2] or 0) - 1  # the lowest of its minute
        assert rows[-1][1] == 2 * 86400 - 1
        assert len(history.rows(minutes=100)) == 221
        assert len(history.recent(120.0)) == 121

    def test_unknown_stays_unknown(self) -> None:
        history = GpuHistory()
        for second in range(200):
            history.add(float(second), None, 5.0, None)
        assert {row[1:] for row in history.rows()} == {(None, 5.0, None)}


def test_the_bundle_of_a_kernel_on_eight_cards_stays_small(
    machine: Machine, gpu_map: GpuMap, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, died = machine.kernel("a"), time.time()
    devices = [card(n, [process(ours.identity.pid)]) for n in range(8)]
    moment = time.monotonic()
    for second in range(4000):
        now = moment + 10.0 * second
        monkeypatch.setattr("jupyter_tfguard.watch.gpu.gpu_map.time.monotonic", lambda now=now: now)
        gpu_map.take(told(*devices, time=died - 4.0 + second / 1000))
    monkeypatch.undo()
    assert len(json.dumps(gpu_facts(gpu_map, ours, died))) < 250_000
