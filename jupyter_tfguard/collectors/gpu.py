"""Memory, processes, load, heat, power and health of each NVIDIA GPU, in a separate process: NVML may hang or crash.

``python -m jupyter_tfguard.collectors.gpu [SECONDS]`` prints one JSON line per tick until its standard input ends:

* ``{"state": "ok", "reason": null, "time": Unix seconds, "devices": [...], "events": [...], "cost_seconds": 0.0011}``.
  A device has the keys of :mod:`.gpu_cards`; an event is a fault that the driver reported (Xid), ``time, xid, bus_id,
  nvml_index, gpu_uuid``. The cost is the CPU time for this line.
* ``{"state": "none" | "unavailable", "reason": "No NVIDIA GPU found", "devices": [], ...}``, and the process ends.

With ``versions`` instead of SECONDS it prints one line and ends: ``{"state": "ok", "reason": null, "driver_version":
"550.54.15", "cuda_driver_version": "12.4", "devices": [{"name": "Tesla T4", "compute_capability": "7.5"}]}``, or
a state and reason as above with ``nvml_error``, the error code of NVML.

Unknown values are null. NVML is initialised once and never shut down: some drivers hang if that is repeated
(NVIDIA/go-nvml issue 152).
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

NO_GPU = "No NVIDIA GPU found"
_NO_PACKAGE = "The Python package nvidia-ml-py is not installed."
_EVENT_LIMIT = 100
_XID = 0x8  # nvmlEventTypeXidCriticalError
_WAIT_MILLISECONDS = 1000
_LIBRARY_NOT_FOUND, _MISMATCH, _TIMEOUT = 12, 18, 10  # nvml.h, nvmlReturn_t

Event = tuple[int | None, int, float]


def main(interval_seconds: float = 1.0) -> int:
    """Print lines until standard input ends; returns the exit code."""
    # The server holds the other end of standard input: if the server dies, this process ends, even during an NVML call.
    threading.Thread(target=_leave_at_end_of_input, daemon=True).start()
    try:
        import pynvml
    except ImportError:
        return _print("unavailable", _NO_PACKAGE)
    from .gpu_cards import Cards

    try:
        pynvml.nvmlInit()
        cards = Cards(pynvml)
        if not len(cards):
            return _print("none", NO_GPU)
        heard: deque[Event] = deque(maxlen=_EVENT_LIMIT)
        threading.Thread(target=_listen, args=(pynvml, len(cards), heard), daemon=True).start()
        while True:
            started, began = time.monotonic(), time.thread_time()
            devices = cards.read()
            new = [heard.popleft() for _ in range(len(heard))]
            events = [
                {"time": when, "xid": xid} | cards.identity(index) for index, xid, when in new
            ]
            _print("ok", None, devices, events=events, cost_seconds=time.thread_time() - began)
            # Keep the interval even with a slow driver: the server kills this process if no line arrives in time.
            time.sleep(max(0.2 * interval_seconds, started + interval_seconds - time.monotonic()))
    except pynvml.NVMLError as bad:
        return _print(*_why_not(bad))


def _listen(nvml: Any, count: int, heard: deque[Event]) -> None:
    """Append each new Xid event: index of the card (None = unknown), Xid, Unix seconds. Runs in a separate thread."""
    with contextlib.suppress(nvml.NVMLError):  # a driver without events
        events = nvml.nvmlEventSetCreate()
        for card in range(count):
            with contextlib.suppress(nvml.NVMLError):
                nvml.nvmlDeviceRegisterEvents(nvml.nvmlDeviceGetHandleByIndex(card), _XID, events)
        while True:
            try:
                event = nvml.nvmlEventSetWait_v2(events, _WAIT_MILLISECONDS)
            except nvml.NVMLError as bad:
                if bad.value != _TIMEOUT:
                    time.sleep(1)  # every wait fails after a card was lost
                continue
            index: int | None = None
            with contextlib.suppress(nvml.NVMLError):  # a lost card has no index
                index = nvml.nvmlDeviceGetIndex(event.device)
            heard.append((index, int(event.eventData), time.time()))


def print_versions() -> int:
    """Print one line: driver version, its CUDA version, compute capability of each card; returns the exit code."""
    try:
        import pynvml
    except ImportError:
        return _print("unavailable", _NO_PACKAGE, nvml_error=None)
    from .gpu_cards import ask

    try:
        pynvml.nvmlInit()
        driver = ask(pynvml, pynvml.nvmlSystemGetDriverVersion)
        cuda = ask(pynvml, pynvml.nvmlSystemGetCudaDriverVersion_v2)  # 12040 means 12.4
        devices = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            card = pynvml.nvmlDeviceGetHandleByIndex(index)
            capability = ask(pynvml, pynvml.nvmlDeviceGetCudaComputeCapability, card)
            number = None if capability is None else "{}.{}".format(*capability)
            devices.append(
                {"name": ask(pynvml, pynvml.nvmlDeviceGetName, card), "compute_capability": number}
            )
    except pynvml.NVMLError as bad:
        return _print(*_why_not(bad), nvml_error=bad.value)
    version = None if cuda is None else f"{cuda // 1000}.{cuda % 1000 // 10}"
    return _print("ok", None, devices, driver_version=driver, cuda_driver_version=version)


def _leave_at_end_of_input() -> None:
    # Not through sys.stdin: this thread would hold its lock, which aborts the interpreter at shutdown.
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    os._exit(0)


def _why_not(bad: Any) -> tuple[str, str]:
    if bad.value == _LIBRARY_NOT_FOUND:
        return "none", NO_GPU
    if bad.value == _MISMATCH:
        return "unavailable", (
            "The loaded NVIDIA driver and its library have different versions, usually after an update. "
            "Restart the machine."
        )
    return "unavailable", f"The NVIDIA driver does not answer: {bad}"


def _print(
    state: str,
    reason: str | None,
    devices: list[dict[str, Any]] | None = None,
    *,
    events: list[dict[str, Any]] | None = None,
    **more: Any,
) -> int:
    line = {"state": state, "reason": reason, "time": time.time(), "events": events or []}
    try:
        print(json.dumps(line | more | {"devices": devices or []}), flush=True)
    except BrokenPipeError:
        os._exit(0)  # the reader is gone
    return 0


if __name__ == "__main__":
    chosen = sys.argv[1] if len(sys.argv) > 1 else "1"
    code = print_versions() if chosen == "versions" else main(float(chosen))
    os._exit(code)  # a thread may be inside NVML, whose exit handlers do not expect that
