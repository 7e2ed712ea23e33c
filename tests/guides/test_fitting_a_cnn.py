"""Guide 4: a batch that is too large for its limit, and three ways to need less."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_tfguard.units import GIB
from notebooks.run_guides import GuideRun
from tests.guides.cell_table import measured_mib, numbers
from tests.guides.conftest import run_named

_NUMBER = r"([\d.e+-]+)"


@pytest.fixture(scope="module")
def run() -> GuideRun:
    return run_named("4-fitting-a-cnn")


def test_the_batch_of_512_reaches_the_limit_and_the_report_advises_128(run: GuideRun) -> None:
    assert list(run.deaths) == ["crash"]
    report = run.deaths["crash"]
    assert (report["cause"], report["confidence"]) == ("cgroup_oom", "certain")
    assert report["memory"]["limit_bytes"] == 2 * GIB
    assert "512 × 96 × 96 × 3, float32" in [row["value"] for row in report["activity"]]
    codes = [step["code"] for step in report["advice"]]
    assert "model.fit(..., batch_size=128)" in codes
    assert "keras.optimizers.Adam(gradient_accumulation_steps=4)" in codes
    assert "batch_size=128" in run.text("why")


def test_the_computed_memory_explains_the_death_and_agrees_with_the_measured_peak(
    run: GuideRun,
) -> None:
    table = run.text("compute")
    (large,) = numbers(table, rf"batch size 512: {_NUMBER} MiB")
    (small,) = numbers(table, rf"batch size 128: {_NUMBER} MiB")
    assert large * 2**20 > 2 * GIB
    computed, measured = numbers(
        run.text("compare"), rf"computed {_NUMBER} MiB, measured {_NUMBER} MiB"
    )
    assert computed == small
    assert 0.6 < measured / computed < 1.6


def test_the_smaller_batch_trains_to_its_end(run: GuideRun) -> None:
    assert "Epoch 2/2" in run.text("fix-batch-fit")
    peak, _ = measured_mib(run, "cells-batch", "fix-batch-fit")
    assert 100 < peak < 1500


def test_accumulation_needs_little_more_memory_than_the_small_batch(run: GuideRun) -> None:
    assert "Epoch 2/2" in run.text("accumulate")
    first, _ = measured_mib(run, "cells-accumulate", "fix-batch-fit")
    second, _ = measured_mib(run, "cells-accumulate", "accumulate")
    assert second < first / 2


def test_accumulated_updates_are_those_of_the_large_batch(run: GuideRun) -> None:
    change, by_keras = numbers(
        run.text("equal"), rf"training: {_NUMBER}\nmean difference between both ways:   {_NUMBER}"
    )
    (by_loop,) = numbers(run.text("loop"), rf"large batch: {_NUMBER}")
    assert change > 0
    assert by_keras < change / 100
    assert by_loop < change / 100


def test_both_mistakes_do_what_the_guide_says(run: GuideRun) -> None:
    assert "Error - " in run.text("wrong-numpy")
    before, after = numbers(
        run.text("wrong-outputs"), rf"before {_NUMBER}, after 5 wrong updates {_NUMBER}"
    )
    assert after >= before


def test_each_precision_was_measured(run: GuideRun) -> None:
    measured = {
        policy: numbers(run.text("mixed"), rf"(?m)^{policy} +batch 64: {_NUMBER} MiB")[0]
        for policy in ("float32", "mixed_bfloat16", "mixed_float16")
    }
    assert min(measured.values()) > 50
    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    if "avx512_bf16" in flags:
        assert measured["mixed_bfloat16"] < 0.9 * measured["float32"]
