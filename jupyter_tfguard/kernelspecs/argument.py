"""The one word that is added to a kernel's command, and how the file becomes again what it was.

``--config=FILE`` makes IPython read one more configuration file beside the user's own; FILE is
``kernel/enabled_config.py`` of the installed tfguard, so an update of tfguard updates the kernel's guard. Where the file
has vanished, IPython goes on without it.

Source: ``BaseIPythonApplication.extra_config_file``, seen with ipykernel 6.19 to 7.4 and IPython 8.39 to 9.18.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from ..errors import KernelSpecUnusable

CONFIG_FILE = Path(__file__).parents[1] / "kernel" / "enabled_config.py"
_OPTION = "--config="
_OURS = CONFIG_FILE.parts[-3:]
_KEY = "tfguard"


def config_file_of(content: dict[str, Any]) -> Path | None:
    """The file of a tfguard that a kernel's command names; None when it names none."""
    for word in _words(content):
        if word.startswith(_OPTION):
            path = Path(word.removeprefix(_OPTION))
            if path.parts[-3:] == _OURS:
                return path
    return None


def marker(content: dict[str, Any]) -> dict[str, Any]:
    """What was noted when the guard was given: ``before``, the file's old text, and ``overrides``, another's folder."""
    found = content.get("metadata", {}).get(_KEY)
    return found if isinstance(found, dict) else {}


def is_outdated(content: dict[str, Any]) -> bool:
    """True when the file that this one stands in for reads otherwise than it did when it was copied."""
    note = marker(content)
    overridden = note.get("overrides")
    if not isinstance(overridden, str):
        return False
    try:
        return (Path(overridden) / "kernel.json").read_bytes().decode("utf-8") != note.get("before")
    except (OSError, ValueError):
        return False


def with_guard(text: str, config_file: Path, *, overrides: Path | None = None) -> str:
    """A ``kernel.json`` that loads the guard; it keeps the old text in its metadata.

    Args:
        text: The file as it is.
        config_file: What its command is to name.
        overrides: Folder of the specification that the new file stands in for; None when it takes its place.

    Raises:
        KernelSpecUnusable: Its command names a configuration file of the user's own.
    """
    content: dict[str, Any] = json.loads(text)
    words = _words(content)
    own = [word for word in words if word == "--config" or word.startswith(_OPTION)]
    if own:
        raise KernelSpecUnusable(
            f"Its command has {own[0]!r} already, and IPython takes one such file only: "
            "install jupyter-tfguard into the kernel's environment instead."
        )
    note: dict[str, Any] = {"before": text}
    if overrides is not None:
        note["overrides"] = str(overrides)
        words = [word.replace("{resource_dir}", str(overrides)) for word in words]
    content["argv"] = [*words, f"{_OPTION}{config_file}"]
    content["metadata"] = {**content.get("metadata", {}), _KEY: note}
    return _dump(content)


def without_guard(text: str) -> str:
    """The ``kernel.json`` as it was, byte for byte; where somebody has edited it since, with these edits."""
    content: dict[str, Any] = json.loads(text)
    note, config_file = marker(content), config_file_of(content)
    before = note.get("before")
    if isinstance(before, str) and config_file is not None:
        overrides = note.get("overrides")
        folder = Path(overrides) if isinstance(overrides, str) else None
        # The note may have been edited too.
        with contextlib.suppress(ValueError, TypeError, AttributeError, KernelSpecUnusable):
            if with_guard(before, config_file, overrides=folder) == text:
                return before
    content["argv"] = [word for word in _words(content) if word != f"{_OPTION}{config_file}"]
    metadata = {k: v for k, v in content.get("metadata", {}).items() if k != _KEY}
    content["metadata"] = metadata
    if not metadata:
        del content["metadata"]
    return _dump(content)


def _words(content: dict[str, Any]) -> list[str]:
    return [str(word) for word in content.get("argv", [])]


def _dump(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
