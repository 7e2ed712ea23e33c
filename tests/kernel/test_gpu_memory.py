"""What TensorFlow's GPU allocators say, asked only where TensorFlow made a GPU device itself.

No GPU is here: in the real TensorFlow the list of devices that were made and the call that asks an allocator are replaced.
"""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_tfguard.kernel.capture import gpu_pulse
from jupyter_tfguard.training import gpu_memory
from jupyter_tfguard.training.gpu_memory import DeviceMemory, GpuAllocators, created_devices
from tests.kernel.rig import GuardedKernel, guarded_kernel
from tests.rigs.waiting import wait_until

GIB = 1024**3
NO_WRITER_WAITS = gpu_memory._nonblocking_stderr
# The card's own line, in the form of TensorFlow 2.21.
LINE = (
    "I0000 00:00:1762253213.310854  475186 gpu_device.cc:2020] Created device /job:localhost/replica:0/task:0/"
    "device:GPU:{n} with 8056 MB memory:  -> device: {n}, name: NVIDIA GeForce RTX 3080, pci bus id: 0000:0B:00.{n}, "
    "compute capability: 8.6"
)
# In the kernel: the user's TensorFlow with a card. `card` is what its allocator says.
CARD = f"""
import os, sys, time
import tensorflow as tf
from tensorflow.python.eager import context
card, asked, real = {{"current": 1 << 20, "peak": 1 << 20}}, [], context.pywrap_tfe.TFE_GetMemoryInfo
def told(handle, device):
    asked.append(device)
    if device == "GPU:1":
        raise ValueError("no such device")
    return dict(card)
context.pywrap_tfe.TFE_GetMemoryInfo = told
def make_card(count=1):
    x = tf.constant(1.0)
    for n in range(count):
        os.write(2, ({LINE!r}.format(n=n) + "\\n").encode())
    gpus = [context.LogicalDevice(f"/device:GPU:{{n}}", "GPU") for n in range(count)]
    context.context()._logical_devices = [*context.context()._logical_devices, *gpus]
"""


class FakeContext:
    """The attributes of TensorFlow's context that are looked at."""

    def __init__(self, names: list[str]) -> None:
        self._initialized = True
        self._context_handle = object()
        self._logical_devices = [
            SimpleNamespace(name=name, device_type=name.rsplit(":", 2)[-2]) for name in names
        ]


@pytest.fixture
def tensorflow(monkeypatch: pytest.MonkeyPatch, data_folder: Path) -> SimpleNamespace:
    """The context module of a TensorFlow that made CPU:0 and GPU:0; counts what is asked."""
    asked: list[str] = []

    def ask(handle: object, device: str) -> dict[str, int]:
        asked.append(device)
        return {"current": 3 * GIB, "peak": 5 * GIB}

    module = SimpleNamespace(
        _context=FakeContext(["/device:CPU:0", "/device:GPU:0"]),
        pywrap_tfe=SimpleNamespace(TFE_GetMemoryInfo=ask),
        asked=asked,
    )
    monkeypatch.setitem(sys.modules, gpu_memory.CONTEXT_MODULE, module)  # type: ignore[arg-type]
    # Whoever runs the tests may read their stderr from a pipe.
    monkeypatch.setattr(gpu_memory, "_nonblocking_stderr", lambda: nullcontext(True))
    return module


