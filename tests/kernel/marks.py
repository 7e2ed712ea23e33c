"""What a kernel has of its own, by name: environment, descriptors, threads, signals, hooks, handlers, methods of Keras.

Runs in the kernel. Imports nothing of the guard.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import ctypes
import faulthandler
import gc
import inspect
import os
import re
import resource
import signal
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PACKAGE = "jupyter_tfguard"


def marks() -> dict[str, str]:
    """A value for each ``kind:name``."""
    shell = get_ipython()  # type: ignore[name-defined]  # noqa: F821
    found = [*_process(), *_python(), *_shell(shell), *_kernel(shell.kernel)]
    if "keras" in sys.modules:
        found += _keras(sys.modules["keras"])
    return {name: str(value) for name, value in found}


def _process() -> Iterator[tuple[str, Any]]:
    for name, text in os.environ.items():
        yield f"environment:{name}", text
    first = _descriptors()
    time.sleep(0.3)  # the guard opens some files for a moment
    kept = Counter(_named(link) for _, link in first & _descriptors())
    yield from ((f"descriptor:{link}", count) for link, count in kept.items())
    yield "descriptor:2", os.fstat(2).st_ino
    status = Path("/proc/self/status").read_text()
    caught = int(re.findall(r"SigCgt:\s*(\w+)", status)[0], 16)
    for number in signal.valid_signals():
        if caught >> (number - 1) & 1:
            name = number.name if isinstance(number, signal.Signals) else f"SIGRT{number}"
            yield f"signal:{name}", "caught"
    for task in Path("/proc/self/task").iterdir():
        if (comm := (task / "comm").read_text().strip()).startswith("tfguard"):
            yield f"thread:{comm}", "native"
    for library in re.findall(
        rf"/{PACKAGE}/\S*?([^/\s]+\.so)", Path("/proc/self/maps").read_text()
    ):
        yield f"library:{library}", "loaded"
    for limit in (name for name in dir(resource) if name.startswith("RLIMIT_")):
        yield f"limit:{limit}", resource.getrlimit(getattr(resource, limit))
    umask = os.umask(0o22)
    os.umask(umask)
    yield "process:umask", umask
    yield "process:folder", os.getcwd()
    yield "process:priority", os.getpriority(os.PRIO_PROCESS, 0)
    recordings = Path(os.environ["TFGUARD_DIR"], "recordings")
    if recordings.is_dir() and any(recordings.iterdir()):
        yield "file:recordings", "there"


def _descriptors() -> set[tuple[str, str]]:
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return found


def _named(link: str) -> str:
    if "/recordings/" in link:
        return os.path.basename(link)
    return re.sub(r":?\[\d+\]|^/(?=memfd)| \(deleted\)", "", link)


class _Allocator(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")
    )


class _Equal:
    """Equal to nothing; notes what it is compared with."""

    def __init__(self, compared: list[Any]) -> None:
        self._compared = compared

    def __eq__(self, other: object) -> bool:
        self._compared.append(other)
        return False

    __hash__ = None  # type: ignore[assignment]


def _python() -> Iterator[tuple[str, Any]]:
    for name in ("excepthook", "displayhook", "unraisablehook", "breakpointhook"):
        yield f"hook:{name}", getattr(sys, name)
    yield "hook:threading", threading.excepthook
    yield "hook:import", builtins.__import__
    yield "hook:showwarning", warnings.showwarning
    yield (
        "hook:profile",
        (sys.getprofile(), sys.gettrace(), threading.getprofile(), threading.gettrace()),
    )
    yield "hook:streams", (type(sys.stdout), type(sys.stderr), type(sys.stdin))
    yield "hook:gc", (gc.callbacks, gc.isenabled(), gc.get_threshold())
    yield "hook:path", (sys.path, sys.path_hooks)
    yield "hook:switch", sys.getswitchinterval()
    wakeup = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(wakeup)
    yield "signal:wakeup", wakeup
    yield "faulthandler:enabled", faulthandler.is_enabled()
    functions: list[Any] = []
    atexit.unregister(_Equal(functions))
    yield from ((f"atexit:{getattr(one, '__qualname__', one)}", "there") for one in functions)
    for finder in sys.meta_path:
        yield f"finder:{getattr(finder, '__name__', type(finder).__name__)}", "there"
    for thread in threading.enumerate():
        yield f"thread:{re.sub(r'[-_ (]*[0-9].*', '', thread.name)}", "Python"
    allocator = _Allocator()
    for domain, name in enumerate(("raw", "mem", "object")):
        ctypes.pythonapi.PyMem_GetAllocator(domain, ctypes.byref(allocator))
        yield f"allocator:{name}", allocator.malloc


def _shell(shell: Any) -> Iterator[tuple[str, Any]]:
    for name, functions in shell.events.callbacks.items():
        yield from ((f"event:{name}:{one.__qualname__}", one.__module__) for one in functions)
    for kind, magics in shell.magics_manager.magics.items():
        yield from ((f"magic:{name}", kind) for name in magics)
    for owner in (shell, shell.extension_manager):
        yield from (
            (f"shell:{name}", one) for name, one in vars(owner).items() if inspect.isroutine(one)
        )
    yield from ((f"extension:{name}", "loaded") for name in shell.extension_manager.loaded)
    for name, kinds in shell._trait_notifiers.items():
        yield f"observer:{name}", sum(map(len, kinds.values()))
    transformers = shell.ast_transformers, shell.input_transformers_post, shell.custom_exceptions
    yield "hook:transformers", transformers
    yield "hook:input", len(shell.input_transformer_manager.cleanup_transforms)
    yield "names:user", sorted(name for name in shell.user_ns if not name.startswith("_"))


def _kernel(kernel: Any) -> Iterator[tuple[str, Any]]:
    for channel in ("shell", "control"):
        for name, function in getattr(kernel, f"{channel}_handlers").items():
            yield f"handler:{name}", getattr(function, "__code__", function)


def _keras(keras: Any) -> Iterator[tuple[str, Any]]:
    for name in ("fit", "evaluate", "predict"):
        method = inspect.getattr_static(keras.Model, name)
        cells = [cell.cell_contents for cell in method.__closure__ or ()]
        yield f"keras:{name}", [getattr(one, "__code__", None) for one in cells]
        if (paths := method.__globals__.get("_EXCLUDED_PATHS")) is not None:
            yield "keras:_EXCLUDED_PATHS", paths
    yield (
        "keras:optimizer",
        [vars(kind).get("build") for kind in keras.optimizers.Optimizer.__mro__],
    )
    yield "keras:add_weight", keras.layers.Layer.add_weight
    yield (
        "keras:add_variable_from_reference",
        keras.optimizers.Optimizer.add_variable_from_reference,
    )
