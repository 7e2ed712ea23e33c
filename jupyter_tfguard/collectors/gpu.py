"""Memory, processes, load, heat, power and health of each NVIDIA GPU. A process of its own, because NVML may hang or crash.

``python -m jupyter_tfguard.collectors.gpu [SECONDS]`` prints one JSON line per tick until its standard input ends, and
one at once when the driver reports a fault of a card (Xid):

* ``{"state": "ok", "reason": null, "time": Unix seconds, "devices": [...], "events": [...], "cost_seconds": 0.0011}``.
  A device has the keys of :mod:`.gpu_devices`, an event ``time, xid, bus_id, nvml_index, gpu_uuid``. The cost is the
  processor's time for this line.
* ``{"state": "none" | "unavailable", "reason": "No NVIDIA GPU here", "devices": [], ...}``, and the process ends.

With the word ``versions`` for SECONDS it prints one line and ends: ``{"state": "ok", "reason": null, "driver_version":
"550.54.15", "cuda_driver_version": "12.4", "devices": [{"name": "Tesla T4", "compute_capability": "7.5"}]}``, or
a state and reason as above with the ``nvml_error``, NVML's number.

What the driver does not give is null. NVML is initialised once and never shut down: some drivers hang when that is
repeated (NVIDIA/go-nvml issue 152). No call here opens a CUDA context.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections import deque
from typing import Any

from ..metrics import Metric, Unit
from .gpu_calls import LIB_RM_VERSION_MISMATCH, attempt, text
from .gpu_cards import Cards
from .gpu_events import listen

NO_GPU = "No NVIDIA GPU here"
_NO_PACKAGE = "The Python package nvidia-ml-py is not installed."
_EVENT_LIMIT = 100
_PAUSE_SECONDS = 0.2  # between two lines at least, however many faults the driver reports
METRICS: tuple[Metric, ...] = (
    Metric("gpu.memory_total_bytes", "GPU memory", Unit.BYTES, "nvmlDeviceGetMemoryInfo, total"),
    Metric(
        "gpu.memory_used_bytes",
        "GPU memory in use by all processes",
        Unit.BYTES,
        "nvmlDeviceGetMemoryInfo_v2, used without reserved",
    ),
    Metric(
        "gpu.utilization_fraction",
        "Time with at least one CUDA kernel running",
        Unit.FRACTION,
        "nvmlDeviceGetUtilizationRates, gpu",
    ),
    Metric(
        "gpu.temperature_celsius",
        "Temperature of the chip",
        Unit.CELSIUS,
        "nvmlDeviceGetTemperature, NVML_TEMPERATURE_GPU",
    ),
    Metric("gpu.power_watts", "Power drawn", Unit.WATTS, "nvmlDeviceGetPowerUsage, milliwatts"),
)


def main(interval_seconds: float = 1.0) -> int:
    """Print lines until standard input ends; the exit code."""
    # The other end of standard input is the server's: when the server dies, whatever NVML is doing is over.
    threading.Thread(target=_leave_at_end_of_input, daemon=True).start()
    try:
        import pynvml
    except ImportError:
        return _print("unavailable", _NO_PACKAGE)
    try:
        pynvml.nvmlInit()
        cards = Cards(pynvml)
        return _tell(pynvml, cards, interval_seconds) if len(cards) else _print("none", NO_GPU)
    except pynvml.NVMLError as bad:
        return _print(*_why_not(pynvml, bad))


def _tell(nvml: Any, cards: Cards, interval_seconds: float) -> int:
    heard: deque[tuple[int | None, int, float]] = deque(maxlen=_EVENT_LIMIT)
    wake = threading.Event()

    def hear(index: int | None, xid: int, when: float) -> None:
        heard.append((index, xid, when))
        wake.set()

    threading.Thread(target=listen, args=(nvml, len(cards), hear), daemon=True).start()
    pause = min(interval_seconds, _PAUSE_SECONDS)
    while True:
        started, began = time.monotonic(), time.thread_time()
        wake.clear()
        devices = cards.read()
        new = [heard.popleft() for _ in range(len(heard))]
        events = [{"time": when, "xid": xid} | cards.identity(index) for index, xid, when in new]
        _print("ok", None, devices, events=events, began=began)
        time.sleep(pause)
        # A slow driver does not push the lines apart: by their silence the reader is judged.
        wake.wait(max(0.0, started + interval_seconds - time.monotonic()))


def tell_versions() -> int:
    """Print one line: the driver's version, the CUDA it brings and what each card can run; the exit code."""
    try:
        import pynvml
    except ImportError:
        return _say("unavailable", _NO_PACKAGE, nvml_error=None)
    try:
        pynvml.nvmlInit()
        driver = text(attempt(pynvml, "nvmlSystemGetDriverVersion")[0])
        cuda = attempt(pynvml, "nvmlSystemGetCudaDriverVersion_v2")[0]  # 12040 means 12.4
        devices = [_abilities(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError as bad:
        return _say(*_why_not(pynvml, bad), nvml_error=bad.value)
    version = None if cuda is None else f"{cuda // 1000}.{cuda % 1000 // 10}"
    return _say("ok", None, devices, driver_version=driver, cuda_driver_version=version)


def _abilities(nvml: Any, index: int) -> dict[str, Any]:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    capability, _ = attempt(nvml, "nvmlDeviceGetCudaComputeCapability", handle)
    return {
        "name": text(attempt(nvml, "nvmlDeviceGetName", handle)[0]),
        "compute_capability": None if capability is None else "{}.{}".format(*capability),
    }


def _leave_at_end_of_input() -> None:
    # Not through sys.stdin: its lock, held by this thread, would abort the interpreter's own shutdown.
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    os._exit(0)


def _why_not(nvml: Any, bad: Any) -> tuple[str, str]:
    if bad.value == nvml.NVML_ERROR_LIBRARY_NOT_FOUND:
        return "none", NO_GPU
    if bad.value == LIB_RM_VERSION_MISMATCH:
        return "unavailable", (
            "The loaded NVIDIA driver and its library are of different versions, as after an update: "
            "restart the machine."
        )
    return "unavailable", f"The NVIDIA driver does not answer: {bad}"


def _print(
    state: str,
    reason: str | None,
    devices: list[dict[str, Any]] | None = None,
    *,
    events: list[dict[str, Any]] | None = None,
    began: float | None = None,
) -> int:
    body = json.dumps(devices or [])
    cost = None if began is None else time.thread_time() - began
    rest = {"state": state, "reason": reason, "time": time.time(), "events": events or []}
    return _write(json.dumps(rest | {"cost_seconds": cost})[:-1] + f', "devices": {body}}}')


def _say(
    state: str, reason: str | None, devices: list[dict[str, Any]] | None = None, **more: Any
) -> int:
    return _write(json.dumps({"state": state, "reason": reason, **more, "devices": devices or []}))


def _write(line: str) -> int:
    with contextlib.suppress(BrokenPipeError):
        print(line, flush=True)
        return 0
    os._exit(0)  # nobody reads any more


if __name__ == "__main__":
    chosen = sys.argv[1] if len(sys.argv) > 1 else "1"
    code = tell_versions() if chosen == "versions" else main(float(chosen))
    os._exit(code)  # a thread may be inside NVML, whose own end would not expect it
