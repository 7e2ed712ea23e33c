"""Every option of tfguard: one trait each, with help, default and unit.

The same class is configured in three places; later ones take precedence: the per-user file
``jupyter_tfguard_config.json`` in the Jupyter configuration directory (``{"TfGuard": {"enabled": false}}``),
the configuration of the Jupyter server (``c.TfGuard.enabled = False``) for the watcher, and the configuration of
IPython for the kernel side.
"""

from __future__ import annotations

import json
from typing import Any

from traitlets import Bool, Enum, Float, Integer
from traitlets.config import Config, Configurable

from .errors import SettingsUnreadable
from .places import disabled_by_environment, user_settings_file


class TfGuard(Configurable):
    """Options of the kernel's guard and flight recorder. ``read_by``: what to restart after a change."""

    enabled = Bool(
        True,
        help="Record kernels. The environment variable TFGUARD_DISABLE=1 overrides this option.",
    ).tag(config=True, read_by="both")
    set_memory_growth = Bool(
        True,
        help="If TF_FORCE_GPU_ALLOW_GROWTH is unset, set it to true at kernel start. TensorFlow then "
        "allocates GPU memory as needed instead of nearly all at once.",
    ).tag(config=True, read_by="both")
    gpu_memory_limit_mib = Integer(
        None,
        allow_none=True,
        min=1,
        help="Limit of GPU memory for TensorFlow in one kernel, in MiB per GPU, so that notebooks can share a card. "
        "None means no limit. The guard sets the limit right after tensorflow is imported, and TensorFlow then searches for GPUs: set "
        "CUDA_VISIBLE_DEVICES before the import. Logical devices that you configure yourself override this option.",
    ).tag(config=True, read_by="kernel")
    stop = Enum(
        ["off", "soft", "full"],
        "soft",
        help="Stop a cell that is about to fill the host memory, with the exception HostMemoryLimitReached, before the system "
        "ends the kernel. Variables and models survive. 'soft' stops running code, and refuses arrays and objects that "
        "cannot fit; 'full' also refuses TensorFlow's tensors; 'off' stops nothing.",
    ).tag(config=True, read_by="kernel")
    record_cell_text = Bool(
        True,
        help="Record the first characters of each cell, redacted, so that a report can show them.",
    ).tag(config=True, read_by="kernel")
    record_stderr = Bool(
        True,
        help="Record the stderr tail: the last text written to file descriptor 2. The text still reaches its destination.",
    ).tag(config=True, read_by="kernel")
    explain_gpu_oom = Bool(
        True,
        help="Print three lines below the traceback of a cell that ran out of GPU memory: the size of the failed "
        "request, the free memory, and what to change. The panel shows the event in any case.",
    ).tag(config=True, read_by="kernel")
    announce_last_crash = Bool(
        True,
        help="At the first cell of the next kernel, print two lines about the last crash. Printed once, and only if no open page has shown the crash.",
    ).tag(config=True, read_by="kernel")
    busy_hertz = Float(
        10.0, min=0.1, max=20.0, help="Samples per second while a kernel is busy."
    ).tag(config=True, read_by="both")
    idle_hertz = Float(
        1.0, min=0.02, max=10.0, help="Samples per second while a kernel is idle."
    ).tag(config=True, read_by="both")
    hang_seconds = Float(
        300.0,
        min=2.0,
        help="A busy kernel counts as hung after this many seconds without a training step, CPU time, input, output or GPU work.",
    ).tag(config=True, read_by="server")
    report_limit_count = Integer(50, min=1, help="Maximum number of reports to keep.").tag(
        config=True, read_by="server"
    )
    report_limit_bytes = Integer(
        64 * 1024 * 1024, min=1024 * 1024, help="Maximum total size of the reports, in bytes."
    ).tag(config=True, read_by="server")
    report_limit_days = Float(14.0, min=0.01, help="Maximum age of a report, in days.").tag(
        config=True, read_by="server"
    )

    @property
    def active(self) -> bool:
        """True unless the environment or an option switches the guard off."""
        return bool(self.enabled) and not disabled_by_environment()


def load_settings(parent: Configurable | None = None) -> TfGuard:
    """The options: the per-user file, overridden by the configuration of `parent` (an IPython shell or a server).

    Raises:
        SettingsUnreadable: The per-user file exists but is not valid, or an option has an invalid value.
    """
    merged = Config(read_user_file())
    if parent is not None:
        merged.merge(parent.config)
    try:
        return TfGuard(config=merged)
    except Exception as bad:  # traitlets raises TraitError, ConfigError or TypeError here
        raise SettingsUnreadable(f"A TfGuard option has an invalid value: {bad}") from bad


def read_user_file() -> dict[str, Any]:
    """The content of the per-user file, by class; empty if there is no file.

    Raises:
        SettingsUnreadable: The file exists but is not valid.
    """
    path = user_settings_file()
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as bad:
        raise SettingsUnreadable(f"Could not read {path}: {bad}. Fix or delete the file.") from bad
    if not isinstance(content, dict) or not all(isinstance(v, dict) for v in content.values()):
        raise SettingsUnreadable(f'{path} must have the form {{"TfGuard": {{"enabled": true}}}}.')
    return content
