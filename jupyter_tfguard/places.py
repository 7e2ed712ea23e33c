"""Where tfguard keeps things, and the names of its environment variables.

``TFGUARD_DIR`` overrides the folder; otherwise it lies in the Jupyter data directory, because that is the place that
outlives a container most often.

Where that folder is on a network or FUSE file system, running kernels write to a local folder instead, and the watcher
copies: a cell must never wait for a file server.
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
# Set to "1" beside GROWTH_VARIABLE when tfguard set it: tells our value from the user's own.
GROWTH_MARKER_VARIABLE = "TFGUARD_SET_GROWTH"
# Process id of the Jupyter server whose watcher looks after the kernels it starts.
WATCHER_VARIABLE = "TFGUARD_WATCHER_PID"
# Process id of the guarded kernel that the other variables are meant for; programs that its code starts inherit them.
KERNEL_VARIABLE = "TFGUARD_KERNEL_PID"
# Local folder of the recordings of running kernels, used where the data folder is on a remote file system.
LIVE_VARIABLE = "TFGUARD_LIVE_DIR"


def data_folder() -> Path:
    """Folder of everything tfguard keeps: ``recordings/``, ``bundles/``, ``problems.jsonl``."""
    chosen = os.environ.get(DIRECTORY_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    from jupyter_core.paths import jupyter_data_dir

    return Path(jupyter_data_dir()) / "tfguard"


def recordings_folder() -> Path:
    """Where the kernels of this machine write their recordings, one folder each. Always a local disk, if there is one."""
    kept = data_folder() / "recordings"
    if not is_remote(kept):
        return kept
    root = live_folder()
    return kept if root is None else root / _key(kept)


def copies_folder() -> Path | None:
    """Where the watcher copies recordings to, because they lie elsewhere while they are written; None: no need."""
    kept = data_folder() / "recordings"
    return None if recordings_folder() == kept else kept


def live_folder() -> Path | None:
    """The local folder for live recordings beside a remote data folder; None when there is no local folder at all.

    ``TFGUARD_LIVE_DIR``, else below ``XDG_RUNTIME_DIR`` if that is private, else one of this user's in the temporary folder.
    """
    chosen = os.environ.get(LIVE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and _is_private(Path(runtime)) and not is_remote(Path(runtime)):
        return Path(runtime) / "tfguard"
    import tempfile  # not at kernel start where the data folder is on a local disk

    user = os.geteuid() if hasattr(os, "geteuid") else "mine"
    path = Path(tempfile.gettempdir()) / f"tfguard-{user}"
    if is_remote(path):
        return None
    with contextlib.suppress(OSError):
        path.mkdir(mode=0o700)
    return path if _is_private(path) else None


def _is_private(path: Path) -> bool:
    """True for a folder, no link, that only this user may enter."""
    try:
        found = path.lstat()
    except OSError:
        return False
    if not hasattr(os, "geteuid"):
        return stat.S_ISDIR(found.st_mode)
    mine = found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077
    return stat.S_ISDIR(found.st_mode) and mine


def _key(folder: Path) -> str:
    """Keeps the live recordings of several data folders apart."""
    import hashlib

    return hashlib.blake2s(os.fsencode(os.path.realpath(folder)), digest_size=8).hexdigest()


def bundles_folder() -> Path:
    """Folder of the bundles and reports of dead kernels, one folder each."""
    return data_folder() / "bundles"


def user_settings_file() -> Path:
    """The per-user settings: ``jupyter_tfguard_config.json`` in the Jupyter configuration directory."""
    from jupyter_core.paths import jupyter_config_dir

    return Path(jupyter_config_dir()) / "jupyter_tfguard_config.json"


def disabled_by_environment(environ: Mapping[str, str] = os.environ) -> bool:
    """True when the user switched tfguard off with ``TFGUARD_DISABLE=1``, here or in the `environ` of another process."""
    return environ.get(DISABLE_VARIABLE, "").strip().lower() not in ("", "0", "false", "no")
