"""Hooks into the user's TensorFlow and Keras once they are imported: memory growth and the recording of fits."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ...config import TfGuard
from ...record.events import Emit, Import, MemoryGrowthSetting
from ...shield import shielded
from ...training.growth import GrowthSetting, GrowthState
from ..header import HeaderKeeper, library_versions
from .import_hook import ImportHook

if TYPE_CHECKING:
    from ...training.attach import TrainingRecorder
    from ...training.fit_hooks import FitHooks
    from ...training.progress import FitProgress


# Some are imported when they are first used, such as numpy.fft.
_ALLOCATING = ("numpy", "numpy.fft", "pandas", "pandas.io.parsers", "scipy.fft", "sklearn.tree")


class UserLibraries:
    """Acts on imports in this kernel; imports none of these libraries itself.

    Args:
        settings: The options.
        emit: Writes an event to the journal.
        header: Stores the versions.
        memory: Returns the memory of this kernel, for an event.
        on_progress: Called with each new progress record of a fit.
        on_growth: Called when the state of memory growth has changed.
        on_problem: Called with a description of what failed.
        on_import: Called when TensorFlow, Keras or a library that allocates large arrays has been imported.
        hooks: Returns the hooks to run around each fit.

    Attributes:
        growth: Memory growth as last read; None until TensorFlow is imported.
    """

    def __init__(
        self,
        settings: TfGuard,
        emit: Emit,
        header: HeaderKeeper,
        *,
        memory: Callable[[], dict[str, int | None]],
        on_progress: Callable[[dict[str, Any]], None],
        on_growth: Callable[[], None],
        on_problem: Callable[[str], None],
        on_import: Callable[[], None],
        hooks: Callable[[], FitHooks],
    ) -> None:
        self._emit = emit
        self._header = header
        self._memory = memory
        self._on_progress = on_progress
        self._on_growth = on_growth
        self._on_problem = on_problem
        self._on_import = on_import
        self._hooks = hooks
        self.growth: GrowthState | None = None
        self._growth_setting = GrowthSetting(
            os.environ,
            wanted=settings.set_memory_growth,
            limit_mib=settings.gpu_memory_limit_mib,
        )
        self._training: TrainingRecorder | None = None  # None until Keras is imported
        self._in_cell = False
        self._hook = ImportHook(
            {
                **dict.fromkeys(_ALLOCATING, self._allocating_imported),
                "tensorflow": self._tensorflow_imported,
                "keras": self._keras_imported,
                "tf_keras": self._keras_imported,
            }
        )

    def set_growth(self) -> None:
        """Set memory growth in the environment, before TensorFlow is imported."""
        self._growth_setting.set()

    def undo_growth(self) -> None:
        """Restore the environment."""
        self._growth_setting.undo()

    def refresh_growth(self) -> None:
        """Read memory growth again, because user code may have changed it; report only a change."""
        if "tensorflow" not in sys.modules:
            return
        found = self._growth_setting.state()
        if found == self.growth:
            return
        self.growth = found
        self._emit(MemoryGrowthSetting(state=found.state, text=found.text))
        self._on_growth()

    @property
    def progress(self) -> FitProgress | None:
        """The running or newest fit or training loop; None if there was none."""
        return None if self._training is None else self._training.board.current

    def start(self) -> None:
        """Install the import hook; libraries that are already imported are handled now."""
        self._hook.install()

    def tick(self) -> None:
        """Called with every sample: write the progress of the steps."""
        if self._training is not None:
            self._training.tick()

    def cell_begins(self) -> None:
        """Called at the beginning of a cell."""
        self._in_cell = True
        if self._training is not None:
            with shielded("tracking training loops"):
                self._training.loops.cell_begins()

    def cell_ends(self, error: BaseException | None) -> None:
        """Called when the last running cell has ended. `error`: the exception that ended it, if any."""
        self._in_cell = False
        if self._training is not None:
            with shielded("tracking training loops"):
                self._training.loops.cell_ends(error)

    def stop_listening(self) -> None:
        """Ignore later imports."""
        self._hook.uninstall()

    def detach(self) -> None:
        """Undo the changes to Keras."""
        if self._training is not None:
            self._training.detach()

    def leave_child(self) -> None:
        """In a forked child: record neither its fits nor its imports."""
        if self._training is not None:
            self._training.silence()
        self._hook.uninstall()

    def _allocating_imported(self, module: ModuleType) -> None:
        self._on_import()

    def _tensorflow_imported(self, module: ModuleType) -> None:
        self._imported("tensorflow")
        try:
            self._growth_setting.cap(module)
        except Exception as error:
            self._on_problem(f"limit of GPU memory: {error}")
        self._on_import()
        self.refresh_growth()

    def _keras_imported(self, module: ModuleType) -> None:
        self._imported(module.__name__)
        if self._training is None:
            from ...training.attach import TrainingRecorder
            from ...training.progress import ProgressBoard

            board = ProgressBoard(self._on_progress)
            self._training = TrainingRecorder(self._emit, board, self._memory, self._hooks())
            if self._in_cell:
                self._training.loops.cell_begins()
        self._training.attach(module)
        self._on_import()

    def _imported(self, name: str) -> None:
        self._header.versions(name)
        self._emit(Import(module=name, version=library_versions(name).get(name)))
