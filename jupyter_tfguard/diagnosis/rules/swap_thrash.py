"""The machine moved memory to disk and back instead of working: training became very slow before the end.

The rule does not match: swap that is used but idle, a short spike of pressure, steps that are slow for another reason (a
data loader), and pressure that does not affect this kernel. Source: Linux Documentation/accounting/psi.rst (`some`: the
share of time in which at least one task waited for memory); systemd-oomd acts on 60 % over 30 s by default, see oomd.conf(5).
"""

from __future__ import annotations

from ...units import human_bytes, human_seconds
from ..evidence import Evidence
from ..finding import Advice, Confidence, Fact, Finding
from ..memory import memory_source
from ..rule import rule

_PRESSURE_FRACTION = 0.3
_PRESSURE_SECONDS = 20.0
_RECENT_SECONDS = 90.0
_OWN_SWAP_BYTES = 64 * 1024 * 1024


@rule("swap_thrash", needs=("memory.pressure", "kernel.recording"))
def swap_thrash(seen: Evidence) -> Finding | None:
    """The machine moved memory to disk and back instead of working. Training became very slow before the end.

    For at least 20 seconds before the end, programs waited for memory during 30 % of the time or more. At least 64 MiB of this
    kernel were swapped out. The finding appears beside the cause of the end.
    """
    if seen.pasted is not None or seen.kernel_alive:
        return None
    pressure = [
        (when, share)
        for when, share in seen.series("host.pressure_some_fraction")
        if seen.died - when < _RECENT_SECONDS
    ]
    pressed = _seconds_pressed(pressure)
    swapped = _swap_text(seen)
    if pressed is None or swapped is None:
        return None
    waited = [share for when, share in pressure if pressure[-1][0] - when <= pressed]
    share = f"{100 * sum(waited) / len(waited):.0f} % of the time"
    span = human_seconds(pressed)
    source = memory_source(seen)
    return Finding(
        Confidence.POSSIBLE,
        title=f"The machine was swapping: programs waited for memory {share} in the last {span}.",
        short_title="Swapping",
        because=(
            Fact(source, f"For {span} before the end, programs waited for memory {share}"),
            Fact(source, swapped),
        ),
        advice=(
            Advice(
                "Reduce the memory of this run, or close other programs that use memory.",
                "Swapped-out memory is read back page by page, thousands of times slower than memory.",
            ),
            Advice(
                "Do not add swap.",
                "More swap only delays the crash and makes each step slower. A limit on the kernel's memory ends such a run early instead.",
            ),
        ),
        beside=True,
    )


def _seconds_pressed(pressure: list[tuple[float, float]]) -> float | None:
    """Seconds of uninterrupted high pressure up to the last sample; None when too short."""
    begin = None
    for when, share in reversed(pressure):
        if share < _PRESSURE_FRACTION:
            break
        begin = when
    if begin is None or pressure[-1][0] - begin < _PRESSURE_SECONDS:
        return None
    return pressure[-1][0] - begin


def _swap_text(seen: Evidence) -> str | None:
    """How much of this kernel was swapped out; None for nothing, because the pressure then belongs to another program."""
    own = seen.last("process.swap_bytes")
    if own is None or own < _OWN_SWAP_BYTES:
        return None
    return f"{human_bytes(own)} of the kernel's memory was swapped out at the last sample"
