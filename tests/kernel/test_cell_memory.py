"""The memory of each cell: the rise above its start, what stayed, and the table of ``%tfguard cells``."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from jupyter_tfguard.kernel.cells.cell_memory import CellMemory, CellMeter, Devices, Measured
from jupyter_tfguard.kernel.cells.cells import EndedCell, cells_text
from jupyter_tfguard.training.gpu_memory import DeviceMemory
from tests.kernel.rig import GuardedKernel, guarded_kernel

MIB = 1024**2
GIB = 1024**3


class Machine:
    """A process and its GPU devices, as they are set by a test."""

    def __init__(self) -> None:
        self.host: dict[str, float] = {}
        self.gpu: Devices | None = None
        self.meter = CellMeter(lambda: self.host, lambda: self.gpu)

    def at(self, rss: int, peak: int | None) -> None:
        self.host = {"process.rss_bytes": rss}
        if peak is not None:
            self.host["process.peak_bytes"] = peak

    def gpus(self, *devices: tuple[int, int]) -> None:
        self.gpu = tuple(DeviceMemory(f"GPU:{n}", *one) for n, one in enumerate(devices))


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.mark.quick
class TestHost:
    def test_a_peak_that_rose_within_the_cell_is_the_cells(self, machine: Machine) -> None:
        machine.at(100, 120)
        stretch = machine.meter.begin()
        machine.meter.sampled_host(150)  # the thread was blind when it was highest
        machine.at(90, 500)
        found = machine.meter.end(stretch)
        assert (found.host.peak_bytes, found.host.kept_bytes) == (400, -10)

    def test_below_an_older_peak_the_highest_sample_counts(self, machine: Machine) -> None:
        machine.at(100, 500)
        stretch = machine.meter.begin()
        machine.meter.sampled_host(300)
        machine.meter.sampled_host(None)
        machine.meter.sampled_host(200)
        machine.at(110, 500)
        assert machine.meter.end(stretch).host.peak_bytes == 200

    def test_no_sample_is_above_the_peak(self, machine: Machine) -> None:
        machine.at(100, 120)
        stretch = machine.meter.begin()
        machine.meter.sampled_host(125)  # Linux counts per processor
        machine.at(100, 120)
        assert machine.meter.end(stretch).host.highest_bytes == 120

    def test_a_cell_in_which_nothing_was_sampled_has_at_least_its_ends(
        self, machine: Machine
    ) -> None:
        machine.at(100, 500)
        stretch = machine.meter.begin()
        machine.at(140, 500)
        assert machine.meter.end(stretch).host.peak_bytes == 40

    def test_unknown_stays_unknown(self, machine: Machine) -> None:
        assert machine.meter.end(machine.meter.begin()) == CellMemory(Measured(), Measured())
        machine.at(100, None)  # psutil knows no peak
        stretch = machine.meter.begin()
        machine.meter.sampled_host(170)
        assert machine.meter.end(stretch).host.peak_bytes == 70


@pytest.mark.quick
class TestGpu:
    def test_without_a_gpu_device_gpu_memory_is_unknown(self, machine: Machine) -> None:
        found = machine.meter.end(machine.meter.begin())
        assert found.gpu.peak_bytes is found.gpu.kept_bytes is found.gpu.end_bytes is None

    def test_a_device_made_in_the_cell_began_with_nothing(self, machine: Machine) -> None:
        stretch = machine.meter.begin()
        machine.gpus((3 * GIB, 7 * GIB))
        found = machine.meter.end(stretch)
        assert (found.gpu.start_bytes, found.gpu.peak_bytes, found.gpu.kept_bytes) == (
            0,
            7 * GIB,
            3 * GIB,
        )

    def test_a_peak_that_did_not_rise_is_an_older_cells(self, machine: Machine) -> None:
        machine.gpus((1 * GIB, 7 * GIB))
        stretch = machine.meter.begin()
        machine.gpus((4 * GIB, 7 * GIB))
        assert machine.gpu is not None
        machine.meter.sampled_gpu(machine.gpu)
        machine.gpus((2 * GIB, 7 * GIB))
        found = machine.meter.end(stretch)
        assert (found.gpu.peak_bytes, found.gpu.kept_bytes) == (3 * GIB, 1 * GIB)

    def test_a_peak_that_the_user_set_back_is_no_rise(self, machine: Machine) -> None:
        machine.gpus((2 * GIB, 7 * GIB))
        stretch = machine.meter.begin()
        machine.gpus((1 * GIB, 1 * GIB))
        found = machine.meter.end(stretch)
        assert (found.gpu.peak_bytes, found.gpu.kept_bytes) == (0, -1 * GIB)

    def test_of_several_devices_the_sums_are_reported(self, machine: Machine) -> None:
        machine.gpus((1 * GIB, 2 * GIB), (1 * GIB, 9 * GIB))
        stretch = machine.meter.begin()
        machine.gpus((2 * GIB, 5 * GIB), (1 * GIB, 9 * GIB))
        found = machine.meter.end(stretch)
        assert (found.gpu.start_bytes, found.gpu.highest_bytes, found.gpu.end_bytes) == (
            2 * GIB,
            6 * GIB,
            3 * GIB,
        )

    def test_a_device_that_refuses_in_between_is_left_out(self, machine: Machine) -> None:
        machine.gpus((1 * GIB, 2 * GIB))
        stretch = machine.meter.begin()
        machine.gpu = ()
        assert machine.meter.end(stretch).gpu.end_bytes is None


def ended(count: int | None, host: int | None, gpu: int | None = None, **more: Any) -> EndedCell:
    memory = CellMemory(*(Measured(0, n, 0) if n is not None else Measured() for n in (host, gpu)))
    cell = EndedCell(count, f"cell_{count}()", 1.0, memory)
    return dataclasses.replace(cell, **more)


@pytest.mark.quick
class TestTable:
    def test_before_any_cell_one_sentence(self) -> None:
        assert cells_text([]) == "No cell has finished since tfguard was loaded into this kernel."

    def test_the_largest_rise_comes_first_and_ten_are_shown(self) -> None:
        text = cells_text([ended(n, n * MIB) for n in range(1, 13)])
        lines = text.splitlines()
        assert lines[0].split() == ["cell", "source", "time", "host", "peak", "host", "kept"]
        assert [line.split()[0] for line in lines[1:11]] == [f"[{n}]" for n in range(12, 2, -1)]
        assert lines[1].split()[1:] == ["cell_12()", "1.0", "s", "+12", "MiB", "0", "B"]
        assert lines[-1] == "Shows the 10 of 12 cells with the largest increase."

    def test_gpu_columns_are_only_where_something_is_known(self) -> None:
        assert "GPU" not in cells_text([ended(1, MIB)])
        text = cells_text([ended(1, MIB), ended(2, MIB, 3 * GIB)])
        assert text.splitlines()[1].split()[:2] == ["[2]", "cell_2()"]
        assert "GPU peak" in text
        assert "+3.00 GiB" in text
        assert text.splitlines()[2].split()[-2:] == ["–", "–"]

    def test_no_source_where_none_is_kept_and_one_line_of_it_else(self) -> None:
        assert "source" not in cells_text([ended(1, MIB, head=None)])
        text = cells_text([ended(1, None, head="a = 1\nb = 'x'\x1b[31m" + "y" * 90)])
        assert len(text.splitlines()) == 3
        assert "a = 1 b = 'x'" in text
        assert "\x1b" not in text
        assert "–" in text


class TestInAKernel:
    def test_what_a_cell_took_and_kept_is_in_the_record(self, kernel: GuardedKernel) -> None:
        kernel.run("import numpy as np")
        found = cell(kernel, "x = np.ones(400 << 17)  # 400 MiB\ndel x")
        assert found["peak_bytes"] - found["rss_start_bytes"] > 395 * MIB
        assert found["rss_bytes"] - found["rss_start_bytes"] < 100 * MIB
        kept = cell(kernel, "y = np.ones(100 << 17)  # 100 MiB\nimport time; time.sleep(0.5)")
        # Below the peak of the cell before: from the samples, and from its end.
        assert 95 * MIB < kept["peak_bytes"] - kept["rss_start_bytes"] < 130 * MIB
        assert 95 * MIB < kept["rss_bytes"] - kept["rss_start_bytes"] < 130 * MIB
        assert kept["gpu_start_bytes"] is kept["gpu_peak_bytes"] is kept["gpu_bytes"] is None

    def test_a_peak_under_a_held_gil_is_exact(self, kernel: GuardedKernel) -> None:
        # bytes * int fills its memory in one call, with the GIL held all the while: no sample is taken in it.
        kernel.run("del y")
        found = cell(kernel, "len(b'x' * (700 << 20))")
        assert 695 * MIB < found["peak_bytes"] - found["rss_start_bytes"] < 750 * MIB

    def test_the_table_shows_these_cells(self, kernel: GuardedKernel) -> None:
        text = kernel.run("%tfguard cells").stdout
        lines = text.splitlines()
        assert lines[1].split()[1].startswith("len(b'x'")
        assert "+7" in lines[1]
        assert "MiB" in lines[1]
        assert "GPU" not in text
        assert lines[2].split()[1:4] == ["x", "=", "np.ones(400"]

    def test_the_kernel_goes_on_when_memory_cannot_be_read(self, tmp_path_factory: Any) -> None:
        with guarded_kernel(tmp_path_factory.mktemp("fresh")) as fresh:
            fresh.run(
                "from jupyter_tfguard.kernel.current import current\n"
                "current().memory._process.collect = lambda **_: {}"
            )
            found = cell(fresh, "1")
            assert found["rss_start_bytes"] is found["peak_bytes"] is found["rss_bytes"] is None
            assert fresh.run("%tfguard cells").error is None


def cell(kernel: GuardedKernel, code: str) -> dict[str, Any]:
    """Run a cell; the event of its end."""
    before = len([e for e in kernel.recording().events if e["kind"] == "cell_end"])
    ran = kernel.run(code)
    assert ran.error is None, ran.traceback
    return kernel.wait_for_event("cell_end", count=before + 1)[-1]
