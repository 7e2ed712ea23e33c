"""The server's culler shut the kernel down because it seemed idle, perhaps in the middle of a cell."""

from __future__ import annotations

from ...units import human_seconds
from ..activity import last_cell
from ..ending import TextEvidence, text_evidence
from ..evidence import Evidence
from ..finding import Advice, Confidence, Fact, Finding, Source
from ..rule import rule

_IDLE = Advice(
    "Ask for a longer time in the server's settings.",
    "A kernel that is connected to an open page is not culled unless cull_connected is on.",
    "c.MappingKernelManager.cull_idle_timeout = 24 * 3600  # jupyter_server_config.py",
)
_BUSY = Advice(
    "Switch off cull_busy, or print something from time to time.",
    "With cull_busy, a running cell does not count as activity, only its output does.",
    "c.MappingKernelManager.cull_busy = False  # jupyter_server_config.py",
)


@rule("culled", outranks=("hang",))
def culled(seen: Evidence) -> Finding | None:
    """The Jupyter server shut the kernel down by itself, because the kernel was without activity for longer than
    `cull_idle_timeout`. It is not a crash. With `cull_busy` this also ends a running cell.

    The server's culler was shutting this kernel down when it ended.
    """
    if (text := text_evidence(seen, "culled")) is not None:
        return _of_text(text)
    cull = seen.cull
    if cull is None:
        return None
    cell = last_cell(seen)
    running = cull.was_busy and cell is not None and cell.running
    where = f" in the middle of {cell.name}" if running and cell is not None else ""
    idle = human_seconds(cull.idle_seconds)
    because = [
        Fact(
            Source.SERVER,
            f"The server's culler shut the kernel down after {idle} without activity "
            f"(cull_idle_timeout: {human_seconds(cull.timeout_seconds)})",
        )
    ]
    if cull.was_busy:
        because.append(
            Fact(Source.SERVER, "The kernel was running a cell, and the option cull_busy is on")
        )
    return Finding(
        Confidence.CERTAIN,
        title=f"The Jupyter server shut down the kernel{where}: it saw no activity for {idle}.",
        short_title="Shut down by the server's culler",
        because=tuple(because),
        advice=(_BUSY, _IDLE) if cull.was_busy else (_IDLE,),
        chips=(f"{idle} without activity",),
    )


def _of_text(text: TextEvidence) -> Finding:
    """For a line of the server's or JupyterHub's culler."""
    since, last = text.details.get("since"), text.details.get("last")
    if since is not None or last is not None:
        hub = Advice(
            "Ask for a longer time in JupyterHub's settings.",
            "The hub's idle culler stops the whole server, with all of its kernels.",
            "python -m jupyterhub_idle_culler --timeout=86400",
        )
        saw = f"for {since} (hours, minutes, seconds)" if since is not None else f"since {last}"
        title = f"JupyterHub stopped the server: it saw no activity {saw}."
        return text.finding(
            title=title, short_title="Stopped by JupyterHub's culler", advice=(hub,)
        )
    idle = human_seconds(int(text.details["idle"]))
    return text.finding(
        title=f"The Jupyter server shut down the kernel: it saw no activity for {idle}.",
        short_title="Shut down by the server's culler",
        advice=(_BUSY, _IDLE) if text.details.get("state") == "busy" else (_IDLE,),
    )
