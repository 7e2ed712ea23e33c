"""Memory of cells, cells that ran out of it, and TensorFlow's GPU devices, as a watcher reads them while the kernel writes; never trusted."""

from __future__ import annotations

import json
import os
import random
import time
from typing import Any

import pytest

from jupyter_tfguard.postmortem.capture import capture
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.newest import newest_gpu_memory
from jupyter_tfguard.record.recording import GPU_MEMORY, Recording
from jupyter_tfguard.record.records import read_records
from jupyter_tfguard.watch.live.live import LiveReader
from jupyter_tfguard.watch.live.live_feed import LiveFeed
from jupyter_tfguard.watch.live.shared_group import SharedGroups
from jupyter_tfguard.watch.monitored import Kernel, MonitoredKernel

pytestmark = pytest.mark.quick

MIB = 1024**2
GIB = 1024**3


def start(recording: Recording, count: int, **more: Any) -> None:
    fields = {"head": f"cell({count})", "rss_bytes": GIB, "peak_bytes": 2 * GIB} | more
    recording.event("cell_start", execution_count=count, **fields)


def end(recording: Recording, count: int, **more: Any) -> None:
    known = {"rss_start_bytes": GIB, "peak_bytes": GIB, "rss_bytes": GIB, "seconds": 1.5}
    unknown = dict.fromkeys(("gpu_start_bytes", "gpu_peak_bytes", "gpu_bytes"))
    recording.event("cell_end", execution_count=count, **(known | unknown | more))


class TestCells:
    def test_an_ended_cell_is_named_by_its_rise_and_what_stayed(
        self, recording: Recording, reader: LiveReader
    ) -> None:
        start(recording, 3)
        end(
            recording,
            3,
            peak_bytes=4 * GIB,
            rss_bytes=GIB // 2,
            gpu_start_bytes=0,
            gpu_peak_bytes=6 * GIB,
            gpu_bytes=5 * GIB,
        )
        assert reader.read().cells == (
            {
                "execution_count": 3,
                "head": "cell(3)",
                "running": False,
                "seconds": 1.5,
                "host_peak_bytes": 3 * GIB,
                "host_kept_bytes": -GIB // 2,
                "gpu_peak_bytes": 6 * GIB,
                "gpu_kept_bytes": 5 * GIB,
            },
        )

    def test_the_five_that_rose_most_stay_however_many_come(
        self, recording: Recording, reader: LiveReader
    ) -> None:
        for count in range(1, 700):
            start(recording, count)
            end(recording, count, peak_bytes=GIB + (count * 37) % 701)
            if count % 100 == 0:
                reader.read()
        rises = [cell["host_peak_bytes"] for cell in reader.read().cells]
        assert rises == [700, 699, 698, 697, 696]

    def test_the_running_cell_is_there_and_its_peak_is_what_the_watcher_sees(
        self, recording: Recording, reader: LiveReader
    ) -> None:
        start(recording, 1)
        end(recording, 1, peak_bytes=9 * GIB)
        start(recording, 2)
        first = reader.read((GIB + 5, 2 * GIB)).cells[1]
        assert (first["execution_count"], first["running"]) == (2, True)
        # The highest of the process was reached before this cell.
        assert first["host_peak_bytes"] == 5
        assert reader.read((GIB + 2, 2 * GIB)).cells[1]["host_peak_bytes"] == 5
        # It rose: it is this cell's, also between two looks.
        assert reader.read((GIB + 2, 3 * GIB)).cells[1]["host_peak_bytes"] == 2 * GIB
        assert first["gpu_peak_bytes"] is None
        end(recording, 2)
        assert [cell["running"] for cell in reader.read().cells] == [False, False]

    def test_a_watcher_reports_the_rise_of_the_running_cell_from_its_own_samples(
        self, recording: Recording
    ) -> None:
        monitored = MonitoredKernel(os.getpid(), Kernel("k"), SharedGroups())
        feed = LiveFeed(recording.folder.path.parent, lambda: (monitored,))
        try:
            assert monitored.sample(1, {})
            assert monitored.latest is not None
            start(recording, 1, rss_bytes=5 * MIB, peak_bytes=1 << 52)
            feed._round((monitored,), time.monotonic())
            (cell,) = monitored.live.cells
            rss = monitored.latest.values["process.rss_bytes"]
            assert cell["host_peak_bytes"] == rss - 5 * MIB > 10 * MIB
        finally:
            monitored.close()
            for one in feed._feeds.values():
                one.reader.close()

    def test_a_running_cell_that_took_little_is_not_pushed_out(
        self, recording: Recording, reader: LiveReader
    ) -> None:
        for count in range(1, 9):
            start(recording, count)
            end(recording, count, peak_bytes=GIB + count)
        start(recording, 9)
        shown = reader.read((GIB, 2 * GIB)).cells
        assert [cell["execution_count"] for cell in shown] == [8, 7, 6, 5, 9]
        grown = reader.read((2 * GIB, 2 * GIB)).cells
        assert [cell["execution_count"] for cell in grown] == [9, 8, 7, 6, 5]

    def test_what_is_unknown_stays_unknown(self, recording: Recording, reader: LiveReader) -> None:
        start(recording, 1, rss_bytes=None, peak_bytes=None, head=None)
        assert reader.read((None, None)).cells[0]["host_peak_bytes"] is None
        assert reader.read((GIB, GIB)).cells[0]["host_peak_bytes"] is None
        end(recording, 1, rss_start_bytes=None)
        (cell,) = reader.read().cells
        assert cell["head"] is None
        assert cell["host_peak_bytes"] is cell["host_kept_bytes"] is cell["gpu_kept_bytes"] is None


