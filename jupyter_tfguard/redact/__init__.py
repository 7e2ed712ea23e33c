"""Removes secrets from text before it is saved: keys, tokens, passwords, URLs with credentials become ``[redacted]``.

A secret is identified by the name before it, by the format of its vendor, or by its position in a command or URL: the table in
``forms.py``. Terminal escapes, control characters and marks that change the writing direction are removed too.
"""

from __future__ import annotations

import re

from .forms import FORMS, named
from .values import is_stand_in

REDACTED = "[redacted]"
_DEPTH_LIMIT = 12
_ITEM_LIMIT = 5000
_NUMBER_LIMIT = 2**63

# CSI and OSC sequences of terminals; then other control characters, Unicode line separators, bidirectional overrides,
# invisible tags, and lone surrogates, which cannot be encoded.
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b\n]{0,2000}(?:\x07|\x1b\\)?|.?)"
)
_CONTROLS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u180e\u200e\u200f\u2028-\u202e\u2066-\u2069"
    "\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)


def redact(text: str) -> str:
    """The text without secrets."""
    small = text.lower()
    for form in FORMS:
        if not form.words or any(word in small for word in form.words):
            text = form.pattern.sub(rf"\g<1>{REDACTED}", text)
    return text


def clean(text: str) -> str:
    """Text that can be saved and shown: without secrets, terminal escapes and control characters.

    Line ends and tabs stay. A carriage return overwrites the line in a terminal (progress bars); it is replaced by a
    line end.
    """
    return redact(printable(text))


def printable(text: str) -> str:
    """Text that is safe for a terminal and for any encoding: like :func:`clean`, but secrets stay in."""
    plain = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", plain)


def one_line(text: str) -> str:
    """Like :func:`printable`, with line ends and tabs replaced by spaces."""
    return printable(text).replace("\n", " ").replace("\t", " ")


def clean_value(value: object) -> object:
    """Copy of `value` with every text cleaned; deep nesting, long lists and huge numbers are cut off."""
    return _clean_value(value, _DEPTH_LIMIT)


def _clean_value(value: object, depth: int) -> object:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, int) and abs(value) > _NUMBER_LIMIT:
        return None  # not a plausible count, size or time, and many functions fail with it
    if isinstance(value, (dict, list, tuple)) and depth == 0:
        return None
    if isinstance(value, dict):
        items = list(value.items())[:_ITEM_LIMIT]
        return {clean(str(key)): _named(str(key), item, depth - 1) for key, item in items}
    if isinstance(value, (list, tuple)):
        return [_clean_value(item, depth - 1) for item in value[:_ITEM_LIMIT]]
    return value


def _named(name: str, value: object, depth: int) -> object:
    """Clean a value; a text is redacted completely if its name indicates a secret."""
    if isinstance(value, str) and len(value) >= 3 and named().search(name):
        return value if is_stand_in(value) else REDACTED
    return _clean_value(value, depth)
