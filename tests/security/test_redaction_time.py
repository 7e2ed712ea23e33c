"""No text makes redaction slow: the time is linear in the length, for texts made of the patterns' own beginnings."""

from __future__ import annotations

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
    'token = ("a"\n', "token: a.", "token: a[a]", "token: a | ", "token = a() or ", "password is ", "password for a ", "pw ", "pass=",
    "mysql -", "mysql -p", "mysql a ", "login -p ", "zip -P", "redis-cli -a ", "smb -U a", "echo ", "echo a | ", "a <<< ", "login <<<", "config a ",
    "set token ", "ENV a ", "machine a ", "login\na\n", "kind: Secret\n", "kind: Secret\ndata:\n", "a: b\n", "Private-Lines: 1\n",
    "a:1234:a:a:", "jdbc:oracle:thin:a/", "setattr(a, 'token', ", "auth=(", "auth=('a',", "login(", "login('a', ", "connect('a', 'a', ",
    "token, a = ", "a, token = 'a', ", "token = 'a', ", "<password>", "<token a", "name='token' value=", "cookies={", "session=", "sid=a1",
    "api key a ", "PIN ", "('token', ", "jwt.encode(a,", "a_aA1", "https://a:", "--from-literal=a=", "user@", "ssh a ", "ssh a@",
    "key is ", "key_a", "auth code: a", "login: a / ", " -u a -p ", " -password ", "send ", "passwords = [", "passwords = ['a',", "login_a('a', ",
    "check_password('", "Session('a', ", "a.key.a', ", "mysql', '-", "vault write a ", "$2b$", "getenv(a, ", "_auth=", "value=", "secrets.put(",
    "https://a/t/", "mnemonic: ", "seed phrase: a", "abcd ", "password = 'abcd ", "connect('a', 22, 'a', ", "Minio('a', 'a', ", "AES.new(",
    "sftp a:", "ssh a:a", "?u=a&p=", "token a a a a a: ", "cio", "ak-", "npg_", "aaa8Q~", "secret_a_", "sl.u.", "01234567-0123-0123-0123-0123456789ab:",
    "token = a(", "token = a(a=", "token() return ", "passwords[a] = ", "signature=", "password a a: ", "user a ", " --key ",
)  # fmt: skip


def _seconds(text: str) -> float:
    began = time.process_time()
    clean(text)
    return time.process_time() - began


def _is_linear(block: str, end: str) -> bool:
    short, long = ((block * size)[:size] + end for size in (4_096, 16_384))
    return _seconds(long) < 9 * _seconds(short) + 0.01


@pytest.mark.parametrize("block", _BLOCKS, ids=ascii)
@pytest.mark.parametrize("end", ["", "'"], ids=ascii)
def test_the_time_grows_as_the_text_does(block: str, end: str) -> None:
    """Four times the text takes about four times as long; a pattern that backtracks takes sixteen times as long, always."""
    assert any(_is_linear(block, end) for _ in range(5))
