"""Every option with its value, the source of the value, and how to change it, for the panel and ``doctor``.

The values are those of one process. A kernel reads the same file, and its IPython configuration, at its start.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any, Literal, TypedDict

from traitlets.config import Config

from .config import TfGuard, read_user_file
from .errors import SettingsUnreadable
from .places import (
    DISABLE_VARIABLE,
    GROWTH_MARKER_VARIABLE,
    GROWTH_VARIABLE,
    disabled_by_environment,
    user_settings_file,
)

_SECTION = TfGuard.__name__
_EXAMPLE_GPU_LIMIT_MIB = 8192


class Origin(Enum):
    """Source of a value."""

    DEFAULT = "default"
    USER_FILE = "user_file"
    SERVER = "server"
    ENVIRONMENT = "environment"


@dataclass(frozen=True, slots=True)
class Option:
    """One option with its current value.

    Attributes:
        value, default: Plain JSON values, in the unit that the name ends in.
        help: Description of the option.
        origin: Source of the value.
        where: The file or variable that sets the value; None for a default.
        note: A remark: a variable that takes precedence, a file that was changed since. None if there is none.
        change: What to write where, and what to restart, in a sentence.
        code: The text to write there.
    """

    name: str
    value: bool | int | float | str | None
    default: bool | int | float | str | None
    help: str
    origin: Origin
    where: str | None
    note: str | None
    change: str
    code: str

    @property
    def is_changed(self) -> bool:
        """True if the value differs from the default."""
        return self.value != self.default


class Options(TypedDict):
    """Every option of the guard with its value in this server."""

    schema_version: Literal[1]
    options: list[Option]


def options(settings: TfGuard, server_config: Config | None = None) -> list[Option]:
    """All options, in the order of ``config.py``.

    Args:
        settings: The options that this process read at its start.
        server_config: The configuration that was merged over the user's file; None if there was none.
    """
    try:
        in_file = read_user_file()
        unreadable = None
    except SettingsUnreadable as bad:
        in_file, unreadable = {}, str(bad)
    by_server = {} if server_config is None else server_config.get(_SECTION, {})
    traits = TfGuard.class_own_traits(config=True)
    return [
        _option(name, traits[name], getattr(settings, name), name in by_server, in_file, unreadable)
        for name in vars(TfGuard)
        if name in traits
    ]


def options_json(settings: TfGuard, server_config: Config | None = None) -> list[dict[str, Any]]:
    """:func:`options` as JSON values."""
    return [asdict(o) | {"origin": o.origin.value} for o in options(settings, server_config)]


def _option(
    name: str,
    trait: Any,
    value: Any,
    by_server: bool,
    in_file: dict[str, Any],
    unreadable: str | None,
) -> Option:
    default = trait.default_value
    filed = in_file.get(_SECTION, {})
    variable = _overriding_variable(name)
    note = unreadable
    if variable is not None:
        origin = Origin.ENVIRONMENT
        note = f"{variable}={os.environ[variable]} is set and overrides this option."
    elif by_server:
        origin = Origin.SERVER
    else:
        origin = Origin.DEFAULT if value == default and name not in filed else Origin.USER_FILE
        now = filed.get(name, default)
        if now != value and unreadable is None:
            note = f"{user_settings_file()} now says {json.dumps(now)}, which takes effect after a restart."
    return Option(
        name=name,
        value=value,
        default=default,
        help=str(trait.help),
        origin=origin,
        where=_where(origin, variable),
        note=note,
        change=_change(origin, variable, str(trait.metadata["read_by"])),
        code=_code(name, value, origin, variable, in_file),
    )


def _overriding_variable(name: str) -> str | None:
    if name == "enabled" and disabled_by_environment():
        return DISABLE_VARIABLE
    # A value set by the guard itself is not a choice of the user.
    is_users = GROWTH_VARIABLE in os.environ and GROWTH_MARKER_VARIABLE not in os.environ
    return GROWTH_VARIABLE if name == "set_memory_growth" and is_users else None


def _where(origin: Origin, variable: str | None) -> str | None:
    if origin is Origin.USER_FILE:
        return str(user_settings_file())
    if origin is Origin.SERVER:
        return "the configuration or command line of the Jupyter server"
    return variable


_RESTARTS = {
    "server": "Then restart Jupyter.",
    "kernel": "Then restart the kernel.",
    "both": "Then restart Jupyter and its kernels.",
}


def _change(origin: Origin, variable: str | None, read_by: str) -> str:
    if variable is not None:
        return f"Remove {variable} from the environment in which you start Jupyter. {_RESTARTS['both']}"
    if origin is Origin.SERVER:
        return f"Write this into the configuration of the Jupyter server (jupyter_server_config.py). {_RESTARTS[read_by]}"
    return f"Write this into {user_settings_file()}. {_RESTARTS[read_by]}"


def _code(
    name: str, value: Any, origin: Origin, variable: str | None, in_file: dict[str, Any]
) -> str:
    """The text to write; for the JSON file its complete content, because a line cannot simply be appended to JSON."""
    if variable is not None:
        return f"unset {variable}"
    if isinstance(value, bool):
        value = not value
    elif value is None:
        value = _EXAMPLE_GPU_LIMIT_MIB
    elif isinstance(value, str):
        value = "soft" if value == "off" else "off"
    if origin is Origin.SERVER:
        return f"c.{_SECTION}.{name} = {value!r}"
    merged = in_file | {_SECTION: in_file.get(_SECTION, {}) | {name: value}}
    return json.dumps(merged, indent=2)
