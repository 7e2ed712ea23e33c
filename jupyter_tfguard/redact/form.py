"""The shape of a row in the tables of forms."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Form:
    """One form.

    Attributes:
        words: The form is tried only if a text contains one of these, in lower case; none: always.
        before: Pattern of the text before the secret, which stays.
        secret: Pattern of the secret.
    """

    words: tuple[str, ...]
    before: str
    secret: str

    @functools.cached_property
    def pattern(self) -> re.Pattern[str]:
        """The secret after the text before it, which is group 1. Compiled at first use: that takes a millisecond."""
        return re.compile(f"({self.before})(?:{self.secret})")
