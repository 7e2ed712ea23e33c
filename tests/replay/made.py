"""A bundle of a death like many: three cells, a fit of which two epochs ended, memory that rose to a container's limit."""

from __future__ import annotations

import copy
from typing import Any

from jupyter_tfguard.units import GIB

DIED = 1_790_000_000.0
_COLUMNS = ["time", "process.rss_bytes", "cgroup.used_bytes", "cgroup.limit_bytes"]


def rss_at(seconds_before: int) -> int:
    """Resident memory so long before the death: 2 GiB at the end, 10 MiB a second."""
    return 2 * GIB - seconds_before * (10 << 20)


def _event(number: int, seconds_before: float, kind: str, **more: Any) -> dict[str, Any]:
    return {
        "n": number,
        "t": DIED - seconds_before,
        "m": 1000.0 - seconds_before,
        "kind": kind,
    } | more


_BUNDLE: dict[str, Any] = {
    "format": [1, 0],
    "id": "20260921-141320-4711-0a1b",
    "created": DIED + 0.3,
    "identity": {
        "pid": 4711,
        "start_time": 99,
        "kernel_id": "as-it-was",
        "kernel_name": "python3",
        "notebook_path": "lessons/train.ipynb",
        "died": DIED,
    },
    "server": {
        "exit": {"signal": "SIGKILL", "code": None, "how": "waitid"},
        "died": DIED,
        "peak_bytes": 2 * GIB,
        "peak_source": "VmHWM",
        "columns": _COLUMNS,
        "rows": [[DIED - s, rss_at(s), rss_at(s), 2 * GIB] for s in range(60, 0, -1)],
        "before": {
            "time": DIED - 0.1,
            "groups": [{"path": "/c", "version": 2, "own": True, "limit_bytes": 2 * GIB}],
        },
        "unavailable": {"NVML": "No NVIDIA GPU here"},
    },
    "kernel": {
        "header": {"format": [1, 0], "pid": 4711, "guard": {"problems": []}},
        "events": [
            _event(1, 50, "cell_start", execution_count=1, cell_id="a", head="import tensorflow"),
            _event(2, 48, "cell_end", execution_count=1, seconds=2.0, rss_start_bytes=1 << 28),
            _event(3, 40, "cell_start", execution_count=2, cell_id="b", head="model.fit(x, y)"),
            _event(4, 39, "fit_start", fit_id=1, what="fit", model_name="cnn", epochs=9, steps=50),
            _event(5, 30, "epoch_end", fit_id=1, epoch=1, logs={"loss": 0.7}, seconds=9.0),
            _event(6, 20, "epoch_end", fit_id=1, epoch=2, logs={"loss": 0.6}, seconds=10.0),
        ],
        "progress": {
            "fit_id": 1,
            "what": "fit",
            "active": True,
            "model_name": "cnn",
            "epochs": 9,
            "epoch": 3,
            "steps": 50,
            "step": 17,
            "started": DIED - 39,
            "time": DIED - 2,
        },
    },
    "system_log": {"readable": False, "reason": "not permitted", "lines": []},
    "problems": [],
}


def bundle(**parts: Any) -> dict[str, Any]:
    """A copy of it, with other parts in the place of its own."""
    return copy.deepcopy(_BUNDLE) | parts
