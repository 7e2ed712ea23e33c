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
from collections.abc import Mapping
from pathlib import Path

from .mounts import is_remote

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

    ``TFGUARD_LIVE_DIR``, else a folder in ``XDG_RUNTIME_DIR`` if that is private, else a per-user folder in the
    temporary folder.
    """
    chosen = os.environ.get(LIVE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and _is_private(Path(runtime)) and not is_remote(Path(runtime)):
        return Path(runtime) / "tfguard"
    import tempfile  # avoid this import at kernel start if the data folder is on a local disk

    user = os.geteuid() if hasattr(os, "geteuid") else "mine"
    path = Path(tempfile.gettempdir()) / f"tfguard-{user}"
    if is_remote(path):
        return None
    with contextlib.suppress(OSError):
        path.mkdir(mode=0o700)
    return path if _is_private(path) else None


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
