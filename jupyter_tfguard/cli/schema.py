"""``jupyter tfguard schema [NAME]``: the JSON Schema of a document that other commands and the REST API print.

Each schema is generated from the types that mypy checks the printing code against.
"""

from __future__ import annotations

import argparse
import dataclasses
import enum
import json
import types
import typing
from pathlib import Path
from typing import Annotated, Any, Literal, Union

from ..doctor.check import Checks
from ..kernelspecs.enable import KernelChange
from ..options import Options
from ..report.documents import Crashes, Explanation, SharedReport
from .export import Exported
from .forget import Removal

# Document name: its type and its source. REST paths are below tfguard/api/.
DOCUMENTS: dict[str, tuple[Any, str]] = {
    "change": (KernelChange, "jupyter tfguard enable --json"),
    "checks": (Checks, "jupyter tfguard doctor --json"),
    "crashes": (Crashes, "jupyter tfguard list --json; GET crashes"),
    "export": (Exported, "jupyter tfguard export --json"),
    "explanation": (Explanation, "jupyter tfguard explain --json"),
    "options": (Options, "GET options"),
    "removal": (Removal, "jupyter tfguard forget --json"),
    "report": (
        SharedReport,
        "jupyter tfguard why --json; GET crashes/{id}; report.json of an export",
    ),
}
_PLAIN = {
    str: "string",
    Path: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    types.NoneType: "null",
}
Json = dict[str, Any]


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("schema", help="JSON Schemas of what other commands print")
    parser.add_argument("name", nargs="?", choices=DOCUMENTS, help="print this schema")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print one schema, or the names of all schemas."""
    if chosen.name is not None:
        print(json.dumps(schema_of(chosen.name), indent=2))
    else:
        for name, (_, where) in DOCUMENTS.items():
            print(f"{name:12} {where}")
    return 0


def schema_of(name: str) -> Json:
    """The JSON Schema (draft 2020-12) of one of :data:`DOCUMENTS`."""
    document, where = DOCUMENTS[name]
    definitions: Json = {}
    properties = _object(document, definitions)
    version = properties["properties"]["schema_version"]["const"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:jupyter-tfguard:{name}:{version}",
        "title": name,
        "$comment": where,
        **properties,
        "$defs": definitions,
    }


def _object(shape: Any, definitions: Json) -> Json:
    """Schema of a dataclass or a TypedDict. Other keys are allowed, because a later version may add some."""
    hints = typing.get_type_hints(shape, include_extras=True)
    required = getattr(shape, "__required_keys__", hints)
    return {
        "type": "object",
        "description": str(shape.__doc__).splitlines()[0],
        "properties": {key: _schema(hint, definitions) for key, hint in hints.items()},
        "required": [key for key in hints if key in required],
    }


def _schema(hint: Any, definitions: Json) -> Json:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        base, note = inner
        if isinstance(note, str):
            return _schema(base, definitions) | {"description": note}
        return _schema(note, definitions)
    if origin is Literal:
        return {"const": inner[0]} if len(inner) == 1 else {"enum": list(inner)}
    if origin in (Union, types.UnionType):
        parts = [_schema(part, definitions) for part in inner]
        if all(part.keys() == {"type"} and isinstance(part["type"], str) for part in parts):
            return {"type": [part["type"] for part in parts]}
        return {"anyOf": parts}
    if origin is list:
        return {"type": "array", "items": _schema(inner[0], definitions)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(inner[1], definitions)}
    if dataclasses.is_dataclass(hint) or typing.is_typeddict(hint):
        name = hint.__name__
        if name not in definitions:
            definitions[name] = {}  # for a recursive type
            definitions[name] = _object(hint, definitions)
        return {"$ref": f"#/$defs/{name}"}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    return {"type": _PLAIN[hint]}
