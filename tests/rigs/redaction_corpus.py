"""Lines of code, logs and shells with invented secrets, and lines without any, from ``tests/fixtures/redaction/``.

In the files ``⟦…⟧`` marks a secret and ``‹…›`` what names a person or an address; ``\\n`` is a line end. Values are made here from
``{kind:length}``, and prefixes of vendors are joined from ``{a|b}``, so that no scanner of sources takes a file for a leak.
"""

from __future__ import annotations

import random
import re
import string
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "fixtures" / "redaction"
_DIGITS, _LETTERS = string.digits, string.ascii_letters
_ALPHABETS = {
    "b62": _LETTERS + _DIGITS,
    "b64": _LETTERS + _DIGITS + "+/",
    "hex": "0123456789abcdef",
    "dig": _DIGITS,
    "up": string.ascii_uppercase + _DIGITS,
    "low": string.ascii_lowercase + _DIGITS,
    "let": _LETTERS,
}
_SYLLABLES = ("lam", "ter", "gro", "vin", "sol", "pex", "mur", "tal", "nib", "ork", "dun", "fel")
_MADE = re.compile(r"\{(?:(\w+):(\d+)(%3D|=*)|(\w+)|([^{}]*\|[^{}]*))\}")
_MARKED = re.compile("⟦([^⟧]*)⟧|‹([^›]*)›")
_WINDOW = 8


@dataclass(frozen=True)
class Line:
    """One line.

    Attributes:
        kind: The section of the file.
        template: As in the file.
        text: With invented values.
        secrets: What must go before anything is kept.
        personal: What must go before anything is shared.
    """

    kind: str
    template: str
    text: str
    secrets: tuple[str, ...] = ()
    personal: tuple[str, ...] = ()

    def left_in(self, text: str) -> list[str]:
        """Secrets and personal parts of which eight characters, or all of a shorter one, are left in a text."""
        return [value for value in (*self.secrets, *self.personal) if _is_left(value, text)]


def _is_left(value: str, text: str) -> bool:
    size = min(len(value), _WINDOW)
    return any(value[at : at + size] in text for at in range(len(value) - size + 1))


def lines(name: str) -> list[Line]:
    """All lines of a file, always with the same values."""
    found, kind = [], ""
    for number, row in enumerate((FOLDER / name).read_text(encoding="utf-8").splitlines()):
        if row.startswith(";;"):
            kind = row[2:].strip()
        elif row:
            found.append(_line(kind, row, random.Random(f"{name} {number}")))
    return found


def _line(kind: str, template: str, chance: random.Random) -> Line:
    made = _MADE.sub(lambda match: _value(match, chance), template)
    made = re.sub(r"(?<!\\)\\n", "\n", made) if "⟦" in made or "\\n" in made else made
    marked = _MARKED.findall(made)
    return Line(
        kind,
        template,
        _MARKED.sub(lambda match: match[1] or match[2] or "", made),
        tuple(secret for secret, _ in marked if secret),
        tuple(personal for _, personal in marked if personal),
    )


def _value(match: re.Match[str], chance: random.Random) -> str:
    kind, length, end, word, joined = match.groups()
    if joined is not None:
        return joined.replace("|", "")
    if kind in _ALPHABETS:
        return "".join(chance.choices(_ALPHABETS[kind], k=int(length))) + end
    if word == "uuid":
        digits = "".join(chance.choices(_ALPHABETS["hex"], k=32))
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    syllables = "".join(chance.sample(_SYLLABLES, 3))
    number = chance.randrange(10, 9999)
    if word == "wordpw":
        return f"{chance.choice((syllables, syllables.title()))}{number}"
    if word == "pw":
        return f"{syllables.title()}{chance.choice('!#*+?^~')}{number}"
    if word == "pwurl":
        return f"{syllables}%21{number}"
    return match[0]  # braces of the line itself
