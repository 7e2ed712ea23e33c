"""A GPU's memory that ran out and left the kernel alive: three lines under the traceback, an event, and nothing else.

No GPU is here: the cells log what TensorFlow's allocator logs, and raise TensorFlow's own error class.
"""

from __future__ import annotations

import builtins
import queue
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_tfguard.kernel.gpu_oom import (
    Beginning,
    GpuOomTeller,
    out_of_memory_text,
    speaks_of_gpu,
)
from jupyter_tfguard.record.native_since import Place
from tests.kernel.rig import GuardedKernel, guarded_kernel

GIB = 1024**3
STAMP = "I0000 00:00:1762253213.310854  475186 bfc_allocator.cc:1058] "
TENSOR = (
    "OOM when allocating tensor with shape[256,512,64,64] and type float on "
    "/job:localhost/replica:0/task:0/device:{device} by allocator {allocator}"
)
ON_GPU = TENSOR.format(device="GPU:0", allocator="GPU_0_bfc")
ON_CPU = TENSOR.format(device="CPU:0", allocator="cpu")
PINNED = TENSOR.format(device="GPU:0", allocator="gpu_host_bfc")
XLA = "Out of memory while trying to allocate 2147483648 bytes."
COPY = (
    "Failed copying input tensor from /job:localhost/replica:0/task:0/device:CPU:0 to /job:localhost/replica:0/task:0/"
    "device:GPU:0 in order to run _EagerConst: Dst tensor is not initialized."
)


def dump(asked: int, pool: int, used: int, free_blocks: list[int], limit: int) -> str:
    """What the allocator logs, in the form of TensorFlow 2.21."""
    lines = [
        f"W{STAMP[1:]}Allocator (GPU_0_bfc) ran out of memory trying to allocate {asked / GIB:.2f}GiB "
        f"(rounded to {asked})requested by op Conv2D",
        "If the cause is memory fragmentation maybe the environment variable 'TF_GPU_ALLOCATOR=cuda_malloc_async' will "
        "improve the situation.",
        f"{STAMP}BFCAllocator dump for GPU_0_bfc",
        f"{STAMP}Next region of size {pool}",
        f"{STAMP}InUse at 797202000000 of size {used // 4} next 1",
        *(f"{STAMP}Free  at 797302000000 of size {size} next 2" for size in free_blocks),
        f"{STAMP}     Summary of in-use Chunks by size: ",
        f"{STAMP}4 Chunks of size {used // 4} totalling {used / GIB:.2f}GiB",
        f"{STAMP}Sum Total of in-use chunks: {used / GIB:.2f}GiB",
        f"{STAMP}Total bytes in pool: {pool} memory_limit_: {limit} available bytes: {limit - pool} "
        f"curr_region_allocation_bytes_: {2 * limit}",
        f"{STAMP}Stats: ",
        f"Limit: {limit:>26}",
        f"InUse: {used:>26}",
        f"MaxInUse: {used:>23}",
        f"LargestFreeBlock: {0:>15}",
        "",
        f"W{STAMP[1:]}*****************************xx____xxxx",
    ]
    return "\n".join(lines) + "\n"


