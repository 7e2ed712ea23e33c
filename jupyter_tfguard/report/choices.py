"""What the user leaves out of an export, and the words to replace in it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..errors import TfGuardError

CELL_TEXT, STDERR, PATH, FUNCTIONS = PARTS = ("cell-text", "stderr", "path", "functions")
LEFT_OUT = "[left out]"
REPLACED = "[replaced]"
_WORDS_LIMIT = 100
_SHORTEST, _LONGEST = 2, 500


@dataclass(frozen=True)
class Choices:
    """The choices for one export.

    Attributes:
        without: Which of :data:`PARTS` are left out.
        replace: Words that are replaced in all files, whatever their case.
    """

    without: frozenset[str] = frozenset()
    replace: tuple[str, ...] = ()

    @classmethod
    def of(cls, without: Iterable[object] = (), replace: Iterable[object] = ()) -> Choices:
        """The choices, checked.

        Raises:
            TfGuardError: A part is not known, a word is too short or too long, or there are too many words.
        """
        parts, words = tuple(without), tuple(replace)
        for part in parts:
            if part not in PARTS:
                raise TfGuardError(f"Cannot leave out {part!r}. The parts are: {', '.join(PARTS)}.")
        if len(words) > _WORDS_LIMIT:
            raise TfGuardError(f"At most {_WORDS_LIMIT} words can be replaced, not {len(words)}.")
        for word in words:
            if not isinstance(word, str) or not _SHORTEST <= len(word.strip()) <= _LONGEST:
                raise TfGuardError(
                    f"A word to replace has {_SHORTEST} to {_LONGEST} characters, unlike {str(word)[:40]!r}."
                )
        return cls(frozenset(map(str, parts)), tuple(str(word).strip() for word in words))

    @classmethod
    def decode(cls, value: Any) -> Choices:
        """The choices in the JSON of a request: ``{"without": [...], "replace": [...]}``, both optional.

        Raises:
            TfGuardError: It has another form.
        """
        if not isinstance(value, dict):
            raise TfGuardError(
                "The choices are a JSON object with the lists `without` and `replace`."
            )
        lists = [value.get(name, []) for name in ("without", "replace")]
        if not all(isinstance(one, list) for one in lists):
            raise TfGuardError("`without` and `replace` are lists of texts.")
        return cls.of(*lists)

    @property
    def pattern(self) -> re.Pattern[str] | None:
        """The words to replace; None if there are none."""
        longest_first = sorted(self.replace, key=len, reverse=True)
        return re.compile("|".join(map(re.escape, longest_first)), re.I) if longest_first else None
