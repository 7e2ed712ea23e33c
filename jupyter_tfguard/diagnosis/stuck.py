"""The evidence that a kernel stood still, as facts that two rules quote."""

from __future__ import annotations

from ..units import human_seconds
from .finding import Fact, Source
from .python_stacks import cell_frame
from .standstill import Standstill


def stuck_facts(stuck: Standstill) -> tuple[Fact, ...]:
    """For how long, in which wait, at which Python line, and with which forked children."""
    lasted = human_seconds(stuck.seconds)
    work = "training step, " if stuck.in_fit else ""
    facts = [
        Fact(
            Source.SERVER,
            f"For {lasted} no {work}processor time, input, output or GPU work was seen, while a cell ran",
        )
    ]
    if stuck.wait_text is not None:
        facts.append(Fact(Source.SERVER, f"Its main thread was {stuck.wait_text}"))
    if where := python_line(stuck):
        facts.append(Fact(Source.KERNEL, f"Python was at {where}"))
    for fork in stuck.forks[:3]:
        when = ""
        if fork.after_import_seconds is not None:
            order = "after" if fork.after_import_seconds > 0 else "before"
            span = human_seconds(abs(fork.after_import_seconds))
            when = f", forked {span} {order} TensorFlow was imported,"
        facts.append(Fact(Source.SERVER, f"Its child process {fork.pid}{when} waited for a lock"))
    return tuple(facts)


def python_line(stuck: Standstill) -> str | None:
    """The innermost Python line of the main thread, and the cell's own line."""
    if not stuck.frames:
        return None
    inner = stuck.frames[0]
    frames = [f'  File "{f.file}", line {f.line} in {f.name}' for f in stuck.frames]
    cell = cell_frame(frames)
    if cell is not None and cell_frame(frames[:1]):
        return cell
    name = inner.file.replace("\\", "/").rsplit("/", 1)[-1]
    where = f"{name}, line {inner.line}, in {inner.name}"
    return f"{where}, called from {cell}" if cell else where