@pytest.mark.quick
class TestAllocators:
    def test_each_gpu_is_asked_and_no_cpu(self, tensorflow: SimpleNamespace) -> None:
        assert GpuAllocators().read() == (DeviceMemory("GPU:0", 3 * GIB, 5 * GIB),)
        assert tensorflow.asked == ["GPU:0"]

    @pytest.mark.parametrize(
        "change",
        [
            {"_initialized": False},
            {"_context_handle": None},
            {"_logical_devices": None},
            {"_logical_devices": [SimpleNamespace(name="/device:CPU:0", device_type="CPU")]},
        ],
        ids=["not ready", "no handle", "no list", "a CPU only"],
    )
    def test_nothing_is_asked_before_a_gpu_device_was_made(
        self, tensorflow: SimpleNamespace, change: dict[str, Any]
    ) -> None:
        vars(tensorflow._context).update(change)
        assert GpuAllocators().read() is None
        assert tensorflow.asked == []

    def test_devices_of_other_processes_are_not_asked(self, tensorflow: SimpleNamespace) -> None:
        names = ["/job:worker/replica:0/task:1/device:GPU:0", "/job:worker/task:0/device:GPU:0"]
        tensorflow._context = FakeContext(names)
        assert GpuAllocators().read() is None
        assert tensorflow.asked == []

    def test_a_device_that_refuses_is_asked_once(
        self, tensorflow: SimpleNamespace, capsys: pytest.CaptureFixture[str]
    ) -> None:
        tensorflow._context = FakeContext(["/device:GPU:0", "/device:GPU:1"])
        good = tensorflow.pywrap_tfe.TFE_GetMemoryInfo

        def refuse_one(handle: object, device: str) -> dict[str, int]:
            answer: dict[str, int] = good(handle, device)
            if device == "GPU:0":
                raise ValueError("Allocator does not have stats")
            return answer

        tensorflow.pywrap_tfe.TFE_GetMemoryInfo = refuse_one
        allocators = GpuAllocators()
        for _ in range(3):
            found = allocators.read()
            assert found is not None
            assert [one.device for one in found] == ["GPU:1"]
        assert tensorflow.asked == ["GPU:0", "GPU:1", "GPU:1", "GPU:1"]
        assert capsys.readouterr().out == ""

    def test_the_long_text_of_a_full_gpu_never_waits_for_us(
        self, tensorflow: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # An allocator logs with its lock held; a pipe that a thread of ours must empty would never be emptied.
        def log_and_answer(handle: object, device: str) -> dict[str, int]:
            while True:
                try:
                    os.write(2, bytes(65536))
                except BlockingIOError:
                    return {"current": GIB, "peak": GIB}

        monkeypatch.setattr(gpu_memory, "_nonblocking_stderr", NO_WRITER_WAITS)
        tensorflow.pywrap_tfe.TFE_GetMemoryInfo = log_and_answer
        reading, writing = os.pipe()
        old = os.dup(2)
        try:
            os.dup2(writing, 2)
            first, second = GpuAllocators().read(), GpuAllocators().read()
            assert os.get_blocking(writing)
        finally:
            os.dup2(old, 2)
            for descriptor in (reading, writing, old):
                os.close(descriptor)
        assert first == (DeviceMemory("GPU:0", GIB, GIB),)
        assert second == ()  # text waits: not asked

    def test_without_tensorflow_there_is_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delitem(sys.modules, gpu_memory.CONTEXT_MODULE, raising=False)
        assert GpuAllocators().read() is None


@pytest.mark.quick
class TestCreatedDevices:
    def test_the_line_is_read(self) -> None:
        (found,) = created_devices(f"before\n{LINE.format(n=0)}\nafter")
        assert found == {
            "device": "GPU:0",
            "limit_bytes": 8056 * 1024**2,
            "bus_id": "0000:0b:00.0",
        }

    def test_of_a_device_made_twice_the_later_counts(self) -> None:
        text = f"{LINE.format(n=0)}\n{LINE.format(n=1)}\n{LINE.format(n=0).replace('8056', '4000')}"
        found = created_devices(text)
        assert [one["device"] for one in found] == ["GPU:0", "GPU:1"]
        assert found[0]["limit_bytes"] == 4000 * 1024**2

    def test_a_line_that_was_cut_reports_nothing(self) -> None:
        line = LINE.format(n=0)
        assert created_devices(line[: line.index(", compute") - 2]) == []
        assert created_devices(line[60:]) == []


@pytest.mark.quick
def test_a_line_that_arrives_after_its_device_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_pulse, "_EVERY_SECONDS", 0.0)
    texts = iter(["", LINE.format(n=0), f"{LINE.format(n=0)}\n{LINE.format(n=1)}"])

    class Allocators:
        def devices(self) -> tuple[str, ...]:
            return ("GPU:0", "GPU:1")

        def read(self) -> None:
            return None

    emitted: list[str] = []
    pulse = gpu_pulse.GpuPulse(
        Allocators(),  # type: ignore[arg-type]
        on_sample=lambda found: None,
        write=lambda told: None,
        native_text=lambda: next(texts),  # ends with an error if it is read more often than needed
        emit=lambda event: emitted.append(event.fields()["device"]),
    )
    for _ in range(5):
        pulse.tick()
    assert emitted == ["GPU:0", "GPU:1"]
    assert not pulse._failed


