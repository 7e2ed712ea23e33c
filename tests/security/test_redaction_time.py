"""No text makes redaction slow: the time is linear in the length, for texts made of the patterns' own beginnings."""

from __future__ import annotations

import statistics
import time

import pytest

from jupyter_tfguard.redact import clean

_BLOCKS = (
    "a", "A", "-", "=", ":", ".", "/", " ", "\t", "\"", "'", "\\", "\x1b", "\x1b[", "\x1b]", "\r", "\n",
    "a.b-c_", "token", "token=", "token='", 'token="', "token='\"", 'token=\\"', "token: ", "password ", "--password ",
    "--a-password", "login ", "login a password ", " -u a:", "sshpass -p", "api_", "api-key", "apikey=", "key=",
    "key='", "key: 'aaaaaaaaaaaaaaaaaaa", "://", "://a:", "://a", "?key=", "&key=", "&", "bearer ", "Basic ", "authorization:",
    "Authorization: a ", "cookie:", "cookie: a", "eyJ", "eyJaaaaaaaa.", "hf_", "sk-", "sk-a", "AKIA", "SG.aaaa", "-----",
    "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----a", "-----END", "hooks.slack.com/services/",
    "/api/webhooks/1/", "1234567890", "12345678:AA", "Maaaaaaaaaaaaaaaaaaaaaaa.", "gl-", "secret_", "session_",
    "%env ", "%env token ", "%env a_token", "env", "setdefault('", "getenv('token',", "getenv('token', '", "wandb login ",
    "wandb login 0123456789", "_key=", "_key=a1", "token=(", "token=('a'", "token=['a' ", 'token="\""', '""\"', "token=''\'a",
    'token = ("a"\n',
)  # fmt: skip


def _seconds(text: str) -> float:
    took = []
    for _ in range(2):
        began = time.process_time()
        clean(text)
        took.append(time.process_time() - began)
    return min(took)


@pytest.mark.parametrize("block", _BLOCKS, ids=ascii)
@pytest.mark.parametrize("end", ["", "'"], ids=ascii)
def test_the_time_grows_as_the_text_does(block: str, end: str) -> None:
    """Of four times the text it takes about four times the time; a pattern that backtracks takes sixteen times."""
    short, long = (
        _seconds((block * (size // len(block) + 1))[:size] + end) for size in (16_384, 65_536)
    )
    assert long < 9 * short + 0.01, (short, long)


def test_no_block_is_much_slower_than_the_others() -> None:
    took = {block: _seconds((block * 65_536)[:65_536]) for block in _BLOCKS}
    plain = statistics.median(took.values())
    assert max(took.values()) < 20 * plain, max(took.items(), key=lambda item: item[1])
