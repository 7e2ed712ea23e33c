"""Secrets go, ordinary code stays, terminals' escapes never come back."""

from __future__ import annotations

import time

import pytest

from jupyter_tfguard.record.redact import REDACTED, clean, clean_value, redact

pytestmark = pytest.mark.quick

# Made up here; none of them opens anything.
SECRETS = [
    ('api_key = "K7d8-very-secret"', "K7d8-very-secret"),
    ("API_KEY=K7d8verysecret", "K7d8verysecret"),
    ('os.environ["HF_TOKEN"] = "hf_AbCdEfGhIjKlMnOpQrSt"', "hf_AbCdEfGh"),
    ('login("hf_AbCdEfGhIjKlMnOpQrSt")', "hf_AbCdEfGh"),
    ("{'password': 'tr0ub4dor&3'}", "tr0ub4dor"),
    ("db = connect(user='ann', passwd='x y z')", "x y z"),
    ("https://ann:s3cret@example.org/x", "s3cret"),
    ("wget 'https://example.org/a?token=abc123&b=2'", "abc123"),
    ("headers={'Authorization': 'Bearer abcdef123456'}", "abcdef123456"),
    ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "wJalrXUtnFEMI"),
    ("key = 'AKIAABCDEFGHIJKLMNOP'", "AKIAABCDEFGHIJKLMNOP"),
    ("openai.api_key = 'sk-abcdefghijklmnopqrstu'", "sk-abcdefgh"),
    ("t='ghp_abcdefghijklmnopqrstuvwxyz0123456789'", "ghp_abcdef"),
    ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefgh", "eyJzdWIi"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----", "MIIEow"),
    ("-----BEGIN PRIVATE KEY-----\nMIIEowcut off", "MIIEow"),
]
PLAIN = [
    "model.fit(x_train, y_train, batch_size=2048, epochs=10)",
    "tokenizer = AutoTokenizer.from_pretrained(name)",
    "max_tokens = 200; tokens = text.split()",
    "keyboard = 3; monkey = 'banana'",
    "x = data[:, ::2]  # https://example.org/docs?page=2",
    "if password == other: pass",
]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_a_secret_is_taken_out(text: str, secret: str) -> None:
    found = redact(text)
    assert secret not in found
    assert REDACTED in found


@pytest.mark.parametrize("text", PLAIN)
def test_ordinary_code_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "worst",
    ["a" * 300_000, "token=" * 50_000, "://" * 100_000, "eyJ" * 100_000, "-----BEGIN " * 30_000],
)
def test_no_text_takes_long(worst: str) -> None:
    began = time.process_time()
    redact(worst)
    assert time.process_time() - began < 5.0


def test_terminal_escapes_and_direction_marks_go() -> None:
    assert (
        clean("\x1b[31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07 \u202eevil\u200f\x00")
        == "red link evil"
    )
    assert clean("10%\r20%\r\nend\ttab") == "10%\n20%\nend\ttab"


def test_nested_values_are_cleaned_and_endless_ones_cut() -> None:
    deep: object = "password=abcdef"
    for _ in range(50):
        deep = [deep]
    assert clean_value({"a": ["token='x y'", 3, None]}) == {"a": [f"token={REDACTED}", 3, None]}
    assert "abcdef" not in str(clean_value(deep))
