"""How hard README, pages and guides are to read: ``python -m tests.rigs.readability`` prints a table.

The grade is Flesch and Kincaid's: 0.39 words per sentence + 11.8 syllables per word - 15.59 (Kincaid et al. 1975, Research
Branch Report 8-75). Prose counts: no code, tables, headings, pictures, comments or directives. A name in code font counts as a
word of two syllables, because its length says nothing about the sentence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"

_FENCE = re.compile(r"^ *(`{3,}|~{3,})(?P<info>.*)$")
_MARKUP = (
    (re.compile(r"<!--.*?-->|<[^<>]*>", re.DOTALL), " "),
    (re.compile(r"`+[^`]+`+"), "object"),  # two syllables
    (re.compile(r"!\[[^\]]*\]\([^)]*\)"), " "),
    (re.compile(r"\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"\{\w+\}(?=object)"), ""),
    (re.compile(r"https?://\S+"), "object"),
    (re.compile(r"[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}"), ""),
)
_NO_PROSE = re.compile(r"#{1,6} |\||:{3}|\([\w.-]+\)=$|%|---$|\[\^?\w+\]: ")
_ITEM = re.compile(r"(?:[-*+]|\d+[.)]|:) +")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')”]*\s+")
_WORD = re.compile(r"[^\W_](?:[\w'’.,/-]*\w)?")


@dataclass(frozen=True)
class Text:
    """The prose of one file, sentence by sentence."""

    path: Path
    sentences: tuple[str, ...]

    @property
    def word_count(self) -> int:
        """Words of all sentences."""
        return sum(len(words(sentence)) for sentence in self.sentences)

    @property
    def grade(self) -> float:
        """School year that a reader needs."""
        syllable_count = sum(syllables(word) for s in self.sentences for word in words(s))
        per_sentence = self.word_count / len(self.sentences)
        return 0.39 * per_sentence + 11.8 * syllable_count / self.word_count - 15.59

    @property
    def longest(self) -> str:
        """The sentence with most words."""
        return max(self.sentences, key=lambda sentence: len(words(sentence)))


def words(sentence: str) -> list[str]:
    """Its words and numbers."""
    return _WORD.findall(sentence)


def syllables(word: str) -> int:
    """Groups of vowels, without a silent e; at least 1. Two vowels that are spoken apart (`idea`) count once."""
    letters = re.sub(r"[^a-z]", "", word.lower())
    silent = re.search(r"[^aeiouyl]e$|[^aeiouydt]ed$|[^aeiouyscxzgh]es$", letters)
    return max(1, len(re.findall("[aeiouy]+", letters)) - (silent is not None))


def read(path: Path) -> Text:
    """The prose of a page or a notebook."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = [c for c in json.loads(text)["cells"] if c["cell_type"] == "markdown"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells)
    found = []
    for paragraph in paragraphs(text):
        for pattern, instead in _MARKUP:
            paragraph = pattern.sub(instead, paragraph)
        found += [s for s in _SENTENCE_END.split(paragraph.strip()) if len(words(s)) > 1]
    return Text(path, tuple(found))


def paragraphs(text: str) -> Iterator[str]:
    """Runs of lines of prose; each item of a list is one."""
    fence = ""
    lines: list[str] = []
    for line in [*text.splitlines(), ""]:
        mark = _FENCE.match(line)
        bare = line.strip()
        if fence:
            fence = "" if mark and mark[1].startswith(fence) and not mark["info"] else fence
            continue
        item = _ITEM.match(bare)
        is_prose = bool(bare) and not mark and not _NO_PROSE.match(bare)
        if (item or not is_prose) and lines:
            yield " ".join(lines)
            lines = []
        if mark:
            fence = mark[1]
        elif is_prose:
            lines.append(bare[item.end() :] if item else bare)


def pages() -> list[Path]:
    """What people write by hand: pages of the site, guides, and how to contribute."""
    site = ROOT / "notebooks"
    found = [ROOT / "CONTRIBUTING.md", *site.glob("*.md"), *site.glob("*.ipynb")]
    found += [*site.glob("guides/*.md"), *site.glob("guides/*.ipynb")]
    return [path for path in sorted(found) if read(path).sentences]


def main() -> None:
    """Print a line for each file, the hardest first."""
    texts = sorted(map(read, [README, *pages()]), key=lambda text: -text.grade)
    print(f"{'grade':>6} {'words':>6} {'per sentence':>13} {'longest':>8}  file")
    for text in texts:
        per_sentence = text.word_count / len(text.sentences)
        longest = len(words(text.longest))
        name = text.path.relative_to(ROOT)
        print(f"{text.grade:6.1f} {text.word_count:6} {per_sentence:13.1f} {longest:8}  {name}")


if __name__ == "__main__":
    main()
