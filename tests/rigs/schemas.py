"""Compares a JSON document with its published schema, strictly: a key that the schema does not name fails too."""

from __future__ import annotations

from functools import cache
from typing import Any

import jsonschema

from jupyter_tfguard.cli.schema import schema_of


def matches(name: str, document: Any) -> Any:
    """The document, once it is valid by the schema `name`."""
    _validator(name).validate(document)
    return document


@cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
    schema = schema_of(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    for shape in (schema, *schema["$defs"].values()):
        if "properties" in shape:
            shape["additionalProperties"] = False
    return jsonschema.Draft202012Validator(schema)
