"""The command of a kernel: how it is started, and the option that loads the guard.

``--config=FILE`` makes IPython read another configuration file in addition to the user's own; FILE is
``kernel/enabled_config.py`` of the installed tfguard, so an update of tfguard updates the kernel's guard. If the file
is missing, IPython starts without it. ``kernel.json`` is edited as text, so that the rest stays byte-identical.

Source: ``BaseIPythonApplication.extra_config_file``, checked with ipykernel 6.19 to 7.4 and IPython 8.39 to 9.18.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from ..errors import KernelSpecUnusable

CONFIG_FILE = Path(__file__).parents[1] / "kernel" / "enabled_config.py"
STARTUP_FILE = Path("etc", "ipython", "startup", "00-tfguard.py")
_MODULES = ("ipykernel_launcher", "ipykernel")
# Names that Jupyter replaces by its own interpreter. Source: KernelManager.format_kernel_cmd
_OWN_PYTHON = (
    "python",
    f"python{sys.version_info[0]}",
    f"python{sys.version_info[0]}.{sys.version_info[1]}",
)
_OPTION = "--config="
_OURS = CONFIG_FILE.parts[-3:]
# "argv": ["python", "-m", "ipykernel_launcher"    up to the last word
_ARGV = re.compile(r'"argv"\s*:\s*\[\s*(?:"(?:[^"\\]|\\.)*"\s*,\s*)*"(?:[^"\\]|\\.)*"')


def python_command(argv: Sequence[str]) -> list[str] | None:
    """The interpreter part of a command, including wrappers; None if no ``-m ipykernel`` follows.

    ``conda run -n tf python -m ipykernel_launcher -f {connection_file}`` returns the first five words.
    """
    for place in range(1, len(argv) - 1):
        if argv[place] == "-m" and argv[place + 1] in _MODULES:
            return [sys.executable if argv[0] in _OWN_PYTHON else argv[0], *argv[1:place]]
    return None


def is_wrapped(argv: Sequence[str]) -> bool:
    """True if another program starts the interpreter."""
    return any(not word.startswith("-") for word in (python_command(argv) or [])[1:])


def loads_own_guard(argv: Sequence[str]) -> bool:
    """True if the kernel's environment has a tfguard that loads itself; False for a wrapped command."""
    command = python_command(argv)
    if command is None or is_wrapped(argv):
        return False
    return (Path(command[0]).parent.parent / STARTUP_FILE).is_file()


def enable_command(name: str, argv: Sequence[str]) -> str | None:
    """The command that enables the guard for a kernel; None if it would be rejected or change nothing."""
    if python_command(argv) is None or has_own_config(argv) or loads_own_guard(argv):
        return None
    return f"jupyter tfguard enable --kernel {shlex.quote(name)}"


def config_file_of(argv: Sequence[str]) -> Path | None:
    """The tfguard configuration file in a kernel's command; None if there is none."""
    paths = (Path(word.removeprefix(_OPTION)) for word in argv if word.startswith(_OPTION))
    return next((path for path in paths if path.parts[-3:] == _OURS), None)


def has_own_config(argv: Sequence[str]) -> bool:
    """Whether a kernel's command has the user's own --config option. IPython accepts only one."""
    named = any(word == "--config" or word.startswith(_OPTION) for word in argv)
    return named and config_file_of(argv) is None


def with_guard(text: str, config_file: Path) -> str:
    """The text of ``kernel.json`` with a command that loads the guard.

    Raises:
        KernelSpecUnusable: Its command has its own --config option, or is not found in the text.
    """
    argv = json.loads(text).get("argv")
    if has_own_config(argv):
        raise KernelSpecUnusable(
            "Its command already has a --config option, and IPython accepts only one: "
            "install jupyter-tfguard into the kernel's environment instead."
        )
    word = f"{_OPTION}{config_file}"
    place = _ARGV.search(text)
    if place is not None:
        after = f"{text[: place.end()]}, {json.dumps(word)}{text[place.end() :]}"
        if json.loads(after).get("argv") == [*argv, word]:
            return after
    raise KernelSpecUnusable("The command in its kernel.json cannot be extended.")


def without_guard(text: str) -> str:
    """The text of ``kernel.json`` without that option. Later edits by others stay."""
    for word in json.loads(text).get("argv", []):
        if config_file_of([word]) is not None:
            for encoded in {json.dumps(word), json.dumps(word, ensure_ascii=False)}:
                text = re.sub(r",\s*" + re.escape(encoded), "", text)
    return text
