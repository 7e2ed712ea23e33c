"""Where tfguard keeps things, and the names of its environment variables.

``TFGUARD_DIR`` overrides the folder; otherwise it lies in the Jupyter data directory, because that is the place that
outlives a container most often.
"""

from __future__ import annotations

import os
from pathlib import Path

DIRECTORY_VARIABLE = "TFGUARD_DIR"
DISABLE_VARIABLE = "TFGUARD_DISABLE"
GROWTH_VARIABLE = "TF_FORCE_GPU_ALLOW_GROWTH"
# Set to "1" beside GROWTH_VARIABLE when tfguard set it: tells our value from the user's own.
GROWTH_MARKER_VARIABLE = "TFGUARD_SET_GROWTH"
# Process id of the Jupyter server whose watcher looks after the kernels it starts.
WATCHER_VARIABLE = "TFGUARD_WATCHER_PID"


def data_folder() -> Path:
    """Folder of everything tfguard keeps: ``recordings/``, ``bundles/``, ``problems.jsonl``."""
    chosen = os.environ.get(DIRECTORY_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    from jupyter_core.paths import jupyter_data_dir

    return Path(jupyter_data_dir()) / "tfguard"


def recordings_folder() -> Path:
    """Folder of the recordings of running kernels, one folder each."""
    return data_folder() / "recordings"


def bundles_folder() -> Path:
    """Folder of the bundles and reports of dead kernels, one folder each."""
    return data_folder() / "bundles"


def user_settings_file() -> Path:
    """The per-user settings: ``jupyter_tfguard_config.json`` in the Jupyter configuration directory."""
    from jupyter_core.paths import jupyter_config_dir

    return Path(jupyter_config_dir()) / "jupyter_tfguard_config.json"


def disabled_by_environment() -> bool:
    """True when the user switched tfguard off with ``TFGUARD_DISABLE=1``."""
    return os.environ.get(DISABLE_VARIABLE, "").strip().lower() not in ("", "0", "false", "no")
