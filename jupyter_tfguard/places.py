"""Folders of tfguard, and the names of its environment variables.

``TFGUARD_DIR`` overrides the data folder. The default is in the Jupyter data directory, because that is the folder most
likely to survive the end of a container.

If the data folder is on a network or FUSE file system, running kernels write to a local folder instead, and the watcher
copies the recordings: a cell must never wait for a file server.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path

from .mounts import file_system_type, is_remote

DIRECTORY_VARIABLE = "TFGUARD_DIR"
DISABLE_VARIABLE = "TFGUARD_DISABLE"
GROWTH_VARIABLE = "TF_FORCE_GPU_ALLOW_GROWTH"
# Set to "1" together with GROWTH_VARIABLE if tfguard set it: distinguishes tfguard's value from the user's.
GROWTH_MARKER_VARIABLE = "TFGUARD_SET_GROWTH"
# Process id of the Jupyter server whose watcher tracks the kernels that the server starts.
WATCHER_VARIABLE = "TFGUARD_WATCHER_PID"
# Process id of the guarded kernel to which the other variables apply; programs started by its code inherit them.
KERNEL_VARIABLE = "TFGUARD_KERNEL_PID"
# Local folder of the recordings of running kernels, used if the data folder is on a remote file system.
LIVE_VARIABLE = "TFGUARD_LIVE_DIR"
FAST_FIX = f"Set {LIVE_VARIABLE} to a folder of your own on a local disk, then restart Jupyter."


def data_folder() -> Path:
    """Folder of all tfguard data: ``recordings/``, ``bundles/``, ``problems.jsonl``."""
    chosen = os.environ.get(DIRECTORY_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    from jupyter_core.paths import jupyter_data_dir

    return Path(jupyter_data_dir()) / "tfguard"


def recordings_folder() -> Path:
    """Folder where the kernels of this machine write their recordings. On a local disk if there is one."""
    kept = data_folder() / "recordings"
    if not is_remote(kept):
        return kept
    root = live_folder()
    return kept if root is None else root / _key(kept)


def copies_folder() -> Path | None:
    """Folder where the watcher copies recordings; None if kernels write to the data folder directly."""
    kept = data_folder() / "recordings"
    return None if recordings_folder() == kept else kept


def live_folder() -> Path | None:
    """The local folder for live recordings if the data folder is remote; None if there is no local folder.

    ``TFGUARD_LIVE_DIR``, else a folder in ``XDG_RUNTIME_DIR`` if that is private, else a private folder in the temporary
    folder or in ``/var/tmp``.
    """
    chosen = os.environ.get(LIVE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and _is_private(Path(runtime)) and not is_remote(Path(runtime)):
        return Path(runtime) / "tfguard"
    import tempfile  # avoid this import at kernel start if the data folder is on a local disk

    bases = dict.fromkeys((Path(tempfile.gettempdir()), Path("/var/tmp")))
    found = (_temporary_folder(base) for base in bases if not is_remote(base))
    return next((folder for folder in found if folder is not None), None)


def _temporary_folder(base: Path) -> Path | None:
    """A private folder in a folder where all users may create some: every process of this user finds the same one."""
    name = f"tfguard-{os.geteuid() if hasattr(os, 'geteuid') else 'mine'}"
    with contextlib.suppress(OSError):
        (base / name).mkdir(mode=0o700)
    if _is_private(base / name):
        return base / name
    # Another user has taken the name, or others may enter it. The oldest of ours counts.
    if not (ours := _private_folders(base, f"{name}-")):
        with contextlib.suppress(OSError):
            (base / f"{name}-{time.time_ns()}").mkdir(mode=0o700)
        ours = _private_folders(base, f"{name}-")
    return next(iter(ours), None)


def _private_folders(base: Path, beginning: str) -> list[Path]:
    try:
        names = sorted(name for name in os.listdir(base) if name.startswith(beginning))
    except OSError:
        return []
    return [base / name for name in names if _is_private(base / name)]


def slow_recordings() -> str | None:
    """A sentence if running kernels write to a network or FUSE file system; None if they do not, or if that is unknown."""
    folder = recordings_folder()
    if not is_remote(folder):
        return None
    kind = file_system_type(folder)
    return f"Kernels write to {folder}, on a file system of type {kind}. Cells may wait for it."


def _is_private(path: Path) -> bool:
    """True for a folder (not a link) that only this user can enter."""
    try:
        found = path.lstat()
    except OSError:
        return False
    if not hasattr(os, "geteuid"):
        return stat.S_ISDIR(found.st_mode)
    mine = found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077
    return stat.S_ISDIR(found.st_mode) and mine


def _key(folder: Path) -> str:
    """A name that separates the live recordings of different data folders."""
    import hashlib

    return hashlib.blake2s(os.fsencode(os.path.realpath(folder)), digest_size=8).hexdigest()


def bundles_folder() -> Path:
    """Folder of the bundles and reports of crashed kernels, one folder each."""
    return data_folder() / "bundles"


def user_settings_file() -> Path:
    """The per-user settings: ``jupyter_tfguard_config.json`` in the Jupyter configuration directory."""
    from jupyter_core.paths import jupyter_config_dir

    return Path(jupyter_config_dir()) / "jupyter_tfguard_config.json"


def disabled_by_environment(environ: Mapping[str, str] = os.environ) -> bool:
    """True if the user switched tfguard off with ``TFGUARD_DISABLE=1``, here or in the `environ` of another process."""
    return environ.get(DISABLE_VARIABLE, "").strip().lower() not in ("", "0", "false", "no")
