"""Every route from the list of handlers, and the event from its schema."""

from __future__ import annotations

import re
from typing import Any

import yaml

from jupyter_tfguard.server.handlers import HANDLERS
from jupyter_tfguard.server.notify import EVENT_SCHEMA, EVENT_SCHEMA_FILE

from .markdown import code, prose, table

_METHODS = ("get", "post", "put", "patch", "delete")


def routes() -> str:
    """A table of all routes."""
    rows = []
    for pattern, handler in HANDLERS:
        path = re.sub(r"\([^)]*\)", "{id}", pattern).removesuffix("/?").removeprefix("/")
        # ``GET crashes``: the list, newest first.      Method and path have columns of their own.
        what = re.sub(r"^``[^`]+``: ", "", handler.__doc__ or "")
        text = prose(f"{what[:1].upper()}{what[1:]}")
        rows.append((code(path), ", ".join(methods_of(handler)), text))
    return table(("path", "methods", "what it is"), rows)


def methods_of(handler: type) -> list[str]:
    """The HTTP methods that a handler answers."""
    return [method.upper() for method in _METHODS if method in vars(handler)]


def event() -> str:
    """A table of the event that announces a crash."""
    schema: dict[str, Any] = yaml.safe_load(EVENT_SCHEMA_FILE.read_text(encoding="utf-8"))
    rows = []
    for name, field in schema["properties"].items():
        kind = field.get("type") or ", ".join(code(value) for value in field["enum"])
        rows.append((code(name), kind, prose(field["description"])))
    head = f"Schema: `{EVENT_SCHEMA}`\n\n{prose(schema['description'])}\n"
    return f"{head}\n{table(('field', 'type', 'meaning'), rows)}"
