"""Facts from outside, each with where it was read: what a rule may know, and no rule carries itself."""

from __future__ import annotations

import functools
import sys
from importlib import resources
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    try:
        import tomli as tomllib
    except (
        ImportError
    ):  # in a kernel that `jupyter tfguard enable` gave the guard, nothing was installed for us
        from pip._vendor import tomli as tomllib


@functools.cache
def table(name: str) -> dict[str, Any]:
    """The tables of one file of this folder, by its name without suffix."""
    return toml_file(__name__, name)


def toml_file(package: str, name: str) -> dict[str, Any]:
    """What a TOML file beside the code holds, by its name without suffix."""
    text = resources.files(package).joinpath(f"{name}.toml").read_text("utf-8")
    found: dict[str, Any] = tomllib.loads(text)
    return found


def verified(row: dict[str, Any]) -> bool:
    """Whether somebody read or measured what a row says. A row that is not verified never decides alone."""
    return bool(row["check"] != "unverified")
