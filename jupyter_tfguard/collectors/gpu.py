"""Memory, load, heat and power of each NVIDIA GPU. Runs as a process of its own, because NVML may hang or crash.

``python -m jupyter_tfguard.collectors.gpu [SECONDS]`` prints one JSON line per tick until its standard input ends:

* ``{"state": "ok", "reason": null, "devices": [{"nvml_index", "gpu_uuid", "name", ...}]}``
* ``{"state": "none" | "unavailable", "reason": "No NVIDIA GPU here", "devices": []}``, and the process ends.

With the word ``versions`` for SECONDS it prints one line and ends: ``{"state": "ok", "reason": null, "driver_version":
"550.54.15", "cuda_driver_version": "12.4", "devices": [{"name": "Tesla T4", "compute_capability": "7.5"}]}``, or
a state and reason as above with the ``nvml_error``, NVML's number.

A number that the driver does not give is null. Not here: memory per process.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from ..metrics import Metric, Unit

NO_GPU = "No NVIDIA GPU here"
_NO_PACKAGE = "The Python package nvidia-ml-py is not installed."
METRICS: tuple[Metric, ...] = (
    Metric("gpu.memory_total_bytes", "GPU memory", Unit.BYTES, "nvmlDeviceGetMemoryInfo, total"),
    Metric(
        "gpu.memory_used_bytes",
        "GPU memory in use, all processes and the driver's share",
        Unit.BYTES,
        "nvmlDeviceGetMemoryInfo, used",
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
        handles = _handles(pynvml)
    except pynvml.NVMLError as bad:
        return _print(*_why_not(pynvml, bad))
    if not handles:
        return _print("none", NO_GPU)
    while True:
        try:
            devices = [_device(pynvml, index, handle) for index, handle in enumerate(handles)]
        except pynvml.NVMLError as bad:  # lost from the bus, driver replaced
            return _print(*_why_not(pynvml, bad))
        _print("ok", None, devices)
        time.sleep(interval_seconds)


def tell_versions() -> int:
    """Print one line: the driver's version, the CUDA it brings and what each card can run; the exit code."""
    try:
        import pynvml
    except ImportError:
        return _print("unavailable", _NO_PACKAGE, nvml_error=None)
    try:
        pynvml.nvmlInit()
        driver = _text(_known(pynvml, pynvml.nvmlSystemGetDriverVersion))
        cuda = _known(pynvml, pynvml.nvmlSystemGetCudaDriverVersion_v2)  # 12040 means 12.4
        devices = [_abilities(pynvml, handle) for handle in _handles(pynvml)]
    except pynvml.NVMLError as bad:
        return _print(*_why_not(pynvml, bad), nvml_error=bad.value)
    version = None if cuda is None else f"{cuda // 1000}.{cuda % 1000 // 10}"
    return _print("ok", None, devices, driver_version=driver, cuda_driver_version=version)


def _abilities(nvml: Any, handle: Any) -> dict[str, Any]:
    capability = _known(nvml, lambda: nvml.nvmlDeviceGetCudaComputeCapability(handle))
    return {
        "name": _text(_known(nvml, lambda: nvml.nvmlDeviceGetName(handle))),
        "compute_capability": None if capability is None else "{}.{}".format(*capability),
    }


def _leave_at_end_of_input() -> None:
    # Not through sys.stdin: its lock, held by this thread, would abort the interpreter's own shutdown.
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    os._exit(0)


def _handles(nvml: Any) -> list[Any]:
    count = nvml.nvmlDeviceGetCount()
    return [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]


def _device(nvml: Any, index: int, handle: Any) -> dict[str, Any]:
    memory = _known(nvml, lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
    load = _known(nvml, lambda: nvml.nvmlDeviceGetUtilizationRates(handle))
    power = _known(nvml, lambda: nvml.nvmlDeviceGetPowerUsage(handle))
    return {
        "nvml_index": index,
        "gpu_uuid": _text(_known(nvml, lambda: nvml.nvmlDeviceGetUUID(handle))),
        "name": _text(_known(nvml, lambda: nvml.nvmlDeviceGetName(handle))),
        "memory_total_bytes": None if memory is None else int(memory.total),
        "memory_used_bytes": None if memory is None else int(memory.used),
        "utilization_fraction": None if load is None else load.gpu / 100,
        "temperature_celsius": _known(
            nvml, lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)
        ),
        "power_watts": None if power is None else power / 1000,
    }


def _known(nvml: Any, call: Callable[[], Any]) -> Any:
    """The call's result; None where this GPU or driver does not tell (not supported, no permission)."""
    try:
        return call()
    except nvml.NVMLError as bad:
        if bad.value in (nvml.NVML_ERROR_GPU_IS_LOST, nvml.NVML_ERROR_UNINITIALIZED):
            raise
        return None


def _text(value: Any) -> str | None:
    # nvidia-ml-py gave bytes until version 11.515.
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _why_not(nvml: Any, bad: Any) -> tuple[str, str]:
    if bad.value == nvml.NVML_ERROR_LIBRARY_NOT_FOUND:
        return "none", NO_GPU
    if bad.value == nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
        return "unavailable", (
            "The loaded NVIDIA driver and its library are of different versions, as after an update: "
            "restart the machine."
        )
    return "unavailable", f"The NVIDIA driver does not answer: {bad}"


def _print(
    state: str, reason: str | None, devices: list[dict[str, Any]] | None = None, **more: Any
) -> int:
    with contextlib.suppress(BrokenPipeError):
        line = {"state": state, "reason": reason, **more, "devices": devices or []}
        print(json.dumps(line), flush=True)
        return 0
    os._exit(0)  # nobody reads any more


if __name__ == "__main__":
    chosen = sys.argv[1] if len(sys.argv) > 1 else "1"
    sys.exit(tell_versions() if chosen == "versions" else main(float(chosen)))
