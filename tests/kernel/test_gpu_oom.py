"""A GPU's memory that ran out and left the kernel alive: three lines under the traceback, an event, and nothing else.

No GPU is here: the cells log what TensorFlow's allocator logs, and raise TensorFlow's own error class.
"""

from __future__ import annotations

import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kernel.gpu_oom_rig import FRAGMENTED, FULL, ON_GPU
from tests.kernel.rig import GuardedKernel, guarded_kernel

SETUP = f"""
import os
import tensorflow as tf
OOM = tf.errors.ResourceExhaustedError
FULL, FRAGMENTED, ON_GPU = {FULL!r}, {FRAGMENTED!r}, {ON_GPU!r}
def run_out(text=FULL, message=ON_GPU):
    os.write(2, text.encode())
    raise OOM(None, None, message)
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKernel]:
    with guarded_kernel(tmp_path_factory.mktemp("kernel")) as found:
        made = found.run(SETUP, timeout=240)
        assert made.error is None, made.traceback
        yield found


def told(kernel: GuardedKernel, code: str, **how: Any) -> list[str]:
    """Our lines in the output of a cell."""
    text = kernel.run(code, **how).stderr
    start = text.find("tfguard: ")
    return text[start:].splitlines()[:4] if start >= 0 else []


class TestInAKernel:
    def test_three_lines_come_after_the_traceback(self, kernel: GuardedKernel) -> None:
        outputs = outputs_of(kernel, "run_out()")
        kinds = [kind for kind, _ in outputs]
        error = kinds.index("error")
        # TensorFlow's own text may come before or after; ours comes in one piece behind the error.
        ours = [n for n, (_, text) in enumerate(outputs) if "tfguard: " in text]
        assert ours
        assert min(ours) > error
        printed = "".join(text for _, text in outputs)
        assert printed.count("tfguard") == 1
        lines = printed[printed.index("tfguard: ") :].splitlines()[:3]
        assert lines == [
            "tfguard: the GPU ran out of memory: requested 2.00 GiB, free 1.00 GiB of 14.0 GiB, largest free block 512 MiB.",
            "Largest blocks: 4 blocks of 3.25 GiB, 13.0 GiB in total.",
            "What to change: 128 instead of 256 at once, if that is the batch (estimate); memory from earlier cells "
            "is freed when you delete its variables or restart the kernel.",
        ]

    def test_they_come_under_the_longest_dump(self, kernel: GuardedKernel) -> None:
        line = "I bfc_allocator.cc:1058] InUse at 797202000000 of size 256 next 1\n"
        outputs = outputs_of(kernel, f"run_out({line!r} * 8000 + FULL)")
        printed = "".join(text for _, text in outputs)
        assert len(printed) > 100_000
        assert (
            printed.rstrip()
            .splitlines()[-3]
            .startswith("tfguard: the GPU ran out of memory: requested")
        )

    def test_the_event_has_the_lines(self, kernel: GuardedKernel) -> None:
        before = len([e for e in kernel.recording().events if e["kind"] == "gpu_oom"])
        lines = told(kernel, "run_out()")
        event = kernel.wait_for_event("gpu_oom", count=before + 1)[-1]
        assert event["lines"] == lines[:3]
        end = kernel.wait_for_event("cell_end")[-1]
        assert event["execution_count"] == end["execution_count"]
        assert end["error"] == "ResourceExhaustedError"
        assert kernel.is_alive()

    def test_numbers_of_an_earlier_cell_are_not_this_cells(self, kernel: GuardedKernel) -> None:
        kernel.run("os.write(2, FULL.encode());")
        lines = told(kernel, "raise OOM(None, None, ON_GPU)")
        # The error's own text tells what was asked for; nothing else is known.
        assert lines[0] == "tfguard: the GPU ran out of memory: requested 2.00 GiB."
        assert lines[1].startswith("Largest blocks: unknown")

    def test_an_error_that_was_caught_is_the_users_own_business(
        self, kernel: GuardedKernel
    ) -> None:
        events = len([e for e in kernel.recording().events if e["kind"] == "gpu_oom"])
        assert told(kernel, "try: run_out()\nexcept OOM: print('smaller, then')") == []
        assert len([e for e in kernel.recording().events if e["kind"] == "gpu_oom"]) == events

    def test_memory_of_the_cpu_is_none_of_it(self, kernel: GuardedKernel) -> None:
        ran = kernel.run("tf.ones([1 << 44])")  # 64 TiB: TensorFlow's real error
        assert ran.error == "ResourceExhaustedError"
        assert "by allocator" in ran.traceback
        assert "tfguard" not in ran.text

    def test_other_errors_cost_and_print_nothing(self, kernel: GuardedKernel) -> None:
        assert told(kernel, "1/0") == []
        assert told(kernel, "raise tf.errors.InternalError(None, None, 'something')") == []

    def test_a_fit_names_its_own_batch(self, kernel: GuardedKernel) -> None:
        lines = told(
            kernel,
            "import keras, numpy as np\n"
            "class RunOut(keras.callbacks.Callback):\n"
            "    def on_train_batch_end(self, batch, logs=None): run_out()\n"
            "model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])\n"
            "model.compile('sgd', 'mse')\n"
            "model.fit(np.ones((96, 3)), np.ones((96, 1)), batch_size=48, callbacks=[RunOut()], verbose=0)",
            timeout=240,
        )
        assert lines[2].startswith(
            "What to change: model.fit(..., batch_size=24) instead of 48 (estimate)"
        )
        # The fit of an earlier cell is not to blame for this one.
        assert "batch_size" not in told(kernel, "run_out()")[2]

    def test_the_panel_and_the_chart_hear_of_it(self, kernel: GuardedKernel) -> None:
        from jupyter_tfguard.watch.live.live import LiveReader

        lines = told(kernel, "run_out()")
        kernel.wait_for_event("cell_end")
        reader = LiveReader(kernel.recording_paths()[0])
        try:
            live = reader.read()
        finally:
            reader.close()
        assert live.gpu_oom is not None
        assert live.gpu_oom["lines"] == lines[:3]
        assert live.marks[-1]["label"] == "GPU OOM"
        assert live.cells


def test_without_native_text_the_error_alone_is_reported(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    settings = tmp_path / "config" / "jupyter_tfguard_config.json"
    settings.write_text('{"TfGuard": {"record_stderr": false}}')
    with guarded_kernel(tmp_path) as kernel:
        kernel.run(SETUP, timeout=240)
        lines = told(kernel, "raise OOM(None, None, ON_GPU)")
        assert lines[0] == "tfguard: the GPU ran out of memory: requested 2.00 GiB."


def outputs_of(kernel: GuardedKernel, code: str) -> list[tuple[str, str]]:
    """Kind and text of each message of a cell, in the order in which a page gets them."""
    request = kernel.send(code)
    found: list[tuple[str, str]] = []
    idle = False
    while True:
        try:
            message = kernel.client.get_iopub_msg(timeout=0.6 if idle else 120)
        except queue.Empty:
            return found
        if message["parent_header"].get("msg_id") != request:
            continue
        content = message["content"]
        if message["msg_type"] == "stream":
            found.append(("stream", content["text"]))
        elif message["msg_type"] == "error":
            found.append(("error", ""))
        idle |= message["msg_type"] == "status" and content["execution_state"] == "idle"
