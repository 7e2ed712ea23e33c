"""Is the startup file in place that loads the guard into every kernel of this environment."""

from __future__ import annotations

import sys
from pathlib import Path

from ..check import CheckResult, Status

NAME = "guard loaded into kernels"
_REINSTALL = f"{sys.executable} -m pip install --force-reinstall --no-deps jupyter-tfguard"


def check() -> CheckResult:
    """The file lies in the environment's IPython startup directory; ``pip install --user`` puts it elsewhere."""
    path = Path(sys.prefix) / "etc" / "ipython" / "startup" / "00-tfguard.py"
    if path.is_file():
        return CheckResult(NAME, Status.OK, f"kernels of {sys.prefix} load it at their start")
    text = (
        f"{path} is missing, so kernels of {sys.prefix} start without the guard. "
        "`%load_ext tfguard` in a notebook loads it for one kernel."
    )
    return CheckResult(NAME, Status.PROBLEM, text, _REINSTALL)
