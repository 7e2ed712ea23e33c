"""Guide 5: a shuffle buffer, an array and a loop that hold too much, and what to write in their place."""

from __future__ import annotations

import pytest

from jupyter_tfguard.units import GIB
from notebooks.run_guides import GuideRun
from tests.guides.cell_table import measured_mib, numbers
from tests.guides.conftest import run_named

_DEATHS = ("crash-shuffle", "crash-array", "crash-leak")
_BATCH_MIB = 24  # 32 images of 256 × 256 × 3 float32


@pytest.fixture(scope="module")
def run() -> GuideRun:
    return run_named("5-dead-kernel-during-fit")


def test_the_kernel_dies_three_times(run: GuideRun) -> None:
    assert tuple(run.deaths) == _DEATHS


@pytest.mark.parametrize("cell", _DEATHS)
def test_each_death_is_the_limit_for_certain(run: GuideRun, cell: str) -> None:
    report = run.deaths[cell]
    assert (report["cause"], report["confidence"]) == ("cgroup_oom", "certain")
    assert report["memory"]["limit_bytes"] == 1.5 * GIB
    assert report["cell"] is not None
    why = f"why-{cell.removeprefix('crash-')}"
    assert "cgroup_oom (certain)" in run.text(why)


def test_the_photos_are_small_on_disk_and_too_large_for_the_limit_in_memory(run: GuideRun) -> None:
    text = run.text("write-photos")
    (on_disk,) = numbers(text, r"on disk: +([\d.]+) MiB")
    (in_memory,) = numbers(text, r"all images in memory: +([\d.]+) MiB")
    assert on_disk < in_memory / 20
    assert in_memory == 1500


def test_shuffled_paths_need_a_part_of_the_memory_of_shuffled_images(run: GuideRun) -> None:
    assert "Epoch 2/2" in run.text("fix-shuffle-fit")
    peak, _ = measured_mib(run, "cells-shuffle", "fix-shuffle-fit")
    assert peak < 600  # the buffer of images alone has 1,500
    assert "32/32" in run.text("batch-64")


def test_the_report_names_the_array(run: GuideRun) -> None:
    report = run.deaths["crash-array"]
    assert report["arrays"][0] == {"name": "images", "bytes": 800 * 256 * 256 * 3 * 4}
    assert any("Feed the data in batches" in step["title"] for step in report["advice"])
    assert "600 MiB in one array" in run.text("load-array")


def test_the_pipeline_trains_on_all_photos_in_less_memory_than_the_array(run: GuideRun) -> None:
    assert "Epoch 2/2" in run.text("fix-array-fit")
    assert "63/63" in run.text("fix-array-fit")
    peak, _ = measured_mib(run, "cells-array", "fix-array-fit")
    assert peak < 600


def test_a_loop_that_keeps_numbers_runs_to_its_end(run: GuideRun) -> None:
    assert "126 steps; the worst batch begins with photos/" in run.text("fix-leak-run")
    peak, _ = measured_mib(run, "cells-leak", "fix-leak-run")
    assert peak < 600


def test_python_numbers_build_a_graph_at_each_step(run: GuideRun) -> None:
    assert "\n30 graphs with a Python number" in "\n" + run.text("retrace-python")
    assert "\n1 graph with a tensor" in "\n" + run.text("retrace-tensor")
    _, by_number = measured_mib(run, "cells-leak", "retrace-python")
    assert by_number > 0


def test_clear_session_frees_nothing_that_a_list_holds_and_resets_the_policy(
    run: GuideRun,
) -> None:
    held = f"{8 * _BATCH_MIB} MiB of images held"
    assert held in run.text("clear-without")
    assert held in run.text("clear-with")
    text = run.text("clear-policy")
    assert "before: bfloat16" in text
    assert "after:  float32" in text
