"""What may be a secret or a name although no form fits: an export shows it, and the user decides.

A text is flagged if it is like a password, or long and random: letters and digits in turn, as in keys, not as in names of models and files.
Hashes of commits and files are not flagged where the text says that they are hashes. Parts of a path that may be names
of people or patients are flagged too.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

RANDOM = "long and random"
PASSWORD = "may be a password"
NAME = "may name a person"

_TOKEN = re.compile(
    r"(?<![A-Za-z0-9_+/=-])[A-Za-z0-9_+=-]{16,500}(?:/[A-Za-z0-9_+=-]{8,500}){0,20}"
    # Base64, with marks between short pieces.
    r"|(?<![A-Za-z0-9_+/=.~-])(?=[A-Za-z0-9/]{0,60}[+]|[A-Za-z0-9+/]{30,500}=)[A-Za-z0-9][A-Za-z0-9+/]{30,500}={0,2}"
)
# trace_id=4bf92f35...: the name belongs to what is before the value
_NAMED = re.compile(r"[A-Za-z_]\w{0,30}=(?=[^=])")
_PIECE = re.compile(r"[A-Za-z0-9]+")
_UUID = re.compile(r"(?i:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_HASH = re.compile(r"[0-9a-f]{7,64}|[0-9A-F]{7,64}")
_SAID_TO_BE_A_HASH = re.compile(
    r"(?i:commit|checkout|head|hash|hard|sha-?\d{0,3}|md5|digest|revision|checksum|blob|tree|etag|build[ _-]?id|git|@|checkpoint"
    r"|boot|gpu|mig|kernel|run|trace|span|request|cell|uuid|restoring connection|websocket closed)[^\n]{0,24}$"
    # kernel:session in Jupyter's log
    r"|[0-9a-f]{4}-[0-9a-f]{12}:$"
)
_MACHINE_CODE = re.compile(
    r"0x[0-9a-fA-F]+|_*Z[A-Z]{0,2}\d\w*|_ZN?[\w+]+|[A-Z0-9_]+_[A-Z_]+|(?i:b?float)\d\w*"
)
_WORD = re.compile(r"[a-z]{5,}|[A-Z]{7,}")
_CAMEL = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z][a-z]{2}")
_SHORTEST = 16
# Fractions of the length. Random texts of letters and digits have 0.4 changes on average and hardly any words.
_LEAST_CHANGES, _MANY_CHANGES, _LEAST_CHANGES_OF_LETTERS, _MOST_WORDS = 0.22, 0.3, 0.15, 0.5
_MOST_CAMELS = 0.6
# Small and capital letters, digits and a mark in one word.
_PASSWORD = re.compile(
    r"(?<![\w!#?^~*$%@/.+-])(?=[A-Za-z!?^~*$%@#]{0,40}[0-9])(?=[^\sa-z]{0,40}[a-z])(?=[^\sA-Z]{0,40}[A-Z])(?=\w{1,40}[!#?^~*$@])"
    r"[A-Za-z0-9!#?^~*$@]{8,40}(?![\w!#?^~*$@/.(-])"
)
# /data/patients/Mueller_Anna/x   /study/subject_0123_meier
_PATIENT = re.compile(
    r"(?<=[/\\])(?i:patient|patients|proband|klient|client|customer|kunde|subject|mrn|case)s?[_-]?[A-Za-z][\w-]{1,60}(?=[/\\.\s'\"]|\Z)"
    r"|(?<=[/\\])(?i:patients|probanden|clients|customers|kunden|subjects)[/\\][\w-]{2,60}"
    r"|(?<=[/\\])[A-Z][a-z]{2,20}(?:_| |-|, )[A-Z][a-z]{2,20}(?=[_/\\.\s'\"-]|\Z)"
)


@dataclass(frozen=True)
class Flag:
    """One suspicious part of a text, and why."""

    text: str
    why: str


def suspicious(text: str) -> list[Flag]:
    """The suspicious parts of a text, each once, in their order."""
    found = [Flag(match[0], RANDOM) for match in _TOKEN.finditer(text) if _is_random(match)]
    found += [Flag(match[0], PASSWORD) for match in _PASSWORD.finditer(text)]
    found += [Flag(match[0], NAME) for match in _PATIENT.finditer(text)]
    return list(dict.fromkeys(found))


def _is_random(match: re.Match[str]) -> bool:
    token = match[0]
    if _MACHINE_CODE.fullmatch(token):
        return False
    name = _NAMED.match(token)
    start = match.start() + (name.end() if name else 0)
    before, token = match.string[max(0, start - 40) : start], match.string[start : match.end()]
    is_hash = _HASH.fullmatch(token) or _UUID.fullmatch(token)
    if is_hash:
        return len(token) >= 32 and not _SAID_TO_BE_A_HASH.search(before)
    pieces = _PIECE.findall(token)
    whole = ["".join(pieces)] if re.search(r"[+/=]", token) else []
    return any(_is_mixed(piece) for piece in (*pieces, *whole))


def _is_mixed(piece: str) -> bool:
    if len(piece) < _SHORTEST or piece.isdigit():
        return False
    words = sum(map(len, _WORD.findall(piece))) / len(piece)
    camels = sum(map(len, _CAMEL.findall(piece))) / len(piece)
    changes = _changes(piece) / len(piece)
    digits = sum(map(str.isdigit, piece))
    if camels >= _MOST_CAMELS and digits <= 2:  # TensorArrayReadV3
        return False
    if digits == 0:
        return len(piece) >= 20 and changes >= _LEAST_CHANGES_OF_LETTERS
    return changes >= (_LEAST_CHANGES if words <= _MOST_WORDS else _MANY_CHANGES)


def _changes(piece: str) -> int:
    """How often digits, small and capital letters follow each other; a capital before small letters is no change."""
    kinds = ["d" if c.isdigit() else "u" if c.isupper() else "l" for c in piece]
    pairs = itertools.pairwise(kinds)
    return sum(a != b and (a, b) != ("u", "l") for a, b in pairs)
