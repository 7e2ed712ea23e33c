"""What the panel shows of a running kernel, as JSON: built here for the pages of the server and for the notebook's widget.

Parts of it come from the kernel's recording, which the user's notebook can write: they are checked for type and size.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

from ..decode import dict_of, list_of, size_of
from ..memory.limits import binding_limit, memory_in_use
from ..metrics import Sample
from ..units import human_bytes
from ..watch.live.forecast import Forecast
from ..watch.live.live import Live

TEXT_LIMIT = 300
_PROBLEM_LIMIT = 10
_FRESH_SECONDS = 5.0
# States that a kernel may report; only the server reports growth as proven.
_GROWTH_STATES = frozenset(
    ["on", "off_by_user", "too_late", "capped", "async", "no_gpu", "unknown"]
)
_STOP_STATES = frozenset(["on", "paused", "off", "unavailable"])


class Detail(NamedTuple):
    """A metric in the line of details below the chart of the host memory.

    Attributes:
        name: Its name in the panel.
        metric: The metric.
        text: Formats its value.
        is_shown_at_zero: False if 0 is not worth a word.
    """

    name: str
    metric: str
    text: Callable[[float], str] = human_bytes
    is_shown_at_zero: bool = True


DETAILS = (
    Detail("resident", "process.rss_bytes"),
    Detail("peak", "process.peak_bytes"),
    Detail("child processes", "process.children_rss_bytes", is_shown_at_zero=False),
    Detail("swapped out", "process.swap_bytes", is_shown_at_zero=False),
)


def fresh(sample: Sample | None) -> Mapping[str, float]:
    """The metrics of the newest sample; empty if it is old: a kernel that is ending has no numbers."""
    if sample is None or time.monotonic() - sample.monotonic > _FRESH_SECONDS:
        return {}
    return sample.values


def host(sample: Sample | None, forecast: Forecast | None) -> dict[str, Any]:
    """``Host`` of the wire: the memory that the binding limit counts, and that of the kernel.

    Args:
        sample: The newest sample of the kernel; None before the first.
        forecast: When the limit will be reached; None = unknown.
    """
    values = fresh(sample)
    limit = binding_limit(values)
    return {
        "used_bytes": whole(memory_in_use(limit, values)),
        "rss_bytes": whole(values.get("process.rss_bytes")),
        "children_rss_bytes": whole(values.get("process.children_rss_bytes")),
        "details": [
            f"{detail.name} {detail.text(value)}"
            for detail in DETAILS
            if (value := values.get(detail.metric)) is not None
            and (value or detail.is_shown_at_zero)
        ],
        "limit": None if limit is None else limit.state(),
        "forecast": None if forecast is None or not values else asdict(forecast),
        "available_bytes": whole(values.get("host.available_bytes")),
        "time": sample.time if sample is not None and values else None,
    }


def kernel(live: Live, sample: Sample | None, forecast: Forecast | None) -> dict[str, Any]:
    """What is shown of every kernel; the server adds what it alone knows.

    Args:
        live: What the kernel reports in its recording.
        sample, forecast: As for :func:`host`.
    """
    return {
        "host": host(sample, forecast),
        "training": live.training,
        "marks": list(live.marks),
    }


def guard(
    claimed: object = None,
    *,
    loaded: bool | None = True,
    text: str = "guarding",
    fix: str | None = None,
) -> dict[str, Any]:
    """``Guard`` of the wire.

    Args:
        claimed: ``{"problems", "growth", "stop"}`` as the kernel reports it; anything else counts as unknown.
        loaded: None = unknown.
        text: The state in words.
        fix: Command that loads the guard.
    """
    reported = dict_of(claimed)
    return {
        "loaded": loaded,
        "text": text,
        "fix": fix,
        "problems": _sentences(reported.get("problems")),
        "growth": _growth(reported.get("growth")),
        "stop": _stop(reported.get("stop")),
    }


def tensors(memory: Mapping[str, Any]) -> dict[str, Any]:
    """``Allocator`` of the wire: what TensorFlow holds on one device; unknown values are None."""
    names = ("device", "in_use_bytes", "peak_bytes", "limit_bytes")
    return {name: memory.get(name) for name in names}


def whole(value: float | None) -> int | None:
    """A whole number; None = unknown."""
    return None if value is None else round(value)


def _sentences(claimed: object) -> list[str]:
    found = list_of(claimed)
    return [str(one)[:TEXT_LIMIT] for one in found[:_PROBLEM_LIMIT]]


def _stop(claimed: object) -> dict[str, Any] | None:
    if not isinstance(claimed, dict) or str(claimed.get("state")) not in _STOP_STATES:
        return None
    return {
        "state": claimed["state"],
        "stop_bytes": size_of(claimed.get("stop_bytes")),
        "notes": _sentences(claimed.get("notes")),
    }


def _growth(claimed: object) -> dict[str, str] | None:
    if not isinstance(claimed, dict) or str(claimed.get("state")) not in _GROWTH_STATES:
        return None
    return {"state": claimed["state"], "text": str(claimed.get("text", ""))[:TEXT_LIMIT]}
