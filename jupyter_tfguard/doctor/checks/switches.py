"""Is the guard switched on, and if not, by what; and which options are not at their defaults."""

from __future__ import annotations

import json

from ...config import load_settings
from ...errors import SettingsUnreadable
from ...options import options
from ...places import DISABLE_VARIABLE, disabled_by_environment, user_settings_file
from ..check import CheckResult, Status
from ..environment import Environment

NAME = "guard switched on"


def check(machine: Environment) -> CheckResult:
    """The environment variable, then the per-user file."""
    if disabled_by_environment():
        text = f"{DISABLE_VARIABLE} is set in this environment: no kernel is guarded."
        return CheckResult(NAME, Status.WARNING, text, f"unset {DISABLE_VARIABLE}")
    try:
        settings = load_settings()
    except SettingsUnreadable as bad:
        return CheckResult(NAME, Status.PROBLEM, str(bad), f"rm {user_settings_file()}")
    if not settings.enabled:
        text = f"TfGuard.enabled is false in {user_settings_file()}."
        return CheckResult(NAME, Status.WARNING, text, f"rm {user_settings_file()}")
    text = "neither the environment nor the per-user file switches it off"
    changed = [f"{o.name} = {json.dumps(o.value)}" for o in options(settings) if o.is_changed]
    if changed:
        text = f"{text}, which says {', '.join(changed)}"
    return CheckResult(NAME, Status.OK, text)
