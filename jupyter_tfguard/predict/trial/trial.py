"""Measures the memory of ``fit`` by running some of its steps in a child process that may fail.

In the child no model was trained before; it has the environment, threads and settings of this process. It has its own memory
limit, ends with this process, and is the first one that the OOM killer chooses. Measures host memory of a fit on the CPU,
or GPU memory in tensors of a fit on the first GPU; without validation, callbacks and the user's own input pipeline.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import IO, Any

from ...collectors.resident import anonymous_bytes
from ...errors import SourceUnavailable
from ...training.plan import FitPlan
from ..own_memory import free_in_gpu_pool, free_in_pool, uses_gpu
from .data import DataSource, trial_data
from .process import TrialProcess
from .travel import NotSendable, dump

STEP_COUNT = 6  # the first step is not the peak: 80 to 99 % of it
TIMEOUT_SECONDS = 600.0
# Of the available memory, as the limit of a child: it fills memory fast, and the guard must not stop the cell that waits.
LIMIT_FRACTION = 0.95
_POLL_MILLISECONDS = 5
_SHOW_SECONDS = 0.5
# A trial of a search ends when a step has needed little more than the one before: the next one needs hardly more then.
_SETTLED_FRACTION = 0.1
_LEAST_STEPS, _MOST_STEPS = 2, 4

Progress = Callable[[int, int | None], None]


class Ending(Enum):
    """How a trial ended."""

    FINISHED = "finished"
    LIMIT = "reached the memory limit"
    SIGNAL = "killed by a signal"
    RAISED = "raised an exception"
    TIMEOUT = "timed out"
    NOT_SENT = "could not be sent"


@dataclass(frozen=True, slots=True)
class Trial:
    """What one trial found. Its memory is host memory on the CPU, and memory in tensors on a GPU.

    Attributes:
        batch_size: The batch size of its steps.
        ending: How it ended.
        peak_bytes: Peak memory during ``fit`` minus that in use just before it: what a fit needs if TensorFlow's
            pool has nothing free. If the trial did not finish, a lower bound; None if ``fit`` did not begin.
            Copies of whole arrays are counted only for the samples used.
        step_count: Steps done.
        reason: The signal, the exception, or what could not be sent and why; else empty.
        source: Where its data came from; None if they could not be sent.
        before_bytes: Memory just before ``fit``: TensorFlow, weights and data. None if it did not begin.
        gpu_limit_bytes: What TensorFlow could allocate on the GPU when the child started; None on the CPU.
    """

    batch_size: int
    ending: Ending
    peak_bytes: int | None = None
    step_count: int = 0
    reason: str = ""
    source: DataSource | None = None
    before_bytes: int | None = None
    gpu_limit_bytes: int | None = None

    @property
    def finished(self) -> bool:
        """True if all steps were done."""
        return self.ending is Ending.FINISHED

    @property
    def is_too_large(self) -> bool:
        """True if it ended because of its memory; the OOM killer sends SIGKILL."""
        return self.ending is Ending.LIMIT or self.reason == "SIGKILL"

    def ending_text(self) -> str:
        """How it ended, with the reason."""
        return f"{self.ending.value}: {self.reason}" if self.reason else self.ending.value


def trial(
    model: Any,
    plan: FitPlan,
    batch_size: int,
    *,
    steps: int = STEP_COUNT,
    limit_bytes: int | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
    process: TrialProcess | None = None,
    until_settled: bool = False,
    show: Progress | None = None,
) -> Trial:
    """Train a copy of the model in a child process. The model, its optimizer and all random states stay unchanged.

    Args:
        model: A compiled model of Keras 3; a first fit is measured, even if it is trained already.
        plan: The fit.
        batch_size: The batch size to try.
        steps: Training steps of the child.
        limit_bytes: The child is killed when its anonymous memory exceeds this, with TensorFlow, weights and data.
            Not used on a GPU, where the card is the limit.
        timeout_seconds: The child is killed after this time.
        process: Starts the child; without it, a new one that imports TensorFlow first.
        until_settled: End the child when a step has needed hardly more than the one before, which is after two to four
            steps. Not on a GPU.
        show: Called with the steps done and the highest memory so far, in bytes, about twice a second.

    Raises:
        SourceUnavailable: This system has no procfs.
    """
    anonymous_bytes(os.getpid())
    with (
        tempfile.TemporaryFile() as file
    ):  # without a name, so no end of this process leaves it behind
        try:
            source = _write(file, model, plan, batch_size, steps)
        except NotSendable as bad:
            return Trial(batch_size, Ending.NOT_SENT, reason=str(bad))
        file.seek(0)
        with (
            contextlib.nullcontext(process)
            if process
            else contextlib.closing(TrialProcess()) as running
        ):
            watch = _Watch(running, until_settled and not uses_gpu(), show)
            ending, reason = watch.run(
                file.fileno(), limit_bytes, time.monotonic() + timeout_seconds
            )
    return Trial(
        batch_size,
        ending,
        watch.peak_bytes,
        watch.step_count,
        reason,
        source,
        watch.before_bytes,
        watch.gpu_limit_bytes,
    )


def uncopied_in_trial(plan: FitPlan, batch_size: int) -> int:
    """Bytes of the copies of whole arrays that a trial lacks, because it has fewer samples than the fit.

    Arrays are copied in host memory: a trial on a GPU lacks nothing.
    """
    return 0 if uses_gpu() else plan.uncopied_bytes(batch_size * STEP_COUNT)


def need_here(trial_bytes: int, plan: FitPlan, batch_size: int) -> int:
    """Bytes that a fit in this process adds to its memory if its trial needed this much.

    It copies more, and first uses what is free in the pool here.
    """
    free_bytes = free_in_gpu_pool() if uses_gpu() else free_in_pool()
    return max(0, trial_bytes + uncopied_in_trial(plan, batch_size) - free_bytes)


def _write(file: IO[bytes], model: Any, plan: FitPlan, batch_size: int, steps: int) -> DataSource:
    """Write what the child reads: settings, then model and data.

    Raises:
        NotSendable: The model or the data cannot be sent.
    """
    keras = sys.modules["keras"]
    config = sys.modules["tensorflow"].config
    settings = {
        "uses_gpu": uses_gpu(),
        "batch_size": batch_size,
        "step_count": steps,
        "intra_op_count": config.threading.get_intra_op_parallelism_threads(),
        "inter_op_count": config.threading.get_inter_op_parallelism_threads(),
        "run_eagerly": config.functions_run_eagerly(),
        "floatx": keras.backend.floatx(),
        "image_data_format": keras.backend.image_data_format(),
        "dtype_policy": keras.config.dtype_policy().name,
    }
    data = trial_data(plan, batch_size, steps)
    pickle.dump(settings, file)
    dump(model, data, file)
    return data.source


class _Watch:
    """Follows a trial to its end.

    Attributes:
        before_bytes: Its memory at the start of ``fit``; None before.
        free_bytes: The part of it that was free in TensorFlow's pool.
        peak_bytes: Its highest memory since then, minus what was in use at the start; None before.
        step_count: Steps done so far.
        gpu_limit_bytes: What TensorFlow can allocate on the GPU; None before, and on the CPU.
    """

    def __init__(self, process: TrialProcess, until_settled: bool, show: Progress | None) -> None:
        self.peak_bytes: int | None = None
        self.step_count = 0
        self.before_bytes: int | None = None
        self.free_bytes = 0
        self.gpu_limit_bytes: int | None = None
        self._process = process
        self._until_settled = until_settled
        self._show = show
        self._step_bytes: list[int] = []  # the peak after each step
        self._on_gpu = uses_gpu()
        self._out_of_memory = False
        self._error = ""
        self._done = False
        self._rest = b""

    def run(self, file: int, limit_bytes: int | None, deadline: float) -> tuple[Ending, str]:
        """Run a trial; returns how it ended, and the reason."""
        reader, writer = os.pipe()
        try:
            try:
                error = self._process.begin(file, writer, deadline - time.monotonic())
            finally:
                os.close(writer)
            if error:
                self._process.close()
                return Ending.RAISED, error
            ending = self._watch(reader, limit_bytes, deadline)
            status = self._process.end()
        except TimeoutError:
            self._process.close()
            return Ending.TIMEOUT, ""
        except BaseException:
            self._process.close()
            raise
        finally:
            os.close(reader)
        return ending or self._ended(status)

    def _watch(
        self, reader: int, limit_bytes: int | None, deadline: float
    ) -> tuple[Ending, str] | None:
        """Read what the trial reports, until it has ended (None) or must be ended."""
        poll = select.poll()
        poll.register(reader)
        pid = self._process.pid
        assert pid is not None
        shown = 0.0
        while True:
            if poll.poll(_POLL_MILLISECONDS):
                part = os.read(reader, 1 << 16)
                if not part:
                    return None
                self._take(part)
                if self._until_settled and self._is_settled():
                    return Ending.FINISHED, ""
            if self._show is not None and time.monotonic() - shown > _SHOW_SECONDS:
                shown = time.monotonic()
                self._show(self.step_count, self.peak_bytes)
            if not self._on_gpu:
                with contextlib.suppress(SourceUnavailable):  # it has ended: the pipe ends next
                    now_bytes = anonymous_bytes(pid)
                    self._note(now_bytes)
                    if limit_bytes is not None and now_bytes > limit_bytes:
                        return Ending.LIMIT, ""
            if time.monotonic() > deadline:
                return Ending.TIMEOUT, ""

    def _take(self, part: bytes) -> None:
        *lines, self._rest = (self._rest + part).split(b"\n")
        for line in lines:
            fields = json.loads(line)
            self.before_bytes = fields.get("before_bytes", self.before_bytes)
            self.free_bytes = fields.get("free_bytes", self.free_bytes)
            self.step_count = fields.get("step_count", self.step_count)
            self.gpu_limit_bytes = fields.get("gpu_limit_bytes", self.gpu_limit_bytes)
            self._error = fields.get("error", self._error)
            self._out_of_memory = fields.get("out_of_memory", self._out_of_memory)
            if "highest_bytes" in fields:
                self._note(fields["highest_bytes"])
            if "step_count" in fields:
                self._step_bytes.append(self.peak_bytes or 0)
            self._done = fields.get("done", self._done)

    def _is_settled(self) -> bool:
        found = self._step_bytes
        return len(found) >= _MOST_STEPS or (
            len(found) >= _LEAST_STEPS and found[-1] <= (1 + _SETTLED_FRACTION) * found[-2]
        )

    def _note(self, now_bytes: int) -> None:
        if self.before_bytes is not None and not self._done:
            in_use = self.before_bytes - self.free_bytes
            self.peak_bytes = max(self.peak_bytes or 0, now_bytes - in_use)

    def _ended(self, status: int) -> tuple[Ending, str]:
        if self._done:
            return Ending.FINISHED, ""
        if self._out_of_memory:
            return Ending.LIMIT, ""
        if self._error:
            return Ending.RAISED, self._error
        if status < 0:
            return Ending.SIGNAL, signal.Signals(-status).name
        return Ending.RAISED, f"The process ended with status {status}"
