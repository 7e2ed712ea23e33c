"""What a stopped cell says."""

from __future__ import annotations

import pytest

from jupyter_tfguard.batch_place import BatchPlace
from jupyter_tfguard.guard.beside_texts import runs_on_text
from jupyter_tfguard.guard.children import Child
from jupyter_tfguard.guard.saving import Saving
from jupyter_tfguard.guard.snapshot import Snapshot
from jupyter_tfguard.guard.stop_texts import SWITCH_OFF, CellFacts, StopMoment, stop_lines
from jupyter_tfguard.guard.stops import Stops, WatchedCell
from jupyter_tfguard.kept_data import Holder, Kept
from jupyter_tfguard.memory.limits import Limit, LimitKind
from jupyter_tfguard.units import GIB, MIB

pytestmark = pytest.mark.quick

LIMIT = Limit(2 * GIB, LimitKind.CGROUP)
LARGE = Kept("shuffle(5000) holds 5,000 elements of 192 KiB: use a smaller buffer.", 960 * MIB)
KEPT = Holder("kept", "kept has 1,180 entries.", "Shorten it.", GIB)
PIPELINED = BatchPlace("pipeline", "batch")
LOSSES = Holder("losses", "losses has 90 entries.", "Shorten it.", 9 * MIB)
SMALL = Kept("shuffle(500) holds 500 elements of 192 KiB: use a smaller buffer.", 96 * MIB)


def test_it_says_what_was_left_what_took_it_and_what_to_change() -> None:
    arrays = [{"name": "images", "bytes": GIB}, {"name": "small", "bytes": MIB}]
    facts = CellFacts(arrays, fit="fit", batch_size=2048)
    found = stop_lines(facts, LIMIT, 45 * MIB, int(1.5 * GIB), is_first=True)
    assert "45 MiB of 2.00 GiB (container limit) were left" in found[0]
    assert found[1] == "This cell added 1.50 GiB. Largest variables: images 1.00 GiB."
    assert "batch_size=1024" in found[2]
    assert found[3] == SWITCH_OFF


@pytest.mark.parametrize(
    ("wanted_bytes", "words"), [(0, ": 0 B of 2.00 GiB"), (GIB, ": it asked for 1.00 GiB, and 0 B")]
)
def test_a_request_is_named_where_there_was_one(wanted_bytes: int, words: str) -> None:
    # The limit can be exceeded for a moment, by memory of the OS kernel.
    seen = Snapshot(trip_count=1, trip_available_bytes=-MIB, last_refused_bytes=wanted_bytes)
    stop = Stops(lambda added: CellFacts(), lambda: LIMIT).reached(seen, WatchedCell(4 * GIB))
    assert words in stop.text


def test_how_to_switch_it_off_is_said_once() -> None:
    found = stop_lines(CellFacts(), LIMIT, MIB, GIB, is_first=False)
    assert SWITCH_OFF not in found


@pytest.mark.parametrize(
    ("facts", "advice"),
    [
        (
            CellFacts(fit="fit", batch_size=8, batch_place=PIPELINED),
            "for example .batch(4) in the pipeline",
        ),
        (
            CellFacts(fit="fit", batch_place=BatchPlace("method", "Train")),
            "with smaller batches in Train.__getitem__",
        ),
        (CellFacts(fit="fit", batch_size=1), "Run fit() with smaller batches"),
        (CellFacts(fit="predict"), "Run predict() with smaller batches"),
        (CellFacts(), "Load less at once"),
        (CellFacts(was_full=True), "in use before this cell: delete what"),
        (CellFacts(fit="fit", batch_size=8, was_full=True), "restart the kernel. Try fit() with"),
        (CellFacts(holders=[KEPT], was_full=True), f"{KEPT.text} Shorten it."),
        (CellFacts(fit="fit", batch_size=8, holders=[KEPT, LOSSES]), f"{KEPT.text} Shorten it."),
        (CellFacts(fit="fit", batch_size=8, holders=[LOSSES]), "batch_size=4"),
        (CellFacts(fit="fit", batch_size=8, keeps_between_steps=True), "does not help: something"),
        (CellFacts(fit="fit", batch_size=8, kept_data=[LARGE]), LARGE.text),
        (CellFacts(fit="fit", batch_size=8, kept_data=[SMALL]), "batch_size=4"),
    ],
)
def test_advice_fits_what_ran(facts: CellFacts, advice: str) -> None:
    assert advice in stop_lines(facts, LIMIT, MIB, GIB, is_first=False)[2]


