"""Tables of external facts, each with its source. Rules read such facts from here and contain none themselves."""

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
    ):  # `jupyter tfguard enable` does not install our dependencies in the kernel's environment
        from pip._vendor import tomli as tomllib


def table(name: str) -> dict[str, Any]:
    """The tables of one file in this folder; `name` is without suffix."""
    return toml_file(__name__, name)


@functools.cache
def toml_file(package: str, name: str) -> dict[str, Any]:
    """The contents of a TOML file in a package; `name` is without suffix."""
    text = resources.files(package).joinpath(f"{name}.toml").read_text("utf-8")
    found: dict[str, Any] = tomllib.loads(text)
    return found


def verified(row: dict[str, Any]) -> bool:
    """Whether the fact in a row was checked in its source or measured. An unverified row never decides alone."""
    return bool(row["check"] != "unverified")
