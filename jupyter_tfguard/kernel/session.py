"""Starts and stops all parts of the guard in one kernel. A part that fails is left out and noted."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..config import TfGuard
from ..errors import SourceUnavailable
from ..metrics import Sample
from ..places import copies_folder, recordings_folder
from ..record.events import QUIT, UNASKED, Event
from ..record.identity import ProcessIdentity
from ..record.recording import Recording, remove_recording
from ..sampler import Sampler
from ..shield import note_problem, part, shielded
from ..training.gpu_memory import DeviceMemory
from .cell_memory import CellMeter
from .cells import CellRecorder
from .endings import Endings
from .gpu_oom import GpuOomNotice
from .gpu_pulse import GpuPulse
from .growth_alarm import GrowthAlarm
from .header import (
    HeaderKeeper,
    claim_environment,
    is_watched,
    kernel_header,
    release_environment,
    watcher_alive,
)
from .libraries import UserLibraries
from .memory import KernelMemory
from .memory_stop import MemoryStop
from .native import NativeParts
from .news import News
from .pulse import Pulse

if TYPE_CHECKING:
    from .panel import Panel

_TEXT_SECONDS = 0.2
_AFTER_STOP_SECONDS = 5.0


class GuardSession:
    """The guard of this kernel.

    Args:
        shell: The IPython shell, with its kernel.
        settings: The options.

    Attributes:
        problems: What does not work, a sentence each.
        recording: None if nothing can be recorded, and after the end.
        pulse: Samples this kernel; None if that does not work.
        panel: The panel of ``%tfguard panel``; None until it is first shown.
        memory, libraries, cells, stop: Parts that status and panel read.
    """

    def __init__(self, shell: Any, settings: TfGuard) -> None:
        self.shell = shell
        self.settings = settings
        self.problems: list[str] = []
        self.recording: Recording | None = None
        self.pulse: Pulse | None = None
        self.memory = KernelMemory()
        self._header = HeaderKeeper(lambda: self.recording)
        self.news = News(settings, None, None)
        self.libraries = UserLibraries(
            settings,
            self.emit,
            self._header,
            memory=self.memory.now,
            on_progress=self._write_progress,
            on_growth=self._write_guard_state,
            on_problem=self._problem,
            on_import=lambda: self.stop.imported(),
            hooks=lambda: self.stop.fit_hooks(),
        )
        self._growth_alarm = GrowthAlarm(shell.user_ns, self.emit, lambda: self.libraries.progress)
        self.stop = MemoryStop(
            settings.stop,
            shell,
            self.emit,
            lambda: self.libraries.progress,
            self._growth_alarm,
        )
        self._native = NativeParts(self.problems, self._problem)
        self._meter = CellMeter(self.memory.process, self._gpu_devices)
        self._gpu_pulse = GpuPulse(
            self.memory.allocators,
            self._sampled_gpu,
            self._write_gpu_memory,
            self._native.text,
            self.emit,
        )
        self.cells = CellRecorder(
            shell,
            self.emit,
            self._meter,
            GpuOomNotice(
                self.emit,
                self._native.place,
                self._native.text,
                self._native.wait_forwarded,
                lambda: self.libraries.progress,
                lambda: bool(self.memory.allocators.devices()),
                prints=settings.explain_gpu_oom,
            ),
            keep_text=settings.record_cell_text,
            on_start=self._cell_starts,
            on_end=self._cells_end,
        )
        self._endings = Endings(shell, self.emit, self._at_exit)
        self.panel: Panel | None = None

    # --- start

    def start(self) -> None:
        """Start all parts. Memory growth comes first: it matters most, and depends on nothing else."""
        with part("memory growth", self.problems):
            self.libraries.set_growth()
        sampler = self.memory.sampler()
        with part("recording", self.problems):
            self._start_recording(sampler)
        with part("samples", self.problems):
            pulse = Pulse(
                sampler, self.settings.busy_hertz, self.settings.idle_hertz, self._sampled
            )
            pulse.start()
            self.pulse = pulse
        others = {
            "cells": self.cells.start,
            "memory guard": self.stop.start,
            "imports": self.libraries.start,
            "end of the kernel": self._endings.start,
            "reports of earlier kernels": self.news.start,
        }
        for name, begin in others.items():
            with part(name, self.problems):
                begin()
        if self.recording is not None:
            self._write_guard_state()
            thread = None if self.pulse is None else self.pulse.thread_id
            self._native.offer_stacks(self.recording, thread)

    def _start_recording(self, sampler: Sampler) -> None:
        claim_environment()
        header = kernel_header(self.shell)
        self.news = News(self.settings, header["kernel_id"], header["notebook_path"])
        identity = ProcessIdentity.of(os.getpid())
        if identity is None:
            raise SourceUnavailable("Could not read the start time of this process.")
        self.recording = recording = Recording(
            recordings_folder(), identity, header | {"guard": self.guard_state()}, sampler.metrics
        )
        self._native.start(
            recording.folder, keep_text=self.settings.record_stderr, watched=is_watched()
        )

    # --- events and samples

    def emit(self, event: Event) -> None:
        """Write an event to the journal."""
        if self.recording is not None:
            self.recording.emit(event)
            with shielded("alarm about growing memory"):
                self._growth_alarm.take(event)

    def _gpu_devices(self) -> tuple[DeviceMemory, ...] | None:
        """Read TensorFlow's allocators, after a wait for pending native text: they are not read while it is pending."""
        if self.memory.allocators.devices():
            self._native.wait_forwarded(_TEXT_SECONDS)
        return self.memory.allocators.read()

    def _cell_starts(self) -> None:
        self._native.cell_starts()
        if self.pulse is not None:
            self.pulse.set_busy(True)
        if self.panel is not None:
            self.panel.set_busy(True)
        self.news.at_cell()
        self.libraries.cell_begins()
        self.stop.cell_begins()
        self._write_stop_state()

    def _cells_end(self, count: int | None, error: BaseException | None) -> None:
        self.stop.cell_ends(count, error)
        self.libraries.cell_ends(error)
        self._write_stop_state()
        if self.pulse is not None:
            self.pulse.set_busy(False)
        if self.panel is not None:
            self.panel.set_busy(False)
        self._native.cell_ends()
        self.libraries.refresh_growth()
        self._header.versions()

    def _sampled(self, sample: Sample) -> None:
        if self.recording is not None:
            self.recording.sample(sample)
            self._header.memory_group(self.memory.cgroup)
            self._header.starter()
        self._meter.sampled_host(sample.values.get("process.rss_bytes"))
        self._gpu_pulse.tick()
        with shielded("alarm about growing memory"):
            self._growth_alarm.sampled(sample.values)
        if self.panel is not None:
            self.panel.sampled(sample)
        self.libraries.tick()
        self._native.tick()

    def _sampled_gpu(self, devices: tuple[DeviceMemory, ...]) -> None:
        self._meter.sampled_gpu(devices)
        self._growth_alarm.sampled_gpu(devices)

    def _write_progress(self, record: dict[str, Any]) -> None:
        if self.recording is not None:
            self.recording.set_progress(record)

    def _write_gpu_memory(self, devices: list[dict[str, Any]]) -> None:
        if self.recording is not None:
            self.recording.set_gpu_memory(devices)

    def _problem(self, text: str) -> None:
        note_problem("kernel", text)
        self.problems.append(text)
        self._write_guard_state()

    def guard_state(self) -> dict[str, Any]:
        """What works, for the header of the recording and for the panel."""
        growth = self.libraries.growth
        return {
            "growth": None if growth is None else {"state": growth.state, "text": growth.text},
            **self._native.state(),
            "stop": self.stop.state(),
            "problems": list(self.problems),
        }

    def _write_guard_state(self) -> None:
        self._header.write({"guard": self.guard_state()})

    # --- the stop of cells that fill the memory

    def _write_stop_state(self) -> None:
        """Write the stop's state if it has changed: it depends on the memory group and the imported libraries."""
        if (
            self.recording is not None
            and self.recording.header["guard"]["stop"] != self.stop.state()
        ):
            self._write_guard_state()

    def pause_stop(self) -> str:
        """Stop no cell until :meth:`resume_stop`; returns a sentence for the user."""
        self.stop.pause()
        self._write_guard_state()
        return self.stop.text()

    def resume_stop(self) -> str:
        """Stop cells again; returns a sentence for the user."""
        self.stop.resume()
        self._write_guard_state()
        return self.stop.text()

    # --- end

    def unload(self) -> None:
        """Undo everything and remove the recording: the kernel is no longer guarded."""
        self._stop()
        self.libraries.undo_growth()
        release_environment()
        if self.recording is not None:
            self.recording.end("unload")
            self.recording.remove()
            if (copies := copies_folder()) is not None:
                remove_recording(copies / self.recording.folder.path.name)
            self.recording = None

    def _at_exit(self, reason: str) -> None:
        if self._endings.is_unasked(reason) and (self.cells.is_running or self._was_just_stopped()):
            reason = UNASKED  # an exception of the cell has reached the kernel's event loop
        self._stop()
        if self.recording is None:
            return
        self.recording.end(reason)
        if watcher_alive() or reason in (QUIT, UNASKED):
            # The watcher reads the end mark and removes the recording; without one, the next kernel makes the report.
            self.recording.close()
        else:
            self.recording.remove()
        self.recording = None

    def _was_just_stopped(self) -> bool:
        latest = self.stop.latest
        return latest is not None and time.time() - (latest.time or 0.0) < _AFTER_STOP_SECONDS

    def _stop(self) -> None:
        """Stop every part; a failure of one does not prevent the others from stopping."""
        stops: list[Callable[[], None]] = [] if self.panel is None else [self.panel.stop]
        stops += [
            self._endings.stop,
            self.libraries.stop_listening,
            self.cells.stop,
            self.stop.stop,
        ]
        if self.pulse is not None:
            stops.append(self.pulse.stop)
        stops += [self._native.stop, self.libraries.detach, self.memory.close]
        for stop in stops:
            with shielded("unloading"):
                stop()
        self.pulse = self.panel = None

    def leave_child(self) -> None:
        """In a forked child: undo what it has inherited, and never touch the parent's recording again."""
        recording, self.recording = self.recording, None
        self.pulse = self.panel = None
        # First, before any of our code imports: the fork may have cut off an import in another thread, and waiting for
        # it would never end.
        leaves = [self.libraries.leave_child, self.cells.stop, self._native.leave_child]
        leaves.append(self.stop.leave_child)
        if recording is not None:
            leaves.append(
                recording.close
            )  # and with it the lock that shows that the kernel is running
        for leave in leaves:
            with shielded("forked child"):
                leave()