class TestGpuOom:
    def test_the_newest_is_reported_and_marked(
        self, recording: Recording, reader: LiveReader
    ) -> None:
        assert reader.read().gpu_oom is None
        start(recording, 4)
        recording.event("gpu_oom", execution_count=4, lines=["a", "b", "c"], asked_bytes=7)
        found = reader.read()
        assert found.gpu_oom is not None
        assert found.gpu_oom["execution_count"] == 4
        assert found.gpu_oom["lines"] == ["a", "b", "c"]
        assert found.gpu_oom["time"] > 1e9
        assert [mark["label"] for mark in found.marks] == ["[4]", "GPU OOM"]
        recording.event("gpu_oom", execution_count=5, lines=["d", "e", "f"])
        assert (reader.read().gpu_oom or {})["lines"] == ["d", "e", "f"]

    def test_a_stopped_cell_is_another_kind(self, recording: Recording, reader: LiveReader) -> None:
        start(recording, 4)
        lines = ["Stopped", "Saved in a file. Then:\n    import tfguard"]
        recording.event("memory_stop", execution_count=4, lines=lines, limit_bytes=7)
        found = reader.read()
        assert found.gpu_oom is None
        assert found.memory_stop is not None
        assert found.memory_stop["execution_count"] == 4
        assert found.memory_stop["lines"] == lines
        assert [mark["label"] for mark in found.marks] == ["[4]", "stopped"]

    @pytest.mark.parametrize("lines", [None, "abc", {"a": "b"}, [], [3, None, ""]])
    def test_an_event_without_lines_is_left_out(
        self, recording: Recording, reader: LiveReader, lines: object
    ) -> None:
        recording.event("memory_stop", execution_count=4, lines=lines)
        assert reader.read().memory_stop is None

    def test_of_too_much_the_beginning_is_kept(
        self, recording: Recording, reader: LiveReader
    ) -> None:
        recording.event("memory_stop", execution_count=-4, lines=["x" * 3000, *"abcdefghij"])
        found = reader.read().memory_stop
        assert found is not None
        assert found["execution_count"] is None
        assert found["lines"] == ["x" * 3000, *"abcdefg"]


