"""The recording: one folder per running kernel process, named by process id and start time. ``FORMAT.md`` specifies it.

=====================  =======================================================================================
``header.json``        the process and its notebook: see :class:`Recording`
``samples.ring``       all samples of the last minutes (series.py)
``seconds.ring``       a summary for each second of an hour; ``minutes.ring``: each minute of a week
``events.ring``        what happened in the kernel (journal.py, events.py)
``progress.ring``      progress of the running fit (newest.py)
``gpu_memory.ring``    statistics of TensorFlow's allocators; only with a GPU device (newest.py)
``stderr.N.txt``       the stderr tail; the highest N is the newest (stderr_tail.py, native_text.py)
``fault.txt``          faulthandler's output at a fatal signal
``signal-NAME.txt``    Python stack at a terminating signal, for instance ``signal-SIGTERM.txt``
``end.json``           present if the kernel ended normally
``exit.json``          how a kernel without a watcher ended (late_stderr.py)
``seen.json``          what a server saw of the end, if it could not report the crash
``stacks.txt``         Python stacks of all threads, written on request (stacks.py)
``stacks-wanted``      the request; the kernel removes it after writing the stacks
``alive.lock``         locked by the kernel while it is running (alive.py)
=====================  =======================================================================================
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import FolderUnusable
from ..metrics import Metric, Sample
from ..private_files import PrivateFolder, remove_folder
from ..shield import is_users, note_problem
from . import journal, newest, series
from .alive import AliveLock, Place
from .events import Event
from .identity import ProcessIdentity
from .record_writer import RecordWriter, TypeTable
from .records import FORMAT
from .series import Stretch, Stretches

HEADER = "header.json"
SAMPLES = "samples.ring"
SECONDS = "seconds.ring"
MINUTES = "minutes.ring"
EVENTS = "events.ring"
PROGRESS = "progress.ring"
GPU_MEMORY = "gpu_memory.ring"
FAULT = "fault.txt"
END = "end.json"
SEEN = "seen.json"
STACKS = "stacks.txt"
STACKS_WANTED = "stacks-wanted"
SIGNAL_PREFIX = "signal-"
SAMPLES_CAPACITY = 1200  # 2 minutes at 10 Hz
SECONDS_CAPACITY = 3600  # 1 hour
MINUTES_CAPACITY = 10080  # 7 days
EVENTS_CAPACITY = 512
EVENT_RECORD_BYTES = 1024
GROW_BYTES = 64 * 1024


class Recording:
    """Writes the recording, in the kernel. A file that cannot be written is skipped and noted once.

    Threads and signal handlers may call it at any time. In a forked process every call does nothing.

    Args:
        root: Folder of all recordings.
        identity: This process.
        header: Facts known at the start: ``kernel_id``, ``notebook_path``, ``parent_pid``, ``versions``, ...
        metrics: The columns of the samples.

    Raises:
        FolderUnusable: The folder cannot be created, or belongs to another running kernel.
    """

    def __init__(
        self,
        root: Path,
        identity: ProcessIdentity,
        header: dict[str, Any],
        metrics: Sequence[Metric],
    ) -> None:
        self._pid = os.getpid()
        self._columns = tuple(metric.name for metric in metrics)
        self.folder = PrivateFolder(root / identity.folder_name)
        # Before the header: a reader that finds a header may check the lock.
        self._alive = self._lock()
        self.header: dict[str, Any] = {
            "format": list(FORMAT),
            "pid": identity.pid,
            "start_time": identity.start_time,
            "host": socket.gethostname(),
            **Place.here()._asdict(),
            "started": time.time(),
        } | header
        self._header_lock = threading.RLock()
        self.write_header({})
        self._writers: dict[str, RecordWriter] = {}
        samples, summaries = series.sample_type(metrics), series.summary_type(metrics)
        summary_bytes = series.summary_bytes(metrics)
        self._make(EVENTS, EVENT_RECORD_BYTES, EVENTS_CAPACITY, journal.TYPES)
        self._make(PROGRESS, newest.RECORD_BYTES, newest.CAPACITY, newest.PROGRESS_TYPES)
        self._make(SAMPLES, series.sample_bytes(metrics), SAMPLES_CAPACITY, samples)
        self._make(SECONDS, summary_bytes, SECONDS_CAPACITY, summaries, GROW_BYTES)
        self._make(MINUTES, summary_bytes, MINUTES_CAPACITY, summaries, GROW_BYTES)
        self._gpu_memory_begun = False
        self._minutes = Stretches(60.0, self._minute_ended)
        self._seconds = Stretches(1.0, self._second_ended)

    def _lock(self) -> AliveLock | None:
        try:
            return AliveLock(self.folder)
        except OSError as bad:
            note_problem("recording: alive.lock", bad)
            return None

    def _make(
        self,
        name: str,
        record_bytes: int,
        capacity: int,
        types: TypeTable,
        grow_bytes: int | None = None,
    ) -> None:
        with self._part(name):
            os.close(self.folder.create(name))
            try:
                self._writers[name] = RecordWriter(
                    self.folder.path / name,
                    name=name.removesuffix(".ring"),
                    record_bytes=record_bytes,
                    capacity=capacity,
                    types=types,
                    grow_bytes=grow_bytes,
                )
            except BaseException:
                # Frees what it reserved on a full disk.
                with contextlib.suppress(OSError):
                    self.folder.remove(name)
                raise

    @property
    def _is_mine(self) -> bool:
        """False in a forked child of the recorded process."""
        return os.getpid() == self._pid

    @contextlib.contextmanager
    def _part(self, name: str) -> Iterator[None]:
        try:
            yield
        except Exception as bad:
            if is_users(bad):
                raise
            note_problem(f"recording: {name}", bad)

    def _write(self, name: str, write: Callable[..., None], *what: Any) -> None:
        """Write to a file. A file that fails with OSError is closed and noted."""
        writer = self._writers.get(name)
        if writer is None:
            return
        try:
            write(writer, *what)
        except Exception as bad:
            if is_users(bad):
                raise  # for example the user's TimeoutError, which is an OSError too
            if isinstance(bad, OSError):
                self._writers.pop(name, None)
            note_problem(f"recording: {name}", bad)

    def write_header(self, more: dict[str, Any]) -> None:
        """Add to the header. A full disk is noted, not raised."""
        if not self._is_mine:
            return
        with self._header_lock, self._part("header"):
            self.header |= more
            self.folder.write_whole(HEADER, json.dumps(self.header, default=str).encode())

    def emit(self, event: Event) -> None:
        """Append an event, at most 4 KiB of it."""
        self.event(event.kind, **event.fields())

    def event(self, kind: str, **fields: Any) -> None:
        """Append an event of any kind."""
        self._write(EVENTS, journal.write_event, kind, fields)

    def sample(self, sample: Sample) -> None:
        """Write a sample, and the summary of each second or minute that has ended. Call it from one thread only."""
        try:
            numbers = series.row(self._columns, sample.values)
            self._write(SAMPLES, series.write_sample, sample, numbers)
            self._seconds.add(Stretch(sample.monotonic, sample.time, numbers, numbers, numbers))
        except Exception as bad:
            note_problem("recording: sample", bad)

    def _second_ended(self, found: Stretch) -> None:
        self._write(SECONDS, series.write_summary, found)
        self._minutes.add(found)
        if self._alive is not None and not self._alive.renew():
            note_problem(
                "recording", "The recording was deleted. This kernel is no longer recorded."
            )

    def _minute_ended(self, found: Stretch) -> None:
        self._write(MINUTES, series.write_summary, found)

    def set_progress(self, value: dict[str, Any]) -> None:
        """Write the progress of a fit, at most `newest.TEXT_LIMIT_BYTES` of JSON."""
        self._write(PROGRESS, newest.write_progress, value)

    def set_gpu_memory(self, devices: list[dict[str, Any]]) -> None:
        """Write the statistics of TensorFlow's allocators; the first call creates the file. For one thread."""
        if not self._gpu_memory_begun and self._is_mine:
            self._gpu_memory_begun = True
            self._make(GPU_MEMORY, newest.RECORD_BYTES, newest.CAPACITY, newest.GPU_MEMORY_TYPES)
        self._write(GPU_MEMORY, newest.write_gpu_memory, devices)

    def end(self, reason: str) -> None:
        """Write the mark of a normal end."""
        if not self._is_mine:
            return
        with self._part("end mark"):
            _mark_end(self.folder, reason)

    def close(self) -> None:
        """Close all descriptors. The files stay."""
        writers, self._writers = self._writers, {}
        for writer in writers.values():
            writer.close()  # another thread may be about to write
        if self._alive is not None:
            self._alive.close()

    def remove(self) -> None:
        """Close the recording and delete the folder."""
        self.close()
        if self._is_mine:
            remove_recording(self.folder.path)


def mark_end(path: Path, reason: str) -> None:
    """Write the mark of a normal end to the recording of another process, if there is one."""
    with contextlib.suppress(OSError, FolderUnusable):
        _mark_end(PrivateFolder(path, make=False), reason)


def _mark_end(folder: PrivateFolder, reason: str) -> None:
    folder.write_whole(END, json.dumps({"reason": reason, "time": time.time()}).encode())


def leave_seen(path: Path, seen: dict[str, Any]) -> bool:
    """Write what the server saw of an end to the recording: the facts of a crash whose report could not be saved yet.

    On a full disk the last samples make room. The server has taken its own, and they are in `seen`.

    Returns:
        False if it could not be written.
    """
    content = json.dumps(seen, default=str).encode()
    try:
        folder = PrivateFolder(path, make=False)
        try:
            folder.write_whole(SEEN, content)
        except OSError:
            folder.remove(SAMPLES)
            folder.write_whole(SEEN, content)
    except (OSError, FolderUnusable):
        return False
    return True


def remove_recording(path: Path) -> None:
    """Delete a recording. The header goes first, so that a kill in between leaves nothing that counts as a crash."""
    with contextlib.suppress(OSError):
        os.unlink(path / HEADER)
    remove_folder(path)
