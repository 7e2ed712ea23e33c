"""Who holds what on which GPU: kernels, their children, others; and what is said where that cannot be told."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_tfguard.watch.gpu.gpu_cards import NO_SIZES, NOT_READABLE, OTHER_NUMBERS, Card
from jupyter_tfguard.watch.gpu.gpu_map import GpuMap
from jupyter_tfguard.watch.gpu.gpu_processes import Seen
from jupyter_tfguard.watch.live.live import Live

from .gpu_rig import CUDA, DRIVER, GIB, NEITHER, Machine, card, process, told

pytestmark = pytest.mark.quick


def only(gpu_map: GpuMap) -> Card:
    (found,) = gpu_map.now.cards
    return found


class TestHolders:
    def test_kernels_children_and_others_are_kept_apart(
        self, machine: Machine, gpu_map: GpuMap
    ) -> None:
        child = machine.has(900_001)
        ours, other = machine.kernel("a", children=(child,)), machine.kernel("b")
        server = machine.has(900_002)
        listed = [
            process(ours.identity.pid, 2 * GIB),
            process(child, 1 * GIB),
            process(other.identity.pid, 70 * GIB),
            process(server, 3 * GIB, "tritonserver"),
        ]
        gpu_map.take(told(card(0, listed)))
        found = only(gpu_map)
        assert found.holders is not None
        assert [(h.used_bytes, h.monitored, h.name) for h in found.holders] == [
            (70 * GIB, other, "python3"),
            (3 * GIB, None, "tritonserver"),
            (2 * GIB, ours, "python3"),
            (1 * GIB, ours, "python3"),
        ]
        assert found.other_bytes == GIB // 2
        assert found.note is None
        assert gpu_map.own_bytes(ours) == 3 * GIB

    def test_a_grandchild_that_nobody_has_searched_for_is_the_kernels(
        self, machine: Machine, gpu_map: GpuMap
    ) -> None:
        ours = machine.kernel("a", NEITHER)
        child = machine.has(900_001, NEITHER, parent=ours.identity.pid)
        grandchild = machine.has(900_002, CUDA, parent=child)
        gpu_map.take(told(card(0, [process(grandchild, 3 * GIB)])))
        assert gpu_map.own_bytes(ours) == 3 * GIB

    def test_a_kernel_that_holds_nothing_holds_nothing(
        self, machine: Machine, gpu_map: GpuMap
    ) -> None:
        idle = machine.kernel("idle", NEITHER)
        gpu_map.take(told(card(0, [process(machine.has(900_001))])))
        assert gpu_map.own_bytes(idle) == 0
        assert not gpu_map.held(idle)

    def test_a_kernel_started_by_a_kernel_is_itself(
        self, machine: Machine, gpu_map: GpuMap
    ) -> None:
        inner = machine.kernel("inner")
        outer = machine.kernel("outer", children=(inner.identity.pid,))
        gpu_map.take(told(card(0, [process(inner.identity.pid, GIB)])))
        assert (gpu_map.own_bytes(inner), gpu_map.own_bytes(outer)) == (GIB, 0)

    def test_what_a_process_holds_may_be_unknown(self, machine: Machine, gpu_map: GpuMap) -> None:
        ours = machine.kernel("a")
        gpu_map.take(told(card(0, [process(ours.identity.pid, None)])))
        found = only(gpu_map)
        assert (found.other_bytes, found.note) == (None, NO_SIZES)
        assert gpu_map.own_bytes(ours) is None

    def test_use_of_all_cards_is_added_and_a_divided_one_is_not_counted_twice(
        self, machine: Machine, gpu_map: GpuMap
    ) -> None:
        ours = machine.kernel("a")
        pid = ours.identity.pid
        part = card(0, [process(pid, 4 * GIB)], mig_index=1, gpu_uuid="MIG-1")
        divided = card(0, None, processes_reason="divided", mig_enabled=True)
        gpu_map.take(told(divided, part, card(1, [process(pid, GIB)])))
        assert gpu_map.own_bytes(ours) == 5 * GIB


class TestWhereProcessesCannotBeTold:
    def nobody(self, gpu_map: GpuMap, monitored: Any, note: str | None) -> None:
        found = only(gpu_map)
        assert (found.holders, found.other_bytes) == (None, None)
        assert found.note == note
        assert gpu_map.own_bytes(monitored) is None

    def test_a_pid_that_is_here_and_uses_no_driver_is_another_process(
        self, machine: Machine, gpu_map: GpuMap
    ) -> None:
        ours = machine.kernel("a", NEITHER)
        gpu_map.take(told(card(0, [process(ours.identity.pid)])))
        self.nobody(gpu_map, ours, OTHER_NUMBERS)

    def test_pids_that_are_not_here_are_those_of_the_machine_outside(
        self, machine: Machine, gpu_map: GpuMap
    ) -> None:
        ours = machine.kernel("a")
        gpu_map.take(told(card(0, [process(3_999_999)])))
        self.nobody(gpu_map, ours, OTHER_NUMBERS)

    def test_a_process_outside_that_uses_no_driver_shows_the_same(
        self, machine: Machine, gpu_map: GpuMap
    ) -> None:
        ours = machine.kernel("a", NEITHER)
        gpu_map.take(told(card(0, [process(machine.has(900_001, NEITHER))])))
        self.nobody(gpu_map, ours, OTHER_NUMBERS)

    def test_a_kernel_that_may_not_be_looked_at_is_not_believed(
        self, machine: Machine, gpu_map: GpuMap
    ) -> None:
        ours = machine.kernel("a", None)
        machine.has_unreadable(ours.identity.pid)
        gpu_map.take(told(card(0, [process(ours.identity.pid)])))
        self.nobody(gpu_map, ours, NOT_READABLE)

    def test_the_processes_of_another_user_may_be_closed_to_us(
        self, machine: Machine, gpu_map: GpuMap
    ) -> None:
        ours = machine.kernel("a", NEITHER)
        gpu_map.take(told(card(0, [process(machine.has_unreadable(900_001), 9 * GIB)])))
        assert only(gpu_map).note is None
        assert gpu_map.own_bytes(ours) == 0

    def test_an_empty_list_of_a_full_card_hides_somebody(
        self, machine: Machine, gpu_map: GpuMap
    ) -> None:
        ours = machine.kernel("a")
        gpu_map.take(told(card(0, [], memory_used_bytes=20 * GIB)))
        found = only(gpu_map)
        assert found.holders is None
        assert found.note is not None
        assert "20.0 GiB are in use" in found.note
        assert gpu_map.own_bytes(ours) is None

    def test_an_empty_list_of_an_empty_card_is_one(self, machine: Machine, gpu_map: GpuMap) -> None:
        gpu_map.take(told(card(0, [])))
        assert (only(gpu_map).holders, only(gpu_map).note) == ((), None)

    def test_the_drivers_own_reason_is_passed_on(self, machine: Machine, gpu_map: GpuMap) -> None:
        ours = machine.kernel("a")
        gpu_map.take(told(card(0, None, processes_reason="not permitted")))
        self.nobody(gpu_map, ours, "not permitted")

    def test_a_process_that_has_just_ended_hides_nobody(
        self, machine: Machine, gpu_map: GpuMap
    ) -> None:
        ours, gone = machine.kernel("a", NEITHER), machine.has(900_001)
        stays = machine.has(900_002, DRIVER)
        listed = [process(gone, 9 * GIB), process(stays, GIB, "Xorg")]
        gpu_map.take(told(card(0, listed)))
        machine.ends(gone)
        gpu_map.take(told(card(0, listed)))
        found = only(gpu_map)
        assert [h.name for h in found.holders or ()] == ["Xorg"]
        assert found.other_bytes == 9 * GIB + GIB // 2
        assert gpu_map.own_bytes(ours) == 0


class TestLookingAtProcesses:
    def test_one_that_uses_the_driver_is_read_once(self, machine: Machine) -> None:
        pid = machine.has(900_001)
        assert machine.check.poll(pid, 0.0) is Seen.GPU_USER
        machine.has(pid, NEITHER)
        assert machine.check.poll(pid, 100.0) is Seen.GPU_USER

    def test_one_that_does_not_is_read_again_rarely_and_believed_then(
        self, machine: Machine
    ) -> None:
        pid = machine.has(900_001, NEITHER)
        assert machine.check.poll(pid, 0.0) is Seen.OTHER
        machine.has(pid, CUDA)
        assert machine.check.poll(pid, 10.0) is Seen.OTHER
        assert machine.check.poll(pid, 31.0) is Seen.GPU_USER


class TestGrowth:
    def grow(
        self, machine: Machine, gpu_map: GpuMap, sizes: list[int], peak: int | None, **limit: int
    ) -> Any:
        ours = machine.kernel("a")
        for number, own in enumerate(sizes):
            memory = {"device": "GPU:0", "bus_id": "00000000:40:00.0", "peak_bytes": peak} | limit
            ours.live = Live(gpu_memory=(memory,))
            listed = [process(ours.identity.pid, own)]
            gpu_map.take(told(card(0, listed), time=float(number + 1)))
        return gpu_map.growth(ours)

    def test_little_of_the_card_while_it_computes_proves_it(
        self, machine: Machine, gpu_map: GpuMap
    ) -> None:
        seen = self.grow(machine, gpu_map, [2 * GIB] * 3, GIB)
        assert seen is not None
        assert seen.works
        assert (seen.own_bytes, seen.total_bytes) == (2 * GIB, 80 * GIB)

    def test_nearly_all_of_it_for_little_disproves_it(
        self, machine: Machine, gpu_map: GpuMap
    ) -> None:
        seen = self.grow(machine, gpu_map, [76 * GIB] * 3, GIB)
        assert seen is not None
        assert not seen.works

    @pytest.mark.parametrize(
        ("sizes", "peak", "limit"),
        [
            ([GIB // 2] * 9, None, {}),  # a context alone: nothing was computed
            ([2 * GIB] * 2, GIB, {}),  # too early
            ([76 * GIB] * 3, 60 * GIB, {}),  # it needs it
            ([56 * GIB] * 3, GIB, {}),  # in between
            ([3 * GIB] * 3, GIB, {"limit_bytes": 3 * GIB}),  # a cap of 3 GiB explains it
        ],
    )
    def test_the_rest_is_not_decided(
        self,
        machine: Machine,
        gpu_map: GpuMap,
        sizes: list[int],
        peak: int | None,
        limit: dict[str, int],
    ) -> None:
        assert self.grow(machine, gpu_map, sizes, peak, **limit) is None

    def test_a_pool_that_grew_later_changes_nothing(
        self, machine: Machine, gpu_map: GpuMap
    ) -> None:
        seen = self.grow(machine, gpu_map, [2 * GIB] * 3 + [76 * GIB] * 5, GIB)
        assert seen is not None
        assert seen.works