class TestGpuMemory:
    def test_allocators_and_what_was_logged_of_them_are_put_together(
        self, recording: Recording, reader: LiveReader
    ) -> None:
        assert reader.read().gpu_memory == ()
        assert not (recording.folder.path / GPU_MEMORY).exists()  # no GPU, no file
        recording.set_gpu_memory([device("GPU:0", 1, 2), device("GPU:1", 3, 4)])
        recording.event(
            "gpu_device", device="GPU:1", limit_bytes=9, bus_id="0000:41:00.0", name="A100"
        )
        known = {"limit_bytes": 9, "bus_id": "0000:41:00.0"}
        unknown = {"limit_bytes": None, "bus_id": None}
        assert reader.read().gpu_memory == (
            device("GPU:0", 1, 2) | unknown,
            device("GPU:1", 3, 4) | known,
        )
        recording.set_gpu_memory([device("GPU:1", 5, 6)])
        assert reader.read().gpu_memory == (device("GPU:1", 5, 6) | known,)
        assert reader.read().gpu_memory == (device("GPU:1", 5, 6) | known,)  # nothing new: it stays

    def test_it_is_in_the_bundle_of_a_death(self, recording: Recording) -> None:
        identity = ProcessIdentity.of(os.getpid())
        assert identity is not None
        path = recording.folder.path
        claims = capture(identity=identity, recording=path)["kernel"]
        assert claims["gpu_memory"] is None
        recording.set_gpu_memory([device("GPU:0", 1, 2)])
        claims = capture(identity=identity, recording=path)["kernel"]
        assert claims["gpu_memory"] == [device("GPU:0", 1, 2)]

    def test_numbers_that_are_none_are_unknown(self, recording: Recording) -> None:
        recording.set_gpu_memory(
            [{"device": "GPU:0", "in_use_bytes": -1, "peak_bytes": True}, device("GPU:0", 1, 1.5)]
        )
        content = (recording.folder.path / GPU_MEMORY).read_bytes()
        assert newest_gpu_memory(read_records(content).records) == [device("GPU:0", 1, None)]


def device(name: str, in_use: object, peak: object) -> dict[str, Any]:
    return {"device": name, "in_use_bytes": in_use, "peak_bytes": peak}


def test_whatever_a_kernel_writes_the_panel_gets_json_of_bounded_size(
    recording: Recording, reader: LiveReader
) -> None:
    chance = random.Random(6)
    atoms: list[Any] = [None, True, -1, 0, 7, GIB, 1 << 70, 1e308, float("nan"), float("inf")]
    atoms += [
        "",
        "GPU:0",
        "GPU:٣",
        "x" * 900,
        "\ud800",
        [],
        ["a", "b", "c"],
        {},
        {"device": "GPU:1"},
    ]
    names = ["execution_count", "head", "seconds", "rss_bytes", "rss_start_bytes", "peak_bytes"]
    names += ["gpu_start_bytes", "gpu_peak_bytes", "gpu_bytes", "device", "limit_bytes", "bus_id"]
    for turn in range(1500):
        kind = chance.choice(("cell_start", "cell_end", "gpu_device", "gpu_oom", "memory_stop"))
        lines = [chance.choice(atoms) for _ in range(chance.randrange(5))]
        recording.event(kind, lines=lines, **{name: chance.choice(atoms) for name in names})
        recording.set_gpu_memory(
            [{n: chance.choice(atoms) for n in ("device", "in_use_bytes")} for _ in range(3)]
        )
        if turn % 20 == 0:
            seen = reader.read((chance.choice([None, GIB]), chance.choice([None, 2 * GIB])))
            parts = [seen.cells, seen.gpu_oom, seen.memory_stop, seen.gpu_memory]
            sent = json.dumps(parts, allow_nan=False)
            assert len(sent.encode()) < 20_000
            assert len(seen.cells) <= 5
            assert all(one["device"].isascii() for one in seen.gpu_memory)
