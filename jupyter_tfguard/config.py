"""Every option of tfguard: one trait each, with help, default and unit.

The same class is configured in three places, the later ones winning: the per-user file
``jupyter_tfguard_config.json`` in the Jupyter configuration directory (``{"TfGuard": {"enabled": false}}``),
the configuration of the Jupyter server (``c.TfGuard.enabled = False``) for the watcher, and the configuration of
IPython for the kernel side.
"""

from __future__ import annotations

import json
from typing import Any

from traitlets import Bool, Float, Integer
from traitlets.config import Config, Configurable

from .errors import SettingsUnreadable
from .places import disabled_by_environment, user_settings_file


class TfGuard(Configurable):
    """Options of the kernel's guard and flight recorder. ``read_by``: who is to be started anew after a change."""

    enabled = Bool(
        True, help="Guard kernels at all. TFGUARD_DISABLE=1 in the environment wins over this."
    ).tag(config=True, read_by="both")
    set_memory_growth = Bool(
        True,
        help="Set TF_FORCE_GPU_ALLOW_GROWTH=true at kernel start when it is unset, so that TensorFlow "
        "takes GPU memory as it needs it instead of nearly all at once.",
    ).tag(config=True, read_by="both")
    gpu_memory_limit_mib = Integer(
        None,
        allow_none=True,
        min=1,
        help="GPU memory that TensorFlow may take in one kernel, MiB per GPU, so that notebooks can share a card; "
        "None for no cap. Set by one call right after your import of tensorflow, which then looks for GPUs: set "
        "CUDA_VISIBLE_DEVICES before it. Logical devices that you configure count instead.",
    ).tag(config=True, read_by="kernel")
    record_cell_text = Bool(
        True, help="Keep the first characters of each cell, redacted, so that a report can name it."
    ).tag(config=True, read_by="kernel")
    keep_native_stderr = Bool(
        True, help="Keep the last native words: file descriptor 2 is copied and forwarded."
    ).tag(config=True, read_by="kernel")
    explain_gpu_oom = Bool(
        True,
        help="Print three lines under the traceback of a cell that ended because the GPU's memory ran out: what was "
        "asked for, what was free, what to change. The panel tells it either way.",
    ).tag(config=True, read_by="kernel")
    announce_last_death = Bool(
        True,
        help="Print two lines about the last death at the first cell of the next kernel, once, if no open page has shown it.",
    ).tag(config=True, read_by="kernel")
    busy_hertz = Float(
        10.0, min=0.1, max=20.0, help="Samples a second while a kernel is busy."
    ).tag(config=True, read_by="both")
    idle_hertz = Float(
        1.0, min=0.02, max=10.0, help="Samples a second while a kernel is idle."
    ).tag(config=True, read_by="both")
    hang_seconds = Float(
        300.0,
        min=2.0,
        help="Seconds without a step, processor time, input, output or GPU work after which a busy kernel is said to stand still.",
    ).tag(config=True, read_by="server")
    bundle_limit_count = Integer(50, min=1, help="Reports kept at most.").tag(
        config=True, read_by="server"
    )
    bundle_limit_bytes = Integer(
        64 * 1024 * 1024, min=1024 * 1024, help="Bytes of reports kept at most."
    ).tag(config=True, read_by="server")
    bundle_limit_days = Float(14.0, min=0.01, help="Days a report is kept at most.").tag(
        config=True, read_by="server"
    )

    @property
    def active(self) -> bool:
        """True when the guard is to work: neither the environment nor an option switches it off."""
        return bool(self.enabled) and not disabled_by_environment()


def load_settings(parent: Configurable | None = None) -> TfGuard:
    """The options: per-user file first, then the configuration of `parent` (an IPython shell or a server).

    Raises:
        SettingsUnreadable: The per-user file is there and is not the JSON it should be.
    """
    merged = Config(read_user_file())
    if parent is not None:
        merged.merge(parent.config)
    try:
        return TfGuard(config=merged)
    except Exception as bad:  # traitlets raises TraitError, ConfigError or TypeError here
        raise SettingsUnreadable(f"A TfGuard option has a value it cannot have: {bad}") from bad


def read_user_file() -> dict[str, Any]:
    """What the per-user file says, by class; nothing where there is none.

    Raises:
        SettingsUnreadable: It is there and is not the JSON it should be.
    """
    path = user_settings_file()
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as bad:
        raise SettingsUnreadable(f"{path} could not be read: {bad}. Mend or remove it.") from bad
    if not isinstance(content, dict) or not all(isinstance(v, dict) for v in content.values()):
        raise SettingsUnreadable(f'{path} should look like {{"TfGuard": {{"enabled": true}}}}.')
    return content