WORKERS = [Child(12, "worker", 800 * MIB), Child(13, "worker", 400 * MIB)]


def test_the_step_of_a_training_loop_is_named() -> None:
    lines = stop_lines(CellFacts(loop_step=9740), LIMIT, 0, GIB, is_first=False)
    assert "This cell added 1.00 GiB. Its training loop had reached step 9,740." in lines
    assert "Take smaller batches in the training loop" in lines[-1]


def test_growth_in_worker_processes_is_not_blamed_on_the_batch_or_the_variables() -> None:
    arrays = [{"name": "images", "bytes": GIB}]
    facts = CellFacts(arrays=arrays, fit="fit", batch_size=8)
    found = stop_lines(facts, LIMIT, MIB, GIB, moment=StopMoment(WORKERS), is_first=False)
    assert "2 child processes hold 1.17 GiB" in found[1]
    assert "the largest (worker, process 12) 800 MiB" in found[1]
    assert "images" not in found[1]
    assert "fewer workers" in found[2]
    assert "batch" not in found[2]
    # Pools that hold little are not the cause.
    small = StopMoment([Child(12, "worker", 40 * MIB)])
    found = stop_lines(facts, LIMIT, MIB, GIB, moment=small, is_first=False)
    assert "worker" not in "".join(found)


def test_a_program_that_fills_is_named_with_its_process() -> None:
    moment = StopMoment([Child(77, "python3 fill.py", GIB)])
    found = stop_lines(CellFacts(), LIMIT, MIB, GIB, moment=moment, is_first=False)
    assert "A child process (python3 fill.py, process 77) holds 1.00 GiB" in found[1]
    assert "!kill 77" in found[2]


def test_the_cell_never_added_more_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    # The sampler counts a page that a child shares twice.
    seen = Snapshot(trip_count=1, trip_available_bytes=50 * MIB, trip_added_bytes=3 * GIB)
    stop = Stops(lambda added: CellFacts(), lambda: LIMIT).reached(seen, WatchedCell(2 * GIB))
    assert "This cell added 1.95 GiB." in stop.text
    monkeypatch.setattr("jupyter_tfguard.guard.stops.children_of", lambda pid: WORKERS)
    stop = Stops(lambda added: CellFacts(), lambda: LIMIT).reached(
        seen, WatchedCell(2 * GIB, available_bytes=1536 * MIB)
    )
    assert "This cell added 1.45 GiB." in stop.text


def test_predict_is_advised_to_write_pieces() -> None:
    facts = CellFacts(fit="predict", batch_size=32, finished_rows=9_600)
    advice = stop_lines(facts, LIMIT, MIB, GIB, is_first=False)[2]
    assert "of 2,000 rows, and write each to a file" in advice
    # The first batch already does not fit.
    facts = CellFacts(fit="predict", batch_size=32)
    assert "smaller batch" in stop_lines(facts, LIMIT, MIB, GIB, is_first=False)[2]


def test_what_still_runs_is_said_instead_of_a_promise() -> None:
    stops = Stops(lambda added: CellFacts(), lambda: LIMIT)
    raised = MemoryError(stops.reached(Snapshot(), WatchedCell(2 * GIB)).text)
    assert "as they were" in str(raised)
    stops.runs_on(raised, runs_on_text(["a", "b"], 1))
    assert "2 threads (a, b) and 1 process that this cell started still run" in str(raised)
    assert "as they were" not in str(raised)
    assert stops.of_cell is not None
    assert stops.of_cell.text == str(raised)


def test_a_save_that_was_stopped_is_named_with_what_else_holds_the_memory() -> None:
    saving = Saving("model.save", "/work/m.keras", True)
    moment = StopMoment(saving=saving)
    found = stop_lines(CellFacts(), LIMIT, MIB, GIB, moment=moment, is_first=False)[2]
    assert "/work/m.keras is incomplete now" in found
    assert "save_weights" in found
    # A checkpoint of a fit that leaks.
    leak = Holder("kept", "kept has 900 entries.", "Empty it.", GIB)
    facts = CellFacts(fit="fit", batch_size=8, holders=[leak])
    found = stop_lines(facts, LIMIT, MIB, GIB, moment=moment, is_first=False)[2]
    assert "/work/m.keras is incomplete now" in found
    assert "kept has 900 entries." in found
    assert "save_weights" not in found
