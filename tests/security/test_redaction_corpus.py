"""Recall and false removals of redaction on lines of code, logs and shells, most written before the rules."""

from __future__ import annotations

import random
import re
import string

import pytest

from jupyter_tfguard.redact import clean
from jupyter_tfguard.report.anonymous import Anonymous, Identity
from jupyter_tfguard.report.suspicious import suspicious
from tests.bench.redaction import (
    ANN,
    HARMLESS,
    LEAST_RECALL,
    MOST_FALSE,
    SECRETS,
    Score,
    score,
)
from tests.rigs.redaction_corpus import FOLDER, lines

pytestmark = pytest.mark.quick


@pytest.fixture(scope="module")
def scores() -> dict[str, Score]:
    return {name: score(name) for name in (*SECRETS, *HARMLESS)}


def test_the_corpus_is_large_and_every_line_of_it_is_used() -> None:
    secrets = [line for name in SECRETS for line in lines(f"{name}.txt")]
    harmless = [line for name in HARMLESS for line in lines(f"{name}.txt")]
    assert len(secrets) >= 300
    assert len(harmless) >= 300
    assert all(line.secrets or line.personal for line in secrets)
    assert not any(line.secrets or line.personal for line in harmless)
    assert all(line.left_in(line.text) for line in secrets)  # the check sees what was not removed


@pytest.mark.parametrize("name", SECRETS)
def test_of_a_hundred_secrets_of_each_file_at_least_93_are_removed(
    scores: dict[str, Score], name: str
) -> None:
    found = scores[name]
    assert found.changed >= 0.93 * found.total, found.wrong


def test_of_all_secrets_97_of_a_hundred_are_removed(scores: dict[str, Score]) -> None:
    found = [scores[name] for name in SECRETS]
    assert sum(one.changed for one in found) >= LEAST_RECALL * sum(one.total for one in found)


def test_of_a_hundred_harmless_lines_at_most_one_is_changed(scores: dict[str, Score]) -> None:
    found = [scores[name] for name in HARMLESS]
    wrong = [line for one in found for line in one.wrong]
    assert sum(one.changed for one in found) <= MOST_FALSE * sum(one.total for one in found), wrong


def test_few_harmless_lines_are_flagged_and_random_texts_are(scores: dict[str, Score]) -> None:
    found = [scores[name] for name in HARMLESS]
    assert sum(one.flagged for one in found) <= MOST_FALSE * sum(one.total for one in found)
    chance = random.Random(7)
    letters = string.ascii_letters + string.digits
    texts = ["".join(chance.choices(letters, k=24)) for _ in range(200)]
    assert sum(bool(suspicious(f"read {text} now")) for text in texts) >= 190


def test_what_was_redacted_stays_as_it_is() -> None:
    anonymous = Anonymous(Identity(*ANN))
    for line in (line for name in SECRETS for line in lines(f"{name}.txt")):
        once = anonymous.text(clean(line.text))
        assert anonymous.text(clean(once)) == once, line.template


def test_no_line_of_the_files_is_a_key_of_a_vendor() -> None:
    """Scanners of sources must find nothing: prefixes are written in two parts, and values are made when the tests run."""
    from jupyter_tfguard.redact.vendors import KEYS

    key = re.compile("|".join(rf"(?<![A-Za-z0-9_-])(?:{key})" for key in KEYS[:-1]))
    for path in FOLDER.glob("secrets*.txt"):
        assert not key.search(path.read_text(encoding="utf-8")), path