FULL = dump(2 * GIB, 14 * GIB, 13 * GIB, [GIB // 2, GIB // 2], 14 * GIB)
FRAGMENTED = dump(2 * GIB, 14 * GIB, 8 * GIB, [GIB] * 6, 14 * GIB)
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
            "tfguard: the GPU ran out of memory: asked for 2.00 GiB, free 1.00 GiB of 14.0 GiB, largest free block 512 MiB.",
            "Biggest holders: 4 blocks of 3.25 GiB, 13.0 GiB in all.",
            "What to change: 128 instead of 256 at once, if that is the batch (estimate); what earlier cells left on the GPU "
            "goes when its variables do, or at a restart.",
        ]

    def test_they_come_under_the_longest_dump(self, kernel: GuardedKernel) -> None:
        line = "I bfc_allocator.cc:1058] InUse at 797202000000 of size 256 next 1\n"
        outputs = outputs_of(kernel, f"run_out({line!r} * 8000 + FULL)")
        printed = "".join(text for _, text in outputs)
        assert len(printed) > 100_000
        assert (
            printed.rstrip()
            .splitlines()[-3]
            .startswith("tfguard: the GPU ran out of memory: asked")
        )

    def test_the_event_has_the_lines_and_the_numbers(self, kernel: GuardedKernel) -> None:
        before = len([e for e in kernel.recording().events if e["kind"] == "gpu_oom"])
        lines = told(kernel, "run_out()")
        event = kernel.wait_for_event("gpu_oom", count=before + 1)[-1]
        assert event["lines"] == lines[:3]
        assert event["asked_bytes"] == 2 * GIB
        assert event["free_bytes"] == 1 * GIB
        assert event["largest_free_bytes"] == GIB // 2
        assert event["limit_bytes"] == 14 * GIB
        end = kernel.wait_for_event("cell_end")[-1]
        assert event["execution_count"] == end["execution_count"]
        assert end["error"] == "ResourceExhaustedError"
        assert kernel.is_alive()

    def test_pieces_too_small_ask_for_the_other_allocator(self, kernel: GuardedKernel) -> None:
        lines = told(kernel, "run_out(FRAGMENTED)")
        assert "free 6.00 GiB of 14.0 GiB, largest free block 1.00 GiB" in lines[0]
        assert "TF_GPU_ALLOCATOR=cuda_malloc_async" in lines[2]
        assert "growth does not help" in lines[2]

    def test_numbers_of_an_earlier_cell_are_not_this_cells(self, kernel: GuardedKernel) -> None:
        kernel.run("os.write(2, FULL.encode());")
        lines = told(kernel, "raise OOM(None, None, ON_GPU)")
        # The error's own text tells what was asked for; nothing else is known.
        assert lines[0] == "tfguard: the GPU ran out of memory: asked for 2.00 GiB."
        assert lines[1].startswith("Biggest holders: not told")

    def test_an_error_that_was_caught_is_the_users_own_business(
        self, kernel: GuardedKernel
    ) -> None:
        events = len([e for e in kernel.recording().events if e["kind"] == "gpu_oom"])
        assert told(kernel, "try: run_out()\nexcept OOM: print('smaller, then')") == []
        assert len([e for e in kernel.recording().events if e["kind"] == "gpu_oom"]) == events

    @pytest.mark.parametrize(
        "code",
        [
            "try: run_out()\nexcept OOM as bad: raise RuntimeError('my loop') from bad",
            "try: run_out()\nexcept OOM: raise KeyError('while handling')",
            "class Mine(OOM): pass\nos.write(2, FULL.encode()); raise Mine(None, None, ON_GPU)",
        ],
        ids=["cause", "context", "subclass"],
    )
    def test_an_error_that_was_wrapped_is_still_found(
        self, kernel: GuardedKernel, code: str
    ) -> None:
        lines = told(kernel, code)
        assert lines
        assert "asked for 2.00 GiB" in lines[0]

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
        assert lines[2].startswith("What to change: batch_size=24 instead of 48 (estimate)")
        # The fit of an earlier cell is not to blame for this one.
        assert "batch_size" not in told(kernel, "run_out()")[2]

    def test_the_panel_and_the_chart_hear_of_it(self, kernel: GuardedKernel) -> None:
        from jupyter_tfguard.watch.live import LiveReader

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


def test_without_native_text_the_error_alone_is_told(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    settings = tmp_path / "config" / "jupyter_tfguard_config.json"
    settings.write_text('{"TfGuard": {"keep_native_stderr": false}}')
    with guarded_kernel(tmp_path) as kernel:
        kernel.run(SETUP, timeout=240)
        lines = told(kernel, "raise OOM(None, None, ON_GPU)")
        assert lines[0] == "tfguard: the GPU ran out of memory: asked for 2.00 GiB."


def test_a_notebook_that_is_executed_keeps_the_lines(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    kernel = GuardedKernel(tmp_path)
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(SETUP), nbformat.v4.new_code_cell("run_out()")]
    )
    client = nbclient.NotebookClient(notebook, timeout=240, allow_errors=True)
    (tmp_path / "ipython/profile_default/startup").mkdir(parents=True)
    from tests.kernel.rig import STARTUP_FILE

    (tmp_path / "ipython/profile_default/startup/00-tfguard.py").write_text(
        STARTUP_FILE.read_text()
    )
    (tmp_path / "before.py").write_text("")
    client.execute(env=kernel.full_environment())
    outputs = notebook.cells[1].outputs
    kinds = [output.output_type for output in outputs]
    assert "error" in kinds
    after = outputs[kinds.index("error") + 1 :]
    assert any("tfguard: the GPU ran out of memory" in output.get("text", "") for output in after)


def outputs_of(kernel: GuardedKernel, code: str) -> list[tuple[str, str]]:
    """Kind and text of each message of a cell, in the order in which a page gets them."""
    request = kernel.send(code)
    found: list[tuple[str, str]] = []
    idle = False
    while True:
        try:
            message = kernel.client.get_iopub_msg(timeout=0.6 if idle else 60)
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


# --- without a kernel


def error(message: str, name: str = "ResourceExhaustedError") -> Exception:
    """An error of a class that looks like TensorFlow's."""
    module = "tensorflow.python.framework.errors_impl"
    kind = type(name, (Exception,), {"__module__": module, "message": message})
    made: Exception = kind(message)
    return made


@pytest.mark.quick
class TestFinding:
    def test_the_text_is_taken_from_the_error_and_what_it_came_from(self) -> None:
        assert out_of_memory_text(error(ON_GPU)) == ON_GPU
        wrapped = RuntimeError("mine")
        wrapped.__cause__ = error(ON_GPU)
        assert out_of_memory_text(wrapped) == ON_GPU
        hidden = KeyError("mine")
        hidden.__context__ = error(ON_GPU)
        assert out_of_memory_text(hidden) == ON_GPU
        hidden.__suppress_context__ = True  # raise ... from None
        assert out_of_memory_text(hidden) is None

    @pytest.mark.skipif(sys.version_info < (3, 11), reason="groups came with Python 3.11")
    def test_a_member_of_a_group_is_found(self) -> None:
        group = builtins.ExceptionGroup("some", [ValueError("x"), error(ON_GPU)])
        assert out_of_memory_text(group) == ON_GPU

    def test_errors_that_lead_to_each_other_end(self) -> None:
        one, other = RuntimeError("a"), RuntimeError("b")
        one.__cause__, other.__cause__ = other, one
        assert out_of_memory_text(one) is None
        for _ in range(100):
            deeper = RuntimeError("c")
            deeper.__cause__ = one
            one = deeper
        assert out_of_memory_text(one) is None

    def test_a_class_of_the_users_with_that_name_is_not_tensorflows(self) -> None:
        mine = type("ResourceExhaustedError", (Exception,), {"__module__": "__main__"})
        assert out_of_memory_text(mine("no disk")) is None

    def test_a_copy_to_the_gpu_that_failed_is_one_too(self) -> None:
        assert out_of_memory_text(error(COPY, "InternalError")) == COPY
        assert out_of_memory_text(error("Blas GEMM launch failed", "InternalError")) is None

    @pytest.mark.parametrize(
        ("message", "native", "made", "gpu"),
        [
            (ON_GPU, "", False, True),
            (TENSOR.format(device="GPU:3", allocator="gpu_async_3"), "", True, True),
            (ON_CPU, FULL, True, False),
            (TENSOR.format(device="CPU:0", allocator="mklcpu"), "", True, False),
            (PINNED, "", True, False),
            (XLA, "", False, False),
            (XLA, "", True, True),
            (XLA, FULL, False, True),
            (COPY, "", True, True),
            ("failed to allocate memory [Op:Mul]", "", True, False),
            ("failed to allocate memory [Op:Mul]", FULL, True, True),
            ("No space left on device", "", True, False),
            (
                "quota of the data service",
                "Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.25GiB with freed_by_count=0. The caller "
                "indicates that this is not a failure, but may mean that there could be performance gains.",
                True,
                False,
            ),
        ],
    )
    def test_it_is_the_gpus_memory_only_where_the_text_says_so(
        self, message: str, native: str, made: bool, gpu: bool
    ) -> None:
        assert speaks_of_gpu(message, native, gpu_made=made) is gpu


@pytest.mark.quick
class TestTelling:
    def teller(
        self, events: list[dict[str, Any]], native: str, *, prints: bool = True
    ) -> GpuOomTeller:
        return GpuOomTeller(
            lambda kind, **fields: events.append({"kind": kind} | fields),
            lambda: Place(2, 8192),
            lambda place: native,
            lambda seconds: None,
            lambda: SimpleNamespace(started=10.0, batch_size=64),  # type: ignore[arg-type,return-value]
            lambda: True,
            prints=prints,
        )

    def test_switched_off_it_prints_nothing_and_the_panel_hears_of_it(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        events: list[dict[str, Any]] = []
        teller = self.teller(events, FULL, prints=False)
        teller.tell(error(ON_GPU), Beginning(Place(2, 0), 9.0), 7)
        assert capsys.readouterr() == ("", "")
        assert [event["kind"] for event in events] == ["gpu_oom"]

    def test_only_the_fit_of_this_cell_counts(self, capsys: pytest.CaptureFixture[str]) -> None:
        events: list[dict[str, Any]] = []
        teller = self.teller(events, FULL)
        teller.tell(error(ON_GPU), Beginning(Place(2, 0), 9.0), 7)
        assert "batch_size=32 instead of 64" in capsys.readouterr().err
        teller.tell(error(ON_GPU), Beginning(Place(2, 0), 11.0), 8)
        assert "batch_size" not in capsys.readouterr().err
        assert [event["execution_count"] for event in events] == [7, 8]

    def test_text_from_outside_makes_no_line_longer_than_a_line(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        events: list[dict[str, Any]] = []
        long = FULL.replace("Conv2D", "x" * 5000).replace(" next 1", f" by op {'y' * 5000} next 1")
        self.teller(events, long).tell(error(ON_GPU), Beginning(Place(2, 0), 9.0), 7)
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 3
        assert max(map(len, lines)) <= 401
