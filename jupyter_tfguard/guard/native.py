"""The native library of the guard: it decides when a cell is stopped, without the GIL, and checks large allocations.

The library is compiled from the folder ``native`` when the package is built.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

from ..errors import SourceUnavailable
from ..levels import Levels
from ..memory.groups import MemoryGroup
from ..mounts import is_remote
from ..units import GIB
from .snapshot import Snapshot

LIBRARY = Path(__file__).with_name("_gate.so")
_INTERFACE_VERSION = 6
# Kept free on the disk for disk-backed blocks: a full disk would break unrelated programs.
_KEEP_FREE_BYTES = 2 * GIB
_NO_QUOTA_BYTES = 1 << 62
_UNKNOWN_BYTES = 2**63 - 1  # INT64_MAX
# Entry of NumPy's table of C functions; the same in NumPy 1.22 and later.
_DEFAULT_HANDLER_INDEX = 306
# Tested by tests/soak/gate_versions.py. Other versions may have the same symbols but allocate differently.
_TESTED_TENSORFLOW = {("2", str(minor)) for minor in range(15, 22)}
_NOT_IMPORTED = ""
# Code in these is not the user's.
_STANDARD_LIBRARY = os.path.join(os.path.dirname(os.__file__), "")
_OWN_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
# A refusal in these raises MemoryError, as if the system had refused.
PYTHON_PARTS = ("python", "numpy", "fourier", "pandas", "sklearn")
# Only lets the free memory of TensorFlow's pool be released.
SOFT_PARTS = (*PYTHON_PARTS, "pool")
PARTS = (*PYTHON_PARTS, "disk", "tensorflow")
# In NumPy 2, NumPy 1 and SciPy.
_FOURIER_MODULES = (
    "numpy.fft._pocketfft_umath",
    "numpy.fft._pocketfft_internal",
    "scipy.fft._pocketfft.pypocketfft",
)


class _Levels(ctypes.Structure):
    """``struct levels``."""

    _fields_ = (
        ("stop_bytes", ctypes.c_int64),
        ("stop_cap_bytes", ctypes.c_int64),
        ("reserve_bytes", ctypes.c_int64),
        ("total_bytes", ctypes.c_int64),
        ("rate_seconds", ctypes.c_double),
        ("own_fraction", ctypes.c_double),
    )


class _Snapshot(ctypes.Structure):
    """``struct snapshot``."""

    _fields_ = (
        ("tripped", ctypes.c_int64),
        ("delivered", ctypes.c_int64),
        ("trip_count", ctypes.c_int64),
        ("trip_available", ctypes.c_int64),
        ("trip_age_us", ctypes.c_int64),
        ("lowest_available", ctypes.c_int64),
        ("refused_numpy", ctypes.c_int64),
        ("refused_python", ctypes.c_int64),
        ("refused_pandas", ctypes.c_int64),
        ("refused_sklearn", ctypes.c_int64),
        ("refused_tensorflow", ctypes.c_int64),
        ("interrupted", ctypes.c_int64),
        ("last_refused", ctypes.c_int64),
        ("last_refused_available", ctypes.c_int64),
        ("spilled_bytes", ctypes.c_int64),
        ("spilled_count", ctypes.c_int64),
        ("trip_added", ctypes.c_int64),
        ("fill_rate", ctypes.c_double),
    )


class NativeGuard:
    """The native library; use :meth:`load`.

    Short calls keep the GIL: releasing and reacquiring it would take longer than the call.
    """

    def __init__(self, path: Path) -> None:
        self._short = ctypes.PyDLL(str(path))
        self._long = ctypes.CDLL(str(path))
        for library in (self._short, self._long):
            library.tfguard_interface_version.restype = ctypes.c_int
        if self._short.tfguard_interface_version() != _INTERFACE_VERSION:
            raise SourceUnavailable(f"{path.name} belongs to another version of jupyter-tfguard.")
        self._declare()

    @classmethod
    def load(cls, groups: Sequence[MemoryGroup] = ()) -> NativeGuard:
        """Load the library of this installation.

        Args:
            groups: As for :meth:`use_groups`.

        Raises:
            SourceUnavailable: It is missing or unusable, or this system has no memory figures; the text says why.
        """
        if not sys.platform.startswith("linux"):
            raise SourceUnavailable("The guard's native library exists for Linux only.")
        if not LIBRARY.is_file():
            raise SourceUnavailable(
                "The guard's native library was not built with this installation. Install a C compiler, then install jupyter-tfguard again."
            )
        try:
            loaded = cls(LIBRARY)
        except (OSError, AttributeError) as bad:
            raise SourceUnavailable(f"The guard's native library cannot be loaded: {bad}") from bad
        loaded.use_groups(groups)
        if loaded.available_bytes() == _UNKNOWN_BYTES:
            raise SourceUnavailable("The available memory of this machine is unknown.")
        return loaded

    def _declare(self) -> None:
        short, long = self._short, self._long
        short.tfguard_available.restype = short.tfguard_total.restype = ctypes.c_int64
        short.tfguard_available.argtypes = short.tfguard_total.argtypes = ()
        short.tfguard_use_groups.argtypes = (
            ctypes.c_int,
            ctypes.POINTER(ctypes.c_int),
            ctypes.POINTER(ctypes.c_char_p),
        )
        short.tfguard_use_groups.restype = None
        short.tfguard_start.argtypes = (ctypes.c_int,)
        short.tfguard_start.restype = ctypes.c_int
        long.tfguard_wait_for_trip.argtypes, long.tfguard_wait_for_trip.restype = (), ctypes.c_bool
        short.tfguard_arm.argtypes = (ctypes.POINTER(_Levels),)
        short.tfguard_snapshot.argtypes = (ctypes.POINTER(_Snapshot),)
        for function in (
            short.tfguard_arm,
            short.tfguard_snapshot,
            short.tfguard_disarm,
            short.tfguard_delivered,
            short.tfguard_restore,
            short.tfguard_use_folders,
            long.tfguard_stop,
        ):
            function.restype = None
        short.tfguard_exempt.argtypes = (ctypes.c_int,)
        short.tfguard_exempt.restype = ctypes.c_int
        short.tfguard_use_folders.argtypes = (ctypes.c_char_p, ctypes.c_char_p)
        short.tfguard_arm_tensorflow.argtypes = (ctypes.c_int,)
        short.tfguard_arm_numpy.argtypes = (*[ctypes.c_void_p] * 3, ctypes.c_char_p)
        long.tfguard_arm_disk.argtypes = (ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64)
        for function in (
            short.tfguard_arm_numpy,
            short.tfguard_arm_python,
            short.tfguard_arm_tensorflow,
            short.tfguard_arm_pandas,
            short.tfguard_arm_sklearn,
            short.tfguard_arm_fourier,
            long.tfguard_arm_disk,
        ):
            function.restype = ctypes.c_char_p
        long.tfguard_give_back.argtypes, long.tfguard_give_back.restype = (
            (ctypes.c_int,),
            ctypes.c_int64,
        )

    def start(self, signal_number: int) -> None:
        """Start the thread, disarmed. Call from the main thread.

        Args:
            signal_number: Sent to the main thread at a trip, and every 10 ms until :meth:`delivered`.

        Raises:
            SourceUnavailable: This system cannot start the thread.
        """
        if failed := self._short.tfguard_start(signal_number):
            raise SourceUnavailable(f"The guard's native thread did not start: error {failed}.")

    def wait_for_trip(self) -> bool:
        """Wait for the next trip, without the GIL. False after :meth:`stop`."""
        return bool(self._long.tfguard_wait_for_trip())

    def use_groups(self, groups: Sequence[MemoryGroup]) -> None:
        """Read these memory groups from now on. Call while disarmed."""
        versions = (ctypes.c_int * len(groups))(*(group.version for group in groups))
        folders = (ctypes.c_char_p * len(groups))(*(group.directory.encode() for group in groups))
        self._short.tfguard_use_groups(len(groups), versions, folders)

    def total_bytes(self) -> int:
        """The smallest of the groups' limits and the machine's memory: the levels of a stop are parts of it."""
        return int(self._short.tfguard_total())

    def arm(self, levels: Levels) -> None:
        """Arm for a new cell; resets an earlier trip."""
        self._short.tfguard_arm(
            _Levels(
                stop_bytes=levels.stop_bytes,
                stop_cap_bytes=levels.stop_cap_bytes,
                reserve_bytes=levels.reserve_bytes,
                total_bytes=levels.total_bytes,
                rate_seconds=levels.rate_seconds,
                own_fraction=levels.own_fraction,
            )
        )

    def disarm(self) -> None:
        """Disarm: no trips and no refusals until the next :meth:`arm`."""
        self._short.tfguard_disarm()

    def delivered(self) -> None:
        """Note that the exception was raised. Trips again if available memory continues to fall."""
        self._short.tfguard_delivered()

    @contextlib.contextmanager
    def exempt(self) -> Iterator[None]:
        """Refuse and interrupt nothing in this thread meanwhile."""
        was_exempt = self._short.tfguard_exempt(1)
        try:
            yield
        finally:
            self._short.tfguard_exempt(was_exempt)

    def available_bytes(self) -> int:
        """Read the available memory now, in bytes."""
        return int(self._short.tfguard_available())

    def snapshot(self) -> Snapshot:
        """The current state. A call in the main thread also shows the library that this thread runs Python code."""
        seen = _Snapshot()
        self._short.tfguard_snapshot(seen)
        return Snapshot(
            tripped=bool(seen.tripped),
            delivered=bool(seen.delivered),
            trip_count=seen.trip_count,
            trip_available_bytes=seen.trip_available,
            trip_seconds_ago=seen.trip_age_us / 1e6,
            trip_added_bytes=max(0, seen.trip_added),
            lowest_available_bytes=seen.lowest_available,
            fill_bytes_per_second=seen.fill_rate,
            refused_count={
                "numpy": seen.refused_numpy,
                "python": seen.refused_python + seen.interrupted,
                "pandas": seen.refused_pandas,
                "sklearn": seen.refused_sklearn,
                "tensorflow": seen.refused_tensorflow,
            },
            last_refused_bytes=seen.last_refused,
            last_refused_available_bytes=seen.last_refused_available,
            spilled_bytes=seen.spilled_bytes,
        )

    def give_back(self, *, if_due: bool = False) -> int:
        """Return free memory of malloc and of TensorFlow's pool to the system; takes up to 0.2 s, without the GIL.

        Args:
            if_due: Only if that was not done a moment ago, or much was freed since.

        Returns:
            Bytes of the pool.
        """
        return int(self._long.tfguard_give_back(int(if_due)))

    def stop(self) -> None:
        """Stop the thread, and restore the patched functions."""
        self._long.tfguard_stop()
        self._short.tfguard_restore()

    # --- the gate

    def gate(
        self, parts: Iterable[str] = PARTS, disk_folder: str | None = None
    ) -> dict[str, str | None]:
        """Arm each part that can be armed now; call again after imports.

        Args:
            parts: Which.
            disk_folder: Folder for disk-backed blocks; None for the folder of temporary files.

        Returns:
            State by part: None if it is armed, a sentence if it cannot be, "" while its library is not imported.
        """
        self._short.tfguard_use_folders(*map(os.fsencode, (_STANDARD_LIBRARY, _OWN_PACKAGE)))
        arm: dict[str, Callable[[], str | None]] = {
            "python": self._arm_python,
            "disk": lambda: self._arm_disk(disk_folder or tempfile.gettempdir()),
            "numpy": self._arm_numpy,
            "fourier": self._arm_fourier,
            "pool": lambda: self._arm_tensorflow(refuses=False),
            "tensorflow": lambda: self._arm_tensorflow(refuses=True),
            "pandas": self._arm_pandas,
            "sklearn": self._arm_sklearn,
        }
        return {part: arm[part]() for part in parts}

    def _arm_python(self) -> str | None:
        if sysconfig.get_config_var("Py_GIL_DISABLED"):
            return "Python without the global interpreter lock has not been tested."
        return _text(self._short.tfguard_arm_python())

    def _arm_disk(self, folder: str) -> str | None:
        if is_remote(Path(folder)):
            return "The folder for it is on a network file system."
        return _text(
            self._long.tfguard_arm_disk(folder.encode(), _KEEP_FREE_BYTES, _NO_QUOTA_BYTES)
        )

    def _arm_numpy(self) -> str | None:
        module = _numpy_core()
        if module is None:
            return _NOT_IMPORTED
        try:
            handler = _default_handler(module)
            empty = [_c_function(getattr(module, name)) for name in ("empty", "empty_like")]
        except (AttributeError, ValueError, TypeError, SystemError):
            return "This NumPy has no memory handler."
        folder = os.path.join(os.path.dirname(sys.modules["numpy"].__path__[0]), "")
        return _text(self._short.tfguard_arm_numpy(handler, *empty, os.fsencode(folder)))

    def _arm_fourier(self) -> str | None:
        if not any(name in sys.modules for name in _FOURIER_MODULES):
            return _NOT_IMPORTED
        return _text(self._short.tfguard_arm_fourier())

    def _arm_tensorflow(self, *, refuses: bool) -> str | None:
        version = getattr(sys.modules.get("tensorflow"), "__version__", None)
        if version is None:  # also while the import is in progress
            return _NOT_IMPORTED
        if tuple(version.split(".")[:2]) not in _TESTED_TENSORFLOW:
            return f"The gate has not been tested with TensorFlow {version}."
        return _text(self._short.tfguard_arm_tensorflow(int(refuses)))

    def _arm_pandas(self) -> str | None:
        # The parser is loaded later, by the first import of pandas.io.
        if "pandas._libs.parsers" not in sys.modules:
            return _NOT_IMPORTED
        return _text(self._short.tfguard_arm_pandas())

    def _arm_sklearn(self) -> str | None:
        if "sklearn.tree._utils" not in sys.modules:
            return _NOT_IMPORTED
        return _text(self._short.tfguard_arm_sklearn())


def _text(reason: bytes | None) -> str | None:
    return None if reason is None else reason.decode()


def _numpy_core() -> ModuleType | None:
    """NumPy's C module, by its name in NumPy 2 or NumPy 1; None before it is imported."""
    names = ("numpy._core._multiarray_umath", "numpy.core._multiarray_umath")
    return next((sys.modules[name] for name in names if name in sys.modules), None)


def _c_function(builtin: object) -> int | None:
    """Address of the C function behind a builtin."""
    address_of = ctypes.pythonapi.PyCFunction_GetFunction
    address_of.restype, address_of.argtypes = ctypes.c_void_p, (ctypes.py_object,)
    found: int | None = address_of(builtin)
    return found


def _default_handler(module: ModuleType) -> int:
    """Address of NumPy's default ``PyDataMem_Handler``.

    Raises:
        ValueError: The table has no handler at its index.
    """
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = ctypes.cast(
        pointer_of(module._ARRAY_API, None), ctypes.POINTER(ctypes.POINTER(ctypes.py_object))
    )
    handler: int | None = None
    with contextlib.suppress(ValueError):
        handler = pointer_of(table[_DEFAULT_HANDLER_INDEX][0], b"mem_handler")
    if not handler:
        raise ValueError("no mem_handler")
    return handler
