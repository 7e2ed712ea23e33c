"""README, pages and guides can be read at a school grade of 10 or lower; the README has no long sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rigs.readability import README, ROOT, pages, paragraphs, read, syllables, words

pytestmark = pytest.mark.quick

HIGHEST_GRADE = 10.0
LONGEST_SENTENCE_WORDS = 30


@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_is_at_grade_10_or_lower(path: Path) -> None:
    text = read(path)
    assert text.grade <= HIGHEST_GRADE, f"{text.grade:.1f}; the longest: {text.longest}"


def test_the_grade_is_that_of_a_sentence_with_a_known_one(tmp_path: Path) -> None:
    """13 words with 24 syllables: 0.39 * 13 + 11.8 * 24 / 13 - 15.59."""
    page = tmp_path / "page.md"
    page.write_text(
        "# Animals\n\nThe Australian platypus is seemingly a hybrid of a mammal and reptilian creature.\n"
    )
    assert read(page).grade == pytest.approx(11.26, abs=0.01)


@pytest.mark.parametrize(
    ("word", "count"),
    [
        ("table", 2),
        ("killed", 1),
        ("needed", 2),
        ("files", 1),
        ("changes", 2),
        ("memory", 3),
        ("e", 1),
    ],
)
def test_syllables(word: str, count: int) -> None:
    assert syllables(word) == count


def test_code_tables_headings_and_directives_are_no_prose() -> None:
    text = "# Head\n\nOne\nline.\n\n```bash\nrun it\n```\n\n| a | b |\n\n- first item\n- second `x`\n\n:::{note}\nKept.\n:::\n"
    assert list(paragraphs(text)) == ["One line.", "first item", "second `x`", "Kept."]
    assert words("It is 4.2 GiB.") == ["It", "is", "4.2", "GiB"]


def test_the_readme_is_at_grade_10_or_lower() -> None:
    text = read(README)
    assert text.grade <= HIGHEST_GRADE, f"{text.grade:.1f}; the longest: {text.longest}"


def test_no_sentence_of_the_readme_has_over_30_words() -> None:
    assert [s for s in read(README).sentences if len(words(s)) > LONGEST_SENTENCE_WORDS] == []
