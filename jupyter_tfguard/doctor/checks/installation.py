"""Checks that all parts of tfguard are installed and enabled (kernels, server, JupyterLab), and recent errors."""

from __future__ import annotations

import json
from pathlib import Path

from jupyter_core.paths import jupyter_config_path, jupyter_path

from ..._version import __version__
from ...collectors.packages import find_package
from ...config import load_settings
from ...errors import SettingsUnreadable
from ...kernelspecs.command import STARTUP_FILE
from ...options import options
from ...places import DISABLE_VARIABLE, disabled_by_environment, user_settings_file
from ...shield import read_problems
from ...units import local_time
from ..check import CheckResult, Status
from ..environment import Environment

KERNELS = "guard loaded into kernels"
SWITCH = "guard enabled"
SERVER = "server extension"
PANEL = "JupyterLab panel"
FAILURES = "errors of tfguard itself"


def check(machine: Environment) -> list[CheckResult]:
    """Server extension and panel are checked only in the environment in which tfguard is installed."""
    if find_package("jupyter-tfguard", machine.import_folders) is None:
        text = f"{machine.prefix} has no tfguard of its own: its kernels load this one through `jupyter tfguard enable`"
        return [CheckResult(KERNELS, Status.OK, text), _switch(), _failures()]
    return [_kernels(machine), _switch(), _server(machine), _panel(machine), _failures()]


def _kernels(machine: Environment) -> CheckResult:
    path = machine.prefix / STARTUP_FILE
    if path.is_file():
        return CheckResult(KERNELS, Status.OK, f"kernels of {machine.prefix} load it at start")
    text = (
        f"{path} is missing, so kernels of {machine.prefix} start without the guard. "
        "`%load_ext tfguard` in a notebook loads it for one kernel."
    )
    return CheckResult(KERNELS, Status.PROBLEM, text, _reinstall(machine))


def _switch() -> CheckResult:
    """The environment variable, then the per-user file, then the options that differ from their defaults."""
    if disabled_by_environment():
        text = f"{DISABLE_VARIABLE} is set in this environment: no kernel loads the guard."
        return CheckResult(SWITCH, Status.WARNING, text, f"unset {DISABLE_VARIABLE}")
    file = user_settings_file()
    try:
        settings = load_settings()
    except SettingsUnreadable as bad:
        return CheckResult(SWITCH, Status.PROBLEM, str(bad), f"rm {file}")
    if not settings.enabled:
        text = f"TfGuard.enabled is false in {file}."
        return CheckResult(SWITCH, Status.WARNING, text, f"rm {file}")
    changed = [f"{o.name} = {json.dumps(o.value)}" for o in options(settings) if o.is_changed]
    text = (
        f"{file} sets {', '.join(changed)}" if changed else "all options have their default values"
    )
    return CheckResult(SWITCH, Status.OK, text)


def _server(machine: Environment) -> CheckResult:
    """The configuration folders of Jupyter Server, highest priority first. The first file that names us decides."""
    fix = f"{machine.python} -m jupyter server extension enable jupyter_tfguard"
    for folder in jupyter_config_path():
        for path in sorted(Path(folder).glob("jupyter_server_config.d/*.json")):
            enabled = _is_enabled_by(path)
            if enabled:
                return CheckResult(SERVER, Status.OK, f"enabled by {path}")
            if enabled is not None:
                return CheckResult(SERVER, Status.PROBLEM, f"disabled by {path}", fix)
    return CheckResult(SERVER, Status.PROBLEM, "no configuration file enables it", fix)


def _is_enabled_by(path: Path) -> bool | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        switch = found["ServerApp"]["jpserver_extensions"].get("jupyter_tfguard")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return None if switch is None else bool(switch)


def _panel(machine: Environment) -> CheckResult:
    """The prebuilt extension in JupyterLab's extension folders."""
    for folder in jupyter_path("labextensions"):
        package = Path(folder) / "jupyter-tfguard" / "package.json"
        if package.is_file():
            version = json.loads(package.read_text(encoding="utf-8"))["version"]
            if version == __version__:
                return CheckResult(PANEL, Status.OK, f"installed in {package.parent}")
            text = f"{package} has version {version}, but the server extension has version {__version__}"
            return CheckResult(PANEL, Status.WARNING, text, _reinstall(machine))
    text = "not found in any folder from which JupyterLab loads extensions"
    return CheckResult(PANEL, Status.PROBLEM, text, _reinstall(machine))


def _failures() -> CheckResult:
    """The newest error of the last seven days."""
    problems = read_problems()
    if not problems:
        return CheckResult(FAILURES, Status.OK, "none in the last seven days")
    newest = problems[-1]
    when = local_time(float(newest["time"]))
    more = f" ({len(problems)} in all)" if len(problems) > 1 else ""
    text = f"{when}, {newest.get('place')}: {newest.get('what')}{more}"
    return CheckResult(FAILURES, Status.WARNING, text, newest.get("fix"))


def _reinstall(machine: Environment) -> str:
    return machine.pip("install", "--force-reinstall", "--no-deps", "jupyter-tfguard")