class TestInAKernel:
    def test_on_a_cpu_tensorflow_is_never_asked(self, tmp_path: Path) -> None:
        with guarded_kernel(tmp_path) as kernel:
            made = kernel.run(CARD, timeout=240)
            assert made.error is None, made.traceback
            kernel.run("y = tf.reduce_sum(tf.ones((600, 600)))")
            kernel.run("time.sleep(1.5)")
            kernel.run("%tfguard status")
            assert kernel.run("print(asked)").stdout == "[]\n"
            assert not (kernel.recording_paths()[0] / "gpu_memory.ring").exists()
            assert kernel.recording().gpu_memory is None

    def test_a_gpu_device_is_followed_once_a_second(self, tmp_path: Path) -> None:
        with guarded_kernel(tmp_path) as kernel:
            made = kernel.run(CARD, timeout=240)
            assert made.error is None, made.traceback
            kernel.run("make_card(2)")
            (event,) = _events_of_device(kernel, "GPU:0")
            assert event["limit_bytes"] == 8056 * 1024**2
            assert event["bus_id"] == "0000:0b:00.0"
            assert len(_events_of_device(kernel, "GPU:1")) == 1

            kernel.run("card['current'], card['peak'] = 2 << 30, 3 << 30")
            told = kernel.run("%tfguard status").stdout.splitlines()
            assert "GPU:0: 2.00 GiB in TensorFlow tensors; peak 3.00 GiB" in told
            assert not any(line.startswith("GPU:1") for line in told)
            ends = [e for e in kernel.recording().events if e["kind"] == "cell_end"][-3:-1]
            # The device was made in the first of them: before, there was no allocator.
            assert [e["gpu_start_bytes"] for e in ends] == [0, 1 << 20]
            assert [e["gpu_peak_bytes"] for e in ends] == [1 << 20, 3 << 30]
            assert [e["gpu_bytes"] for e in ends] == [1 << 20, 2 << 30]
            table = kernel.run("%tfguard cells").stdout
            assert "GPU kept" in table
            assert "+3.00 GiB  +2.00 GiB" in table
            wanted = [{"device": "GPU:0", "in_use_bytes": 2 << 30, "peak_bytes": 3 << 30}]
            wait_until(lambda: kernel.recording().gpu_memory == wanted or None, "the new numbers")
            count = (
                "asked.clear(); began = time.monotonic()\n"
                "while asked.count('GPU:0') < 3: time.sleep(0.1)\n"
                "print(asked.count('GPU:0'), asked.count('GPU:1'), int(time.monotonic() - began))"
            )
            first, second, seconds = map(int, kernel.run(count).stdout.split())
            # Once a second, and at the beginning of the cell.
            assert first <= seconds + 3
            assert second == 0  # it refused
            assert kernel.is_alive()


def _events_of_device(kernel: GuardedKernel, device: str) -> list[dict[str, Any]]:
    events = kernel.wait_for_event("gpu_device", count=2)
    return [event for event in events if event["device"] == device]
