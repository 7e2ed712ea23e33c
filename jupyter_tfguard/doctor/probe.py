"""Starts a process that records like a kernel, kills it, and reads its recording."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..collectors.host import HostCollector
from ..collectors.process import ProcessCollector
from ..errors import FolderUnusable, RecordUnreadable, SourceUnavailable, TfGuardError
from ..metrics import Metric, Sample
from ..private_files import remove_folder
from ..record.contents import RecordingContents, read_recording
from ..record.events import Probe
from ..record.identity import ProcessIdentity
from ..record.native_text import stderr_end
from ..record.recording import Recording
from ..record.stderr_tail import StderrTail
from ..shield import fall_silent

STDERR_LINE = "the stderr tail of a process that jupyter tfguard doctor killed"
_READY = b"ready\n"
_SAMPLES = 3
_LIMIT_SECONDS = 15.0
_TEXT_SECONDS = 5.0
# The package may not be importable by its name: `jupyter tfguard enable` installs nothing. It is appended to the path,
# so that the environment's own packages are preferred.
_CHILD = """
import sys
sys.path.append(sys.argv[1])
from pathlib import Path
from jupyter_tfguard.doctor.probe import record_until_killed
record_until_killed(Path(sys.argv[2]))
"""


@dataclass(frozen=True)
class Probed:
    """The result of the probe.

    Attributes:
        missing: Parts that a report would lack, as text; empty if complete.
        seconds: Duration.
    """

    missing: tuple[str, ...]
    seconds: float


def probe(root: Path, python: str) -> Probed:
    """Start a process that records below `root` and kills itself; read its recording and remove it.

    Raises:
        TfGuardError: The process ended or timed out before it had recorded.
    """
    begun = time.monotonic()
    package = Path(__file__).parents[2]
    command = [python, "-c", _CHILD, str(package), str(root)]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIMIT_SECONDS,
            check=False,
        )
        if done.stdout != _READY:
            last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
            raise TfGuardError(f"The test process ended early: {' '.join(last) or 'no message'}")
        (folder,) = list(root.iterdir())
        missing = _missing(read_recording(folder))
    except subprocess.TimeoutExpired as late:
        text = f"The test process was not ready after {_LIMIT_SECONDS:g} s."
        raise TfGuardError(text) from late
    except (RecordUnreadable, ValueError) as bad:
        missing = (f"the recording ({bad})",)
    finally:
        remove_folder(root)
    return Probed(missing, time.monotonic() - begun)


def _missing(found: RecordingContents) -> tuple[str, ...]:
    wanted = {
        "the header": bool(found.header.get("pid")),
        "events": any(isinstance(event, Probe) for event in found.journal),
        "samples": len(found.samples) >= _SAMPLES,
        "stderr tail": sys.platform == "win32" or STDERR_LINE in found.stderr_tail,
        "the missing end mark": found.end is None,
    }
    return (*(name for name, there in wanted.items() if not there), *found.problems)


def record_until_killed(root: Path) -> None:
    """Run in the process that is killed: write one of everything, report that, and kill this process.

    As in a kernel, parts that cannot be written are left out. The reader reports them as missing.
    """
    fall_silent()
    identity = ProcessIdentity.of(os.getpid())
    if identity is None:
        raise SourceUnavailable("Could not read the start time of this process.")
    collectors = (ProcessCollector(os.getpid()), HostCollector())
    metrics: Sequence[Metric] = [metric for c in collectors for metric in c.metrics]
    recording = Recording(root, identity, {"kernel_id": "doctor"}, metrics)
    tail = StderrTail(recording.folder, on_problem=lambda text: None)
    with contextlib.suppress(SourceUnavailable, FolderUnusable, OSError):
        tail.start()
    recording.emit(Probe())
    for number in range(1, _SAMPLES + 1):
        values = {name: value for c in collectors for name, value in c.collect().items()}
        recording.sample(Sample(number, time.monotonic(), time.time(), values))
    os.write(2, f"{STDERR_LINE}\n".encode())
    # No watcher keeps the pipe open, so text that is still in it would be lost.
    end = time.monotonic() + _TEXT_SECONDS
    while (
        tail.running and time.monotonic() < end and STDERR_LINE not in stderr_end(recording.folder)
    ):
        time.sleep(0.001)
    os.write(1, _READY)
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
