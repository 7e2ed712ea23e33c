"""The guard makes no call of TensorFlow before the user's own code has made one, and opens no library of the driver.

Every thread of the kernel is watched from before the guard is loaded: each call that one of our functions makes into
TensorFlow or Keras, written in Python or in C, is noted where it is made.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.kernel.rig import GuardedKernel, guarded_kernel

# Run before the startup files. A module that is imported runs on behalf of whoever wrote the import: the stand-in loader
# of the import hook (exec_module) is on the stack all the while, and is not who calls.
WATCH = """
import sys, threading
class Watched:
    calls, threads = [], set()
def _watch():
    ours = "/jupyter_tfguard/"
    theirs = ("/site-packages/tensorflow/", "/site-packages/keras/")
    here = threading.current_thread
    def profile(frame, event, argument):
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if event == "call":
            if ours in file:
                Watched.threads.add(here().name)
            elif frame.f_back is not None and any(part in file for part in theirs) and name != "<module>":
                caller, by = frame.f_back.f_code.co_filename, frame.f_back.f_code.co_name
                if ours in caller and by != "exec_module":
                    note(caller, by, file[file.index("/site-packages/") + 15:], name)
        elif event == "c_call" and ours in file:
            module = getattr(argument, "__module__", None) or type(getattr(argument, "__self__", None)).__module__
            if isinstance(module, str) and module.startswith(("tensorflow", "keras")):
                note(file, name, module, argument.__name__)
    def note(file, by, module, name):
        Watched.calls.append([file.rsplit("/", 1)[-1] + ":" + by, module + ":" + name])
    threading.setprofile(profile)
    sys.setprofile(profile)
_watch()
"""
TOLD = """
import json, sys
context = sys.modules["tensorflow.python.eager.context"]._context
print(json.dumps({
    "context": repr(getattr(context, "_context_handle", None)),
    "devices": repr(getattr(context, "_physical_devices", None)),
    "calls": Watched.calls,
    "threads": sorted(Watched.threads),
}))
"""
DRIVER = """
names = {line.split()[-1].rsplit("/", 1)[-1] for line in open("/proc/self/maps") if ".so" in line}
print(sorted(name for name in names if name.startswith(("libcuda.", "libnvidia"))))
"""
CELLS = ("x = 1 + 1", "1 / 0", "%tfguard status", "%tfguard cells", "import time; time.sleep(2.5)")
needs_procfs = pytest.mark.skipif(sys.platform != "linux", reason="needs procfs")
compiler = shutil.which("cc") or shutil.which("gcc")


@dataclass
class Seen:
    """What was watched."""

    context: str
    devices: str
    calls: list[list[str]]
    threads: list[str]

    def of(self, library: str) -> list[list[str]]:
        """The calls into a library."""
        return [call for call in self.calls if call[1].startswith(library)]


def ran(kernel: GuardedKernel, *cells: str) -> str:
    """Run cells as a user does; what the last one printed."""
    text = ""
    for cell in cells:
        done = kernel.run(cell, timeout=180)
        assert done.error is None or cell == "1 / 0", done.traceback
        text = done.stdout
    return text


def watched(kernel: GuardedKernel) -> Seen:
    found: dict[str, Any] = json.loads(ran(kernel, TOLD))
    return Seen(**found)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """TensorFlow and Keras were imported, and nothing of them was used."""
    with guarded_kernel(tmp_path_factory.mktemp("watched"), before=WATCH) as kernel:
        ran(kernel, *CELLS, "import tensorflow as tf", *CELLS, "import keras", *CELLS)
        assert kernel.problems() == ""
        yield watched(kernel)


def test_nothing_of_tensorflow_was_called(seen: Seen) -> None:
    assert seen.of("tensorflow") == []


def test_neither_context_nor_devices_were_made(seen: Seen) -> None:
    assert (seen.context, seen.devices) == ("None", "None")


def test_of_keras_one_callback_object_was_made(seen: Seen) -> None:
    # Which arguments a callback is handed has to be known before the first fit. Keras does nothing there.
    assert {tuple(call) for call in seen.of("keras")} <= {
        ("watch.py:_hands_out_tensors", "keras/src/callbacks/callback.py:__init__")
    }


def test_the_guards_own_threads_were_watched_too(seen: Seen) -> None:
    assert {"MainThread", "tfguard-pulse"} <= set(seen.threads)


def test_the_watch_sees_the_one_call_that_an_option_asks_for(tmp_path: Path) -> None:
    """Without this the tests above could not fail."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "jupyter_tfguard_config.json").write_text(
        '{"TfGuard": {"gpu_memory_limit_mib": 8192}}'
    )
    pretend = (
        "from jupyter_tfguard.training import growth; growth.gpu_present = lambda root='/': True"
    )
    with guarded_kernel(tmp_path, before=WATCH) as kernel:
        ran(kernel, pretend, "import tensorflow as tf")
        found = watched(kernel)
    assert {call[0] for call in found.of("tensorflow")} == {"gpu_cap.py:apply"}
    assert found.context == "None"


@needs_procfs
@pytest.mark.skipif(compiler is None, reason="needs a C compiler")
def test_no_library_of_the_driver_is_opened(tmp_path: Path) -> None:
    """Both lie where the loader looks, so that opening them would succeed."""
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    (tmp_path / "empty.c").write_text("int tfguard_test_empty(void) { return 0; }\n")
    for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
        command = [str(compiler), "-shared", "-fPIC", "-o", str(libraries / name)]
        subprocess.run([*command, str(tmp_path / "empty.c")], check=True)
    path = {"LD_LIBRARY_PATH": str(libraries)}
    after_import = {}
    for which, disable in (("guarded", {}), ("bare", {"TFGUARD_DISABLE": "1"})):
        with guarded_kernel(tmp_path / which, environment=path | disable) as kernel:
            cells = CELLS if which == "guarded" else ()
            assert ran(kernel, *cells, DRIVER) == "[]\n"
            after_import[which] = ran(kernel, "import tensorflow as tf", *cells, DRIVER)
            opened = ran(kernel, "import ctypes; ctypes.CDLL('libnvidia-ml.so.1')", DRIVER)
            assert "libnvidia-ml.so.1" in opened  # it could have been
    assert after_import["guarded"] == after_import["bare"]
    assert "nvidia" not in after_import["guarded"]
