"""Recall and false removals of redaction on lines of code, logs and shells, most written before the rules."""

from __future__ import annotations

import pytest

from jupyter_tfguard.redact import clean
from jupyter_tfguard.report.anonymous import Anonymous, Identity
from tests.benchmarks.redaction import ANN, LEAST_RECALL, MOST_FALSE, Score, score
from tests.rigs.redaction_corpus import FOLDER, lines

pytestmark = pytest.mark.quick


@pytest.fixture(scope="module")
def scores() -> dict[str, Score]:
    return {
        name: score(name) for name in ("secrets", "secrets_aside", "harmless", "harmless_aside")
    }


def test_the_corpus_is_large_and_every_line_of_it_is_used() -> None:
    secrets = [*lines("secrets.txt"), *lines("secrets_aside.txt")]
    harmless = [*lines("harmless.txt"), *lines("harmless_aside.txt")]
    assert len(secrets) >= 300
    assert len(harmless) >= 300
    assert all(line.secrets or line.personal for line in secrets)
    assert not any(line.secrets or line.personal for line in harmless)
    assert all(line.left_in(line.text) for line in secrets)  # the check sees what was not removed


@pytest.mark.parametrize("name", ["secrets", "secrets_aside"])
def test_of_a_hundred_secrets_at_least_97_are_removed(scores: dict[str, Score], name: str) -> None:
    found = scores[name]
    assert found.changed >= LEAST_RECALL * found.total, found.wrong


@pytest.mark.parametrize("name", ["harmless", "harmless_aside"])
def test_of_a_hundred_harmless_lines_at_most_one_is_changed(
    scores: dict[str, Score], name: str
) -> None:
    found = scores[name]
    assert found.changed <= MOST_FALSE * found.total, found.wrong


def test_what_was_redacted_stays_as_it_is() -> None:
    anonymous = Anonymous(Identity(*ANN))
    for line in (*lines("secrets.txt"), *lines("secrets_aside.txt")):
        once = anonymous.text(clean(line.text))
        assert anonymous.text(clean(once)) == once, line.template


def test_no_line_of_the_files_is_a_key_of_a_vendor() -> None:
    """Scanners of sources must find nothing: prefixes are written in two parts, and values are made when the tests run."""
    import re

    from jupyter_tfguard.redact.vendors import KEYS

    key = re.compile("|".join(rf"(?<![A-Za-z0-9_-])(?:{key})" for key in KEYS[:-1]))
    for path in FOLDER.glob("secrets*.txt"):
        assert not key.search(path.read_text(encoding="utf-8")), path
