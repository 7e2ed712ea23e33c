"""What the receiver of a shared report needs to know about the place: machine, guard, other kernels, meaning of the causes."""

from __future__ import annotations

import re
from typing import Any

from ..decode import dict_of, whole_of
from ..diagnosis.rule import all_rules
from ..memory.limits import named
from ..units import human_bytes

Json = dict[str, Any]

_SYSTEMS = {"linux": "Linux", "darwin": "macOS", "win32": "Windows"}
_STOP = {
    "on": "on",
    "paused": "paused by the user",
    "off": "off",
    "unavailable": "not possible on this system",
}
_SHOWN_KERNELS = 10
_ROLE = re.compile(r":\w+:`~*\.*([^`]+)`")


def setting(bundle: Json, report: Json) -> Json:
    """Fields that only a shared report has.

    Returns:
        ``{"setting": [{"label", "value", "code"}], "causes": [{"cause", "means", "recognised"}]}``
    """
    rows = [
        ("machine", _machine(dict_of(bundle.get("machine")))),
        ("memory limit", _limit(report)),
        ("stop", _stop(bundle)),
        ("other kernels", _others(dict_of(bundle.get("server")).get("other_kernel_bytes"))),
    ]
    return {
        "setting": [{"label": label, "value": value, "code": False} for label, value in rows],
        "causes": _causes(report),
    }


def _machine(found: Json) -> str:
    kind = "container" if found.get("in_container") else "no container" if found else None
    if found.get("is_virtual"):
        kind = f"{kind}, virtual machine"
    cores, memory_bytes = whole_of(found.get("cores")), whole_of(found.get("memory_bytes"))
    parts = [
        _SYSTEMS.get(str(found.get("system"))),
        kind,
        f"{cores} cores" if cores else None,
        f"{human_bytes(_class(memory_bytes))} of memory" if memory_bytes else None,
    ]
    return ", ".join(filter(None, parts)) or "not recorded"


def _class(size_bytes: int) -> int:
    """The size with two significant binary digits: the exact number may identify a machine."""
    step = 1 << max(0, size_bytes.bit_length() - 3)
    return round(size_bytes / step) * step


def _limit(report: Json) -> str:
    memory = dict_of(report.get("memory"))
    size, name = whole_of(memory.get("limit_bytes")), memory.get("limit_name")
    return named(human_bytes(size), str(name)) if size and name else "not known"


def _stop(bundle: Json) -> str:
    header = dict_of(dict_of(bundle.get("kernel")).get("header"))
    found = dict_of(dict_of(header.get("guard")).get("stop"))
    state = _STOP.get(str(found.get("state")))
    if state is None:
        return "not recorded"
    level = found.get("level")
    return f"{state}, level {level}" if state != "off" and isinstance(level, str) else state


def _others(sizes: Any) -> str:
    if not isinstance(sizes, list):
        return "not known"
    known = sorted(filter(None, map(whole_of, sizes)), reverse=True)
    shown = ", ".join(map(human_bytes, known[:_SHOWN_KERNELS]))
    more = f" and {len(known) - _SHOWN_KERNELS} smaller ones" if len(known) > _SHOWN_KERNELS else ""
    return f"{shown}{more} resident" if shown else "none"


def _causes(report: Json) -> list[Json]:
    """What the causes in a report mean, as their pages in the documentation say it."""
    named = [
        report.get("cause"),
        *(dict_of(o).get("cause") for o in report.get("other_findings") or ()),
    ]
    rules = {rule.cause: rule for rule in all_rules()}
    return [
        {
            "cause": cause,
            "means": _plain(rules[cause].means),
            "recognised": _plain(rules[cause].recognised),
        }
        for cause in dict.fromkeys(map(str, named))
        if cause in rules
    ]


def _plain(text: str) -> str:
    return _ROLE.sub(r"\1", " ".join(text.split())).replace("`", "")
