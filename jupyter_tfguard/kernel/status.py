"""The guard's state as text: the line of ``%load_ext tfguard`` and the lines of ``%tfguard status``."""

from __future__ import annotations

import os

from .._version import __version__
from ..memory.limits import binding_limit, memory_in_use
from ..places import FAST_FIX, slow_recordings
from ..redact import one_line
from ..report.stopped import StoppedCell
from ..shield import noted_in_this_process
from ..units import human_bytes, human_seconds, local_time, out_of
from .header import watcher_alive
from .session import GuardSession


def state_line(session: GuardSession) -> str:
    """One line: whether the kernel is guarded, and what does not work."""
    session.libraries.refresh_growth()
    known = []
    missing = []
    growth = session.libraries.growth
    if growth is not None and growth.state == "too_late":
        missing.append(f"{growth.text}.")
    elif growth is not None:
        known.append(growth.text)
    if session.recording is None:
        known.append("nothing is recorded")
    if watcher_alive():
        known.append("tracked by the Jupyter server")
    elif os.environ.get("JPY_SESSION_NAME"):  # set by the Jupyter server that started this kernel
        missing.append(
            "the server extension is not loaded: restart Jupyter, then reload this page."
        )
    else:
        known.append("not tracked by a Jupyter server")
    if session.problems:
        missing.append(f"Problem: {session.problems[0].rstrip('.')}.")
    inside = f" ({'; '.join(known)})" if known else ""
    missing_text = "".join(f" {sentence[0].upper()}{sentence[1:]}" for sentence in missing)
    return f"tfguard {__version__}: guarding this kernel{inside}.{missing_text}"


def status_text(session: GuardSession) -> str:
    """Memory against its limit, guard, training, last crash."""
    lines = [state_line(session), f"Memory: {_memory(session)}"]
    lines += [
        f"{one.device}: {human_bytes(one.in_use_bytes)} in TensorFlow tensors; peak {human_bytes(one.peak_bytes)}"
        for one in session.memory.gpu()
    ]
    lines += [f"Problem: {problem}" for problem in (*session.problems[1:], *_noted(session))]
    if session.recording is not None and (slow := slow_recordings()) is not None:
        lines.append(f"Problem: {slow} {FAST_FIX}")
    lines.append(session.stop.text())
    training = _training(session)
    if training:
        lines.append(training)
    if (stopped := StoppedCell.of(session.stop.latest)) is not None:
        lines.append(f"Last stop: {stopped.headline}. Details: %tfguard why")
    lines.append(_last_crash(session))
    return "\n".join(lines)


def _noted(session: GuardSession) -> list[str]:
    """Problems noted after the start; if the disk is full they are recorded nowhere else."""
    known = ("kernel start: ", "kernel: ") if session.problems else ()
    return [text for text in noted_in_this_process() if not text.startswith(known)]


def _memory(session: GuardSession) -> str:
    sample = session.pulse.latest if session.pulse is not None else None
    values = dict(sample.values) if sample is not None else {}
    values |= session.memory.process() | session.memory.ulimits()
    rss, peak = values.get("process.rss_bytes"), values.get("process.peak_bytes")
    limit = binding_limit(values)
    used = memory_in_use(limit, values)
    text = human_bytes(used)
    if limit is not None:
        text += f" of {limit.text()}"
        if used is not None:
            text += f", {100 * used / limit.size_bytes:.0f} %"
    if rss is not None:
        text += f"; resident memory of this kernel {human_bytes(rss)}"
    if peak is not None:
        text += f", peak {human_bytes(peak)}"
    available = values.get("host.available_bytes")
    return text + (f"; available on the machine {human_bytes(available)}" if available else "")


def _training(session: GuardSession) -> str | None:
    progress = session.libraries.progress
    if progress is None:
        return None
    run = (
        f"loop with {progress.optimizer or 'an unknown optimizer'}"
        if progress.is_loop
        else f"{progress.what} of {progress.model_name or 'a model'}"
    )
    if progress.refused is not None:
        return f"Last training: {run} was not started: {_first_sentence(progress.refused)}"
    parts = [run]
    if progress.epoch is not None:
        parts.append(out_of("epoch", progress.epoch, progress.epochs))
    if progress.step is not None:
        parts.append(out_of("step", progress.step, progress.steps))
    elif progress.is_loop:
        parts.append("steps unknown")
    if progress.batch_size is not None:
        parts.append(f"batch size {progress.batch_size}")
    if progress.ended is not None:
        parts.append(f"took {human_seconds(progress.ended - progress.started)}")
    line = ("Training: " if progress.active else "Last training: ") + ", ".join(parts)
    return line if progress.compared is None else f"{line}. {progress.compared}"


def _first_sentence(text: str) -> str:
    return text.split(". ", 1)[0].rstrip(".") + "."


def _last_crash(session: GuardSession) -> str:
    entries = session.news.reports().entries()
    if not entries:
        return "Last crash: none recorded"
    newest = entries[0]
    when = local_time(str(newest.get("crashed_at", "")))
    return one_line(f"Last crash: {when}, {newest.get('title')} Details: %tfguard why")
