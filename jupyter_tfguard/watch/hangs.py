"""Notices kernels that stand still in the middle of a cell, in a thread of its own, and takes their stacks."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from pathlib import Path

from ..record.facts import Hang
from ..record.stacks import stacks_of, user_first
from ..shield import shielded
from .gpu_helper import Gpus
from .process_witness import ProcessWitness
from .stacks import claims, take_stacks
from .standstill import Standstill, Stillness, waits_for_user

_LOOK_SECONDS = 10.0
_LOOKS = 10  # at least, before a kernel is said to stand still


class Hangs:
    """Fills :attr:`Witness.hang`.

    Args:
        recordings: Folder of the kernels' recordings.
        witnesses: Who is watched now.
        gpus: State of the GPUs.
        hang_seconds: How long a kernel must have stood still.
    """

    def __init__(
        self,
        recordings: Path,
        witnesses: Callable[[], tuple[ProcessWitness, ...]],
        gpus: Callable[[], Gpus],
        hang_seconds: float,
    ) -> None:
        self._recordings = recordings
        self._witnesses = witnesses
        self._gpus = gpus
        self._hang_seconds = hang_seconds
        self._kernels: dict[ProcessWitness, Standstill] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tfguard-hangs", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(min(_LOOK_SECONDS, self._hang_seconds / _LOOKS)):
            with shielded("looking for kernels that stand still"):
                self._look()

    def _look(self) -> None:
        witnesses = self._witnesses()
        self._kernels = {w: self._kernels.get(w) or Standstill(w) for w in witnesses}
        gpu_works = any(d.get("utilization_fraction") for d in self._gpus().devices)
        for witness, standstill in self._kernels.items():
            if not self._stop.is_set() and not witness.kernel.is_ending():
                self._look_at(witness, standstill, gpu_works)

    def _look_at(self, witness: ProcessWitness, standstill: Standstill, gpu_works: bool) -> None:
        found = standstill.look(gpu_works=gpu_works)
        if found is None:
            # What its end does is no sign that it went on, and the end may have begun during the look.
            if not witness.kernel.is_ending():
                witness.hang = None
        elif standstill.still_seconds >= self._hang_seconds and witness.hang is None:
            witness.hang = self._hang(witness, standstill, found)

    def _hang(
        self, witness: ProcessWitness, standstill: Standstill, found: Stillness
    ) -> Hang | None:
        """None for a kernel that waits for its user."""
        lines, main = self._take(witness, stands_still=True)
        frames = stacks_of(lines).get(main or "")
        if frames and waits_for_user(frames):
            standstill.moved()
            return None
        return Hang(
            since=standstill.since,
            noticed=time.time(),
            wait=found.wait.value,
            in_fit=found.in_fit,
            forks=found.forks,
            stacks=tuple(lines),
            main_thread=main if frames else None,
        )

    def stacks(self, witness: ProcessWitness) -> list[str]:
        """Python stacks of all threads of this kernel as they are now; empty where they cannot be had."""
        lines, _ = self._take(witness, stands_still=witness.hang is not None)
        hang = witness.hang
        if lines and hang is not None:
            witness.hang = dataclasses.replace(hang, stacks=tuple(lines))
        return lines

    def _take(self, witness: ProcessWitness, *, stands_still: bool) -> tuple[list[str], str | None]:
        """The stacks, and how they name the main thread."""
        recording = self._recordings / witness.identity.folder_name
        header = witness.live.header
        main = claims(header).get("main_thread")
        main = main if isinstance(main, str) else None
        lines = take_stacks(witness.identity, recording, header, stands_still=stands_still)
        return user_first(lines, main), main

    def stop(self) -> None:
        """End; a request for stacks that is on its way is left alone."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(1)
