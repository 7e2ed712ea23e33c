"""A recording as a whole: what is written is read, at three resolutions, and takes the disk that the specification says."""

from __future__ import annotations

import pytest

from jupyter_tfguard.errors import RecordTooNew
from jupyter_tfguard.record.recording import Recording
from tests.record.recording_rig import METRICS, RINGS, contents, sample

pytestmark = pytest.mark.quick


def test_an_empty_recording_is_read_without_a_problem(recording: Recording) -> None:
    found = contents(recording)
    assert found.header["format"] == [2, 0]
    assert found.problems == []
    assert (found.samples, found.seconds, found.minutes, found.events) == ([], [], [], [])
    assert found.progress is None


def test_three_resolutions_of_the_same_samples(recording: Recording) -> None:
    count = 3000
    for number in range(count):
        recording.sample(sample(number + 1))
    found = contents(recording)
    name = METRICS[0].name
    assert [s.sequence for s in found.samples] == list(range(count - 1199, count + 1))
    assert found.samples[-1] == sample(count)
    assert [s.sequence for s in found.seconds] == list(range(1, 301))
    tenth = found.seconds[9]  # samples 90 to 99, at 1009.0 to 1009.9
    assert (tenth.minimum[name], tenth.maximum[name], tenth.last[name]) == (90, 99, 99)
    assert tenth.time == 1e9 + 1009.9
    # The minutes of 1000 to 1019.9, 1020 to 1079.9 and so on; the last one has not ended.
    assert [(m.minimum[name], m.maximum[name]) for m in found.minutes] == [
        (1, 199),
        (200, 799),
        (800, 1399),
        (1400, 1999),
        (2000, 2599),
    ]
    assert METRICS[-1].name not in found.minutes[0].maximum
    assert found.samples[0].time <= found.seconds[-1].time  # nothing between them is missing


def test_every_event_finished_is_there_also_after_going_round(recording: Recording) -> None:
    for number in range(1, 3001):
        recording.event("cell_start", execution_count=number, head="x" * (number * 7 % 2500))
        if number % 500 == 0:
            counts = [event["execution_count"] for event in contents(recording).events]
            assert counts == list(range(number - len(counts) + 1, number + 1))
            # 512 records: at least 170 events of at most 3 records each, one of which may be without its beginning.
            assert len(counts) >= min(number, 512 // 3 - 1)


def test_the_disk_it_takes_is_what_the_specification_says(recording: Recording) -> None:
    begun = sum(file.stat().st_size for file in recording.folder.path.glob("*.ring"))
    assert begun == 874_496
    for number in range(1, 10_082 * 60 + 1, 1):
        if number > 3700 and number % 60 > 1:  # a whole hour, then what a week of minutes needs
            continue
        recording.sample(sample(number, hertz=1.0))
    found = contents(recording)
    assert len(found.seconds) == 3600
    assert len(found.minutes) == 10_080
    sizes = {name: (recording.folder.path / name).stat().st_size for name in RINGS}
    assert sizes == {
        "samples.ring": 315_392,
        "seconds.ring": 929_792,
        "minutes.ring": 2_588_672,
        "events.ring": 532_480,
        "progress.ring": 10_240,
    }
    assert sum(sizes.values()) == 4_376_576


def test_a_closed_recording_takes_everything_and_writes_nothing(recording: Recording) -> None:
    recording.close()
    recording.event("cell_start")
    recording.sample(sample(1))
    recording.set_progress({})
    found = contents(recording)
    assert (found.events, found.samples, found.progress) == ([], [], None)


def test_a_newer_major_of_the_recording_is_refused(recording: Recording) -> None:
    recording.write_header({"format": [3, 0]})
    with pytest.raises(
        RecordTooNew, match="format 3, but this version of tfguard reads formats up to 2"
    ):
        contents(recording)
    recording.write_header({"format": [2, 7]})
    assert contents(recording).header["format"] == [2, 7]
