"""Starts and stops all parts of the guard in one kernel. A part that fails is left out and noted."""

from __future__ import annotations

import functools
import os
import time
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
from .capture.endings import Endings
from .capture.gpu_pulse import GpuPulse
from .capture.libraries import UserLibraries
from .capture.memory import KernelMemory
from .capture.native import NativeParts
from .capture.pulse import Pulse
from .cells.cell_memory import CellMeter
from .cells.cells import CellRecorder
from .cells.gpu_oom import GpuOomNotice
from .cells.growth_alarm import GrowthAlarm
from .changes import methods
from .header import HeaderKeeper, kernel_header, watcher_alive
from .news import News
from .stop.memory_stop import MemoryStop

if TYPE_CHECKING:
    from .panel.panel import Panel

_TEXT_SECONDS = 0.2
_AFTER_STOP_SECONDS = 5.0


class GuardSession:
    """The guard of this kernel.

    Args:
        shell: The IPython shell, with its kernel.
        settings: The options.
        shell_names: Magic and extension names.

    Attributes:
        problems: What does not work, a sentence each.
        recording: None if nothing can be recorded, and after the end.
        pulse: Samples this kernel; None if that does not work.
        panel: The panel of ``%tfguard panel``; None until it is first shown.
        memory, libraries, cells, stop: Parts that status and panel read.
        header, native, endings: Parts that changes.py names.
    """

    def __init__(self, shell: Any, settings: TfGuard, shell_names: Any) -> None:
        self.shell = shell
        self.shell_names = shell_names
        self.settings = settings
        self.problems: list[str] = []
        self.recording: Recording | None = None
        self.pulse: Pulse | None = None
        self.memory = KernelMemory()
        self.header = HeaderKeeper(lambda: self.recording)
        self.news = News(settings, None, None)
        self.libraries = UserLibraries(
            settings,
            self.emit,
            self.header,
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
        self.native = NativeParts(
            settings,
            self.problems,
            self._problem,
            lambda: self.recording,
            lambda: None if self.pulse is None else self.pulse.thread_id,
        )
        self._meter = CellMeter(self.memory.process, self._gpu_devices)
        self._gpu_pulse = GpuPulse(
            self.memory.allocators,
            self._sampled_gpu,
            self._write_gpu_memory,
            self.native.text,
            self.emit,
        )
        self.cells = CellRecorder(
            shell,
            self.emit,
            self._meter,
            GpuOomNotice(
                self.emit,
                self.native.place,
                self.native.text,
                self.native.wait_forwarded,
                lambda: self.libraries.progress,
                lambda: bool(self.memory.allocators.devices()),
                prints=settings.explain_gpu_oom,
            ),
            keep_text=settings.record_cell_text,
            on_start=self._cell_starts,
            on_end=self._cells_end,
        )
        self.endings = Endings(shell, self.emit, self._at_exit)
        self.panel: Panel | None = None

    @functools.cached_property
    def _sampler(self) -> Sampler:
        return self.memory.sampler()

    # --- start

    def start(self) -> None:
        """Make all changes. A part that fails is left out."""
        for name, install in methods("install", self):
            with part(name, self.problems):
                install()
        if self.recording is not None:
            self._write_guard_state()

    def start_recording(self) -> None:
        """Create the recording of this kernel."""
        header = kernel_header(self.shell)
        self.news = News(self.settings, header["kernel_id"], header["notebook_path"])
        identity = ProcessIdentity.of(os.getpid())
        if identity is None:
            raise SourceUnavailable("Could not read the start time of this process.")
        guard = {"guard": self.guard_state()}
        self.recording = Recording(
            recordings_folder(), identity, header | guard, self._sampler.metrics
        )

    def start_pulse(self) -> None:
        """Sample this kernel in a thread."""
        pulse = Pulse(
            self._sampler, self.settings.busy_hertz, self.settings.idle_hertz, self._sampled
        )
        pulse.start()
        self.pulse = pulse

    def start_news(self) -> None:
        """Report kernels that crashed without a watcher."""
        self.news.start()

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
            self.native.wait_forwarded(_TEXT_SECONDS)
        return self.memory.allocators.read()

    def _cell_starts(self) -> None:
        self.native.cell_starts()
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
        self.native.cell_ends()
        self.libraries.refresh_growth()
        self.header.versions()

    def _sampled(self, sample: Sample) -> None:
        if self.recording is not None:
            self.recording.sample(sample)
            self.header.memory_group(self.memory.cgroup)
            self.header.starter()
        self._meter.sampled_host(sample.values.get("process.rss_bytes"))
        self._gpu_pulse.tick()
        with shielded("alarm about growing memory"):
            self._growth_alarm.sampled(sample.values)
        if self.panel is not None:
            self.panel.sampled(sample)
        self.libraries.tick()
        self.native.tick()

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
            **self.native.state(),
            "stop": self.stop.state(),
            "problems": list(self.problems),
        }

    def _write_guard_state(self) -> None:
        self.header.write({"guard": self.guard_state()})

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
        self._undo()
        if self.recording is not None:
            self.recording.end("unload")
            self.recording.remove()
            if (copies := copies_folder()) is not None:
                remove_recording(copies / self.recording.folder.path.name)
            self.recording = None

    def _at_exit(self, reason: str) -> None:
        if self.endings.is_unasked(reason) and (self.cells.is_running or self._was_just_stopped()):
            reason = UNASKED  # an exception of the cell has reached the kernel's event loop
        self._undo(at_exit=True)
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

    def _undo(self, *, at_exit: bool = False) -> None:
        """Undo all changes; a failure of one does not prevent the others."""
        for _, undo in methods("undo", self, at_exit=at_exit):
            with shielded("unloading"):
                undo()

    def stop_pulse(self) -> None:
        """Undo :meth:`start_pulse`."""
        pulse, self.pulse = self.pulse, None
        if pulse is not None:
            pulse.stop()
        self.memory.close()

    def stop_panel(self) -> None:
        """Close the panel, if it is open."""
        panel, self.panel = self.panel, None
        if panel is not None:
            panel.stop()

    def leave_child(self) -> None:
        """In a forked child: undo what it has inherited, and never touch the parent's recording again."""
        recording, self.recording = self.recording, None
        self.pulse = self.panel = None
        # Before any of our code imports: the fork may have cut off an import in another thread, and waiting for it would never
        # end.
        for _, leave in methods("fork", self):
            with shielded("forked child"):
                leave()
        if recording is not None:
            with shielded("forked child"):
                recording.close()  # and with it the lock that shows that the kernel is running
