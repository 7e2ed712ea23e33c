"""Rules with only a title and advice, for causes that one line of text names: the rows of ``table.toml``.

Some of these causes can also be detected without such a line, see :mod:`~..table_words`.
"""

from __future__ import annotations

import re
from typing import Any

from ..catalog import toml_file
from ..ending import text_evidence
from ..evidence import Evidence
from ..finding import Advice, Finding
from ..rule import rule
from ..table_texts import WITHOUT_TEXT, WORDS, Words

_MESSAGE_LIMIT = 300


def _finding(row: dict[str, Any], seen: Evidence) -> Finding | None:
    """The finding of one row; None if neither a text nor the end itself shows its cause."""
    cause = row["cause"]
    text = text_evidence(seen, cause)
    if text is None and cause in WITHOUT_TEXT:
        text = WITHOUT_TEXT[cause](seen)
    if text is None:
        return None
    words = {"who": seen.who, "message": text.message[:_MESSAGE_LIMIT]}
    words |= {name: found.rstrip(".") for name, found in text.details.items() if found}
    if cause in WORDS:
        words |= WORDS[cause](seen, text)
    return text.finding(
        title=_filled(row["title"], words),
        short_title=_filled(row["short_title"], words),
        advice=_advice(row["advice"], text.message, words),
    )


def _advice(rows: list[dict[str, Any]], message: str, words: Words) -> tuple[Advice, ...]:
    found, taken = [], False
    for row in rows:
        if taken and row.get("otherwise"):
            continue
        matches = re.search(row.get("if", ""), message, re.DOTALL) is not None
        taken = matches and row.get("known", "who") in words
        if taken:
            text, code = _filled(row.get("text", ""), words), row.get("code")
            title = _filled(row["title"], words)
            found.append(Advice(title, text, code and code.format_map(words)))
    return tuple(found)


def _filled(texts: str | list[str], words: Words) -> str:
    """The text with its words filled in; of several texts, the first whose words are all known."""
    for text in [texts] if isinstance(texts, str) else texts:
        try:
            return text.format_map(words)
        except KeyError:
            continue
    return ""


def _declare(row: dict[str, Any]) -> None:
    needs, outranks = row.get("needs", ["kernel.recording"]), row.get("outranks", [])

    def judge(seen: Evidence) -> Finding | None:
        return _finding(row, seen)

    judge.__doc__ = f"{row['means']}\n\n{row['recognised']}"
    rule(row["cause"], needs=tuple(needs), outranks=tuple(outranks))(judge)


for _row in toml_file(__package__, "table")["rule"]:
    _declare(_row)
