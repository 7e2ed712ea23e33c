"""Every text passes here before it is kept: keys, tokens, passwords and URLs with credentials become ``[redacted]``.

Terminal escapes, control characters and marks that turn the writing direction go too. The patterns take whole words of bounded length, so that they stay linear in the length of the text.
"""

from __future__ import annotations

import re

REDACTED = "[redacted]"

# CSI and OSC sequences of terminals; then what is left of control characters, and bidirectional overrides.
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)?|.?)"
)
_CONTROLS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)

# A name that says its value is a secret. The trailing context keeps "tokenizer = ..." and "keyboard" readable.
_SECRET_NAME = (
    r"[A-Za-z0-9_.-]{0,40}?(?:api[_-]?key|access[_-]?key(?:[_-]?id)?|secret[_-]?key|private[_-]?key|account[_-]?key"
    r"|secret|passwd|password|passphrase|pwd|auth[_-]?token|access[_-]?token|refresh[_-]?token"
    r"|bearer[_-]?token|token|credentials?)"
)
_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    # -----BEGIN RSA PRIVATE KEY----- ... ; the end may have been cut off
    (
        re.compile(
            r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]{0,20000}?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)"
        ),
        REDACTED,
    ),
    # https://user:password@host
    (re.compile(r"(?<=://)[^\s/@:'\"]{1,200}:[^\s/@'\"]{1,200}(?=@)"), REDACTED),
    # ?token=... and &sig=... in a URL
    (
        re.compile(
            r"(?i)([?&](?:token|access_token|api_key|apikey|key|sig|signature|x-amz-[a-z-]{1,30})=)[^\s&'\"#]{1,2000}"
        ),
        rf"\1{REDACTED}",
    ),
    # Authorization: Bearer abc...
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{8,2000}"), rf"\1 {REDACTED}"),
    # api_key = "..."   "password": "..."   token='...'
    (
        re.compile(
            rf"(?i)\b({_SECRET_NAME})(['\"]?\]?\s{{0,4}}(?:=(?!=)|:)\s{{0,4}})"
            r"(?:[rbuf]{0,2}\"[^\"\n]{1,2000}(?:\"|$)|[rbuf]{0,2}'[^'\n]{1,2000}(?:'|$)|[^\s,;'\"()\[\]{}]{3,2000})"
        ),
        rf"\1\2{REDACTED}",
    ),
    # login(token="...") is caught above; login("hf_...") and bare keys here, by the form their makers give them
    (
        re.compile(
            r"\b(?:hf_[A-Za-z0-9]{16,200}|sk-[A-Za-z0-9_-]{16,200}|gh[pousr]_[A-Za-z0-9]{20,200}"
            r"|github_pat_[A-Za-z0-9_]{20,200}|glpat-[A-Za-z0-9_-]{16,200}|xox[abposr]-[A-Za-z0-9-]{10,200}"
            r"|AKIA[0-9A-Z]{16}|ASIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{30,60}|ya29\.[0-9A-Za-z_-]{20,500}"
            r"|npm_[A-Za-z0-9]{30,60}|pypi-[A-Za-z0-9_-]{30,400}|dop_v1_[a-f0-9]{40,80}"
            r"|eyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{4,1000})"
        ),
        REDACTED,
    ),
)


def redact(text: str) -> str:
    """The text with secrets taken out."""
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def clean(text: str) -> str:
    """The text as it may be kept and shown: no secrets, no terminal escapes, no control characters but line ends and tabs.

    A carriage return rewrites the line in a terminal (progress bars); it becomes a line end here.
    """
    plain = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return redact(_CONTROLS.sub("", plain))


def clean_value(value: object) -> object:
    """`value` with every text in it cleaned; lists and dicts are copied, deep nesting is cut."""
    return _clean_value(value, 12)


def _clean_value(value: object, depth: int) -> object:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, (dict, list, tuple)) and depth == 0:
        return None
    if isinstance(value, dict):
        return {clean(str(key)): _clean_value(item, depth - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean_value(item, depth - 1) for item in value]
    return value
