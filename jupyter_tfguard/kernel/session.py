"""Everything the guard does in one kernel, begun together and undone together. What fails is left out and noted."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..collectors.cgroup import CgroupCollector
from ..collectors.host import HostCollector
from ..collectors.process import ProcessCollector
from ..config import TfGuard
from ..errors import SourceUnavailable, TfGuardError
from ..metrics import Sample
from ..places import copies_folder, recordings_folder
from ..record.identity import ProcessIdentity
from ..record.native_since import Place, native_text_since
from ..record.recording import Recording, remove_recording
from ..record.spool import StderrSpool
from ..record.stacks import HEADER_KEY
from ..record.textfile import last_words
from ..sampler import Collector, Sampler
from ..shield import note_problem, shielded
from ..training.gpu_memory import DeviceMemory, GpuAllocators
from ..training.growth import GrowthSetting, environment_at_start
from ..training.growth_state import Growth
from .cell_memory import CellMeter
from .cells import CellRecorder
from .endings import Endings
from .faults import FaultFiles
from .gpu_oom import GpuOomTeller
from .gpu_pulse import GpuPulse
from .header import kernel_header, watcher_alive
from .header_keeper import HeaderKeeper
from .import_hook import ImportHook
from .news import News
from .pulse import Pulse
from .stacks import StacksOnRequest

if TYPE_CHECKING:
    from ..training.attach import TrainingRecorder
    from ..training.progress import FitProgress


class GuardSession:
    """The guard of this kernel.

    Args:
        shell: The IPython shell, with its kernel.
        settings: The options.
    """

    def __init__(self, shell: Any, settings: TfGuard) -> None:
        self.shell = shell
        self.settings = settings
        self.problems: list[str] = []
        self.growth: Growth | None = None  # None until TensorFlow is imported
        self.recording: Recording | None = None
        self.pulse: Pulse | None = None
        self._growth_setting = GrowthSetting(
            os.environ,
            wanted=settings.set_memory_growth,
            limit_mib=settings.gpu_memory_limit_mib,
            at_start=environment_at_start,
        )
        self._training: TrainingRecorder | None = None  # None until Keras is imported
        self._faults: FaultFiles | None = None
        self._stacks: StacksOnRequest | None = None
        self._spool: StderrSpool | None = None
        self._process: ProcessCollector | None = None
        self._cgroup: CgroupCollector | None = None
        self._faulthandler_state = "off"
        self._header = HeaderKeeper(lambda: self.recording)
        self._news = News(settings, None, None)
        self._gpu_allocators = GpuAllocators()
        self._meter = CellMeter(self.memory, self._gpu_allocators.read)
        self._gpu_pulse = GpuPulse(
            self._gpu_allocators,
            self._meter.sampled_gpu,
            self._write_gpu_memory,
            self._native_text,
            self.emit,
        )
        self._cells = CellRecorder(
            shell,
            self.emit,
            self._meter,
            GpuOomTeller(
                self.emit,
                self._native_place,
                self._native_text,
                lambda seconds: self._spool is None or self._spool.wait_read(seconds),
                lambda: self.progress,
                lambda: bool(self._gpu_allocators.devices()),
                prints=settings.explain_gpu_oom,
            ),
            keep_text=settings.record_cell_text,
            on_start=self._cell_starts,
            on_end=self._cells_end,
        )
        self._hook = ImportHook(
            {
                "tensorflow": self._tensorflow_imported,
                "keras": self._keras_imported,
                "tf_keras": self._keras_imported,
            }
        )
        self._endings = Endings(shell, self.emit, self._at_exit)

    # --- beginning

    def start(self) -> None:
        """Begin. Memory growth comes first: it matters most, and needs nothing else."""
        with self._part("memory growth"):
            self._growth_setting.set()
        collectors = _collectors(os.getpid())
        self._cgroup = next((c for c in collectors if isinstance(c, CgroupCollector)), None)
        sampler = Sampler(collectors)
        with self._part("memory of this process"):
            self._process = ProcessCollector(os.getpid())
        with self._part("recording"):
            self._start_recording(sampler)
        with self._part("samples"):
            pulse = Pulse(
                sampler, self.settings.busy_hertz, self.settings.idle_hertz, self._sampled
            )
            pulse.start()
            self.pulse = pulse
        with self._part("cells"):
            self._cells.start()
        with self._part("imports"):
            self._hook.install()
        with self._part("end of the kernel"):
            self._endings.start()
        with self._part("reports of earlier kernels"):
            self._news.start()
        if self.recording is not None:
            self._write_guard_state()
            with self._part("stacks of a kernel that stands still"):
                self._offer_stacks(self.recording)

    def _offer_stacks(self, recording: Recording) -> None:
        stacks = StacksOnRequest(recording.folder)
        stacks.start()
        self._stacks = stacks
        thread = None if self.pulse is None else self.pulse.thread_id
        recording.write_header({HEADER_KEY: stacks.header(thread)})

    def _start_recording(self, sampler: Sampler) -> None:
        header = kernel_header(self.shell)
        self._news = News(self.settings, header["kernel_id"], header["notebook_path"])
        identity = ProcessIdentity.of(os.getpid())
        if identity is None:
            raise SourceUnavailable("The start time of this process cannot be read.")
        self.recording = recording = Recording(
            recordings_folder(), identity, header | {"guard": self._guard_state()}, sampler.metrics
        )
        with self._part("stacks of fatal signals"):
            self._faults = FaultFiles(recording.folder)
            self._faulthandler_state = self._faults.start()
        if self.settings.keep_native_stderr:
            with self._part("native text"):
                spool = StderrSpool(
                    recording.folder, self._problem, self._header.native_text_dropped
                )
                spool.start()
                self._spool = spool

    @contextlib.contextmanager
    def _part(self, name: str) -> Iterator[None]:
        try:
            yield
        except SourceUnavailable as absent:
            self.problems.append(str(absent))  # this system does not have it; no failure of ours
        except Exception as error:
            note_problem(f"kernel start: {name}", error)
            self.problems.append(
                str(error) if isinstance(error, TfGuardError) else f"{name}: {error}"
            )

    # --- what happens meanwhile

    def emit(self, kind: str, **fields: Any) -> None:
        """Put an event into the journal."""
        if self.recording is not None:
            self.recording.event(kind, **fields)

    def rss_bytes(self) -> int | None:
        """Resident memory of this kernel now; None when unknown."""
        value = self.memory().get("process.rss_bytes")
        return None if value is None else int(value)

    def memory(self) -> dict[str, float]:
        """The metrics of this process now."""
        if self._process is None:
            return {}
        try:
            return self._process.collect(fresh=True)
        except SourceUnavailable:
            return {}

    def gpu_memory(self) -> tuple[DeviceMemory, ...]:
        """What TensorFlow's allocators say now; empty while TensorFlow has made no GPU device, or tells nothing."""
        return self._gpu_allocators.read() or ()

    def refresh_growth(self) -> None:
        """Look at memory growth again: the user's own calls may have come since. Tells only of a change."""
        if "tensorflow" not in sys.modules:
            return
        found = self._growth_setting.state()
        if found == self.growth:
            return
        self.growth = found
        self.emit("growth", state=found.state, text=found.text)
        self._write_guard_state()

    @property
    def cells(self) -> CellRecorder:
        """What is remembered of the cells of this kernel."""
        return self._cells

    @property
    def progress(self) -> FitProgress | None:
        """The newest fit, running or ended; None when there was none."""
        return None if self._training is None else self._training.board.current

    def _cell_starts(self) -> None:
        if self.pulse is not None:
            self.pulse.set_busy(True)
        self._news.at_cell()

    def _cells_end(self) -> None:
        if self.pulse is not None:
            self.pulse.set_busy(False)
        self.refresh_growth()
        self._header.versions()

    def _sampled(self, sample: Sample) -> None:
        if self.recording is not None:
            self.recording.sample(sample)
            self._header.memory_group(self._cgroup)
        self._meter.sampled_host(sample.values.get("process.rss_bytes"))
        self._gpu_pulse.tick()
        if self._training is not None:
            self._training.tick()
        if self._stacks is not None:
            self._stacks.tick()

    def _write_progress(self, record: dict[str, Any]) -> None:
        if self.recording is not None:
            self.recording.set_progress(record)

    def _write_gpu_memory(self, devices: list[dict[str, Any]]) -> None:
        if self.recording is not None:
            self.recording.set_gpu_memory(devices)

    def _native_place(self) -> Place | None:
        return None if self._spool is None else self._spool.place()

    def _native_text(self, since: Place | None = None) -> str:
        """Native text since a place, or all that is kept; empty where none is."""
        if self.recording is None or self._spool is None:
            return ""
        folder = self.recording.folder
        return last_words(folder) if since is None else native_text_since(folder, since)

    def _tensorflow_imported(self, module: ModuleType) -> None:
        self._imported("tensorflow")
        try:
            self._growth_setting.cap(module)
        except Exception as error:
            self._problem(f"cap of GPU memory: {error}")
        self.refresh_growth()

    def _keras_imported(self, module: ModuleType) -> None:
        self._imported(module.__name__)
        if self._training is None:
            from ..training.attach import TrainingRecorder
            from ..training.progress import ProgressBoard

            board = ProgressBoard(self._write_progress)
            self._training = TrainingRecorder(self.emit, board, self.rss_bytes)
        self._training.attach(module)

    def _imported(self, name: str) -> None:
        self._header.versions(name)
        self.emit("import", module=name, version=self._header.version(name))

    def _problem(self, text: str) -> None:
        note_problem("kernel", text)
        self.problems.append(text)
        self._write_guard_state()

    def _guard_state(self) -> dict[str, Any]:
        growth = self.growth
        return {
            "growth": None if growth is None else {"state": growth.state, "text": growth.text},
            "faulthandler": self._faulthandler_state,
            "stderr": self._spool is not None and self._spool.running,
            "problems": list(self.problems),
        }

    def _write_guard_state(self) -> None:
        self._header.write({"guard": self._guard_state()})

    # --- end

    def unload(self) -> None:
        """Undo everything, and leave no recording: from here on the kernel is not guarded."""
        self._stop()
        self._growth_setting.undo()
        if self.recording is not None:
            self.recording.end("unload")
            self.recording.remove()
            if (copies := copies_folder()) is not None:
                remove_recording(copies / self.recording.folder.path.name)
            self.recording = None

    def _at_exit(self, reason: str) -> None:
        self._stop()
        if self.recording is None:
            return
        self.recording.end(reason)
        if watcher_alive() or reason == "quit":
            # The watcher reads the mark, and clears away; without one, quit() is told by the next kernel.
            self.recording.close()
        else:
            self.recording.remove()
        self.recording = None

    def _stop(self) -> None:
        """End every part; one that fails does not keep the others."""
        parts = (self.pulse, self._spool, self._faults, self._stacks)
        stops: list[Callable[[], None]] = [
            self._endings.stop,
            self._hook.uninstall,
            self._cells.stop,
            *(part.stop for part in parts if part is not None),
        ]
        if self._training is not None:
            stops.append(self._training.detach)
        if self._process is not None:
            stops.append(self._process.close)
        for stop in stops:
            with shielded("unloading"):
                stop()
        self.pulse = self._spool = self._faults = self._stacks = self._process = None

    def leave_child(self) -> None:
        """In a forked child: undo what reaches into it, and never touch the parent's recording again."""
        recording, self.recording = self.recording, None
        if self._training is not None:
            self._training.silence()
        self._hook.uninstall()
        # Before anything of ours imports: a module that another thread was importing is locked in here for ever.
        with shielded("forked child"):
            self._cells.stop()
        # This process's copies of descriptors; the parent goes on with its own.
        parts = (self.pulse, self._spool, self._faults, self._stacks)
        leaves = [part.leave_child for part in parts if part is not None]
        leaves += [part.close for part in (self._process, recording) if part is not None]
        self.pulse = self._process = self._spool = self._faults = self._stacks = None
        for leave in leaves:
            with shielded("forked child"):
                leave()


def _collectors(pid: int) -> list[Collector]:
    found: list[Collector] = []
    for make in (lambda: ProcessCollector(pid), HostCollector, lambda: CgroupCollector(pid)):
        with contextlib.suppress(SourceUnavailable):
            found.append(make())
    return found
