"""Every text passes here before it is kept: keys, tokens, passwords and URLs with credentials become ``[redacted]``.

A secret is known by the name before it, by the form that its maker gives it, or by the place where it stands. Terminal
escapes, control characters and marks that turn the writing direction go too.
"""

from __future__ import annotations

import re

from .secret_forms import PATTERNS, REDACTED, SECRET_NAME

_DEPTH_LIMIT = 12
_ITEM_LIMIT = 5000
_NUMBER_LIMIT = 2**63

# CSI and OSC sequences of terminals; then what is left of control characters, line ends that only Unicode knows,
# bidirectional overrides, invisible tags, and halves of characters that no encoding can write.
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b\n]{0,2000}(?:\x07|\x1b\\)?|.?)"
)
_CONTROLS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u180e\u200e\u200f\u2028-\u202e\u2066-\u2069"
    "\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)


def redact(text: str) -> str:
    """The text with secrets taken out."""
    small = text.lower()
    for pattern, replacement, words in PATTERNS:
        if not words or any(word in small for word in words):
            text = pattern.sub(replacement, text)
    return text


def clean(text: str) -> str:
    """The text as it may be kept and shown: no secrets, no terminal escapes, no control characters but line ends and tabs.

    A carriage return rewrites the line in a terminal (progress bars); it becomes a line end here.
    """
    return redact(printable(text))


def printable(text: str) -> str:
    """The text as a terminal may get it, and any encoding can write it: as :func:`clean`, secrets left in."""
    plain = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", plain)


def one_line(text: str) -> str:
    """As :func:`printable`, without line ends and tabs."""
    return printable(text).replace("\n", " ").replace("\t", " ")


def clean_value(value: object) -> object:
    """`value` with every text in it cleaned; lists and dicts are copied, deep nesting, long lists and huge numbers are cut."""
    return _clean_value(value, _DEPTH_LIMIT)


def _clean_value(value: object, depth: int) -> object:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, int) and abs(value) > _NUMBER_LIMIT:
        return None  # no count, size or time of this world; many functions refuse to work with it
    if isinstance(value, (dict, list, tuple)) and depth == 0:
        return None
    if isinstance(value, dict):
        items = list(value.items())[:_ITEM_LIMIT]
        return {clean(str(key)): _named(str(key), item, depth - 1) for key, item in items}
    if isinstance(value, (list, tuple)):
        return [_clean_value(item, depth - 1) for item in value[:_ITEM_LIMIT]]
    return value


def _named(name: str, value: object, depth: int) -> object:
    """A text under a name that says it is a secret goes, whatever it looks like."""
    if isinstance(value, str) and len(value) >= 3 and SECRET_NAME.search(name):
        return REDACTED
    return _clean_value(value, depth)
