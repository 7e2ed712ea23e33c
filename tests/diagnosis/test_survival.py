"""Logs without a failure: which show that nothing ended the program, and which show only its last step."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_tfguard.diagnosis.catalog import tomllib
from jupyter_tfguard.diagnosis.finding import Confidence
from tests.rigs.examples import best_of

pytestmark = pytest.mark.quick

LINES = tomllib.loads(Path(__file__).with_name("log_lines.toml").read_text(encoding="utf-8"))

START = "2026-01-02 03:04:05.1: I tensorflow/stream_executor/platform/default/dso_loader.cc:44] Successfully opened dynamic library cublas64_100.dll\n"
NOISE = "E0000 00:00:1763690000.1 4711 cuda_dnn.cc:8310] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered\n"
RETRY = "2026-01-02 03:04:05.1: W tensorflow/core/common_runtime/bfc_allocator.cc:237] Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.15GiB with freed_by_count=0. "
LARGE = "2026-01-02 03:04:05.1: W tensorflow/core/framework/cpu_allocator_impl.cc:81] Allocation of 6442450944 exceeds 10% of system memory.\n"


NEAR = {
    "WTERMSIG": "the macro WTERMSIG returns the number",
    "a worker's name": "KilledWorkers: 0\nEpoch 1/1\n9/9 - loss: 0.2",
    "a finished job": "_job_complete: JobId=77 WEXITSTATUS 0\n_job_complete: JobId=77 done",
    "a worker of several": "We have 2 workers. Worker 1 received SIGTERM\nstep 9 loss: 0.2\nstep 10 loss: 0.2",
    "a ^C alone": "Epoch 1/3\n^C",
    "too many files": "ResourceExhaustedError   Traceback (most recent call last)\nResourceExhaustedError: logs/events; Too many open files",
    "a finished run above": "I got CUDA out of memory. yesterday\nEpoch 1/1\n9/9 - loss: 0.2\nModel saved",
}


@pytest.mark.parametrize("name", NEAR)
def test_a_near_miss_names_no_cause(name: str) -> None:
    assert best_of(NEAR[name]).cause in ("unknown", "no_crash")


@pytest.mark.parametrize("text", [*LINES["survival"]["no_crash"], *NEAR.values()])
def test_only_steps_after_an_alarm_are_certain(text: str) -> None:
    best = best_of(text)
    assert best.confidence is not Confidence.CERTAIN or any(
        mark in text for mark in ("caught", "factory", "trial 3", "Worker 1")
    )


def test_the_last_step_is_quoted() -> None:
    found = best_of("Epoch 1/5\n412/750 [=====>.....] - ETA: 33s - loss: 1.9").because
    assert ["412/750" in fact.text and "last step" in fact.text for fact in found] == [True]
