"""Removes secrets from text before it is saved: keys, tokens, passwords, URLs with credentials become ``[redacted]``.

A secret is identified by the name before it, by the format of its vendor, or by its position in a command or URL.
Terminal escapes, control characters and marks that change the writing direction are removed too. Each pattern begins
with a specific character and consumes what it matched, so the time is linear in the length of any text.
"""

from __future__ import annotations

import re

REDACTED = "[redacted]"
_DEPTH_LIMIT = 12
_ITEM_LIMIT = 5000
_NUMBER_LIMIT = 2**63

# CSI and OSC sequences of terminals; then other control characters, Unicode line separators, bidirectional overrides,
# invisible tags, and lone surrogates, which cannot be encoded.
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b\n]{0,2000}(?:\x07|\x1b\\)?|.?)"
)
_CONTROLS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u180e\u200e\u200f\u2028-\u202e\u2066-\u2069"
    "\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)

# Endings of names whose value is a secret. The restricted suffix keeps "tokenizer = ..." and "keyboard" readable.
_NAMES = "|".join(
    """
    api[_-]?key access[_-]?key(?:[_-]?id)? account[_-]?key access[_-]?code auth[_-]?key credentials?
    (?:db|my|pg|ftp|smtp|mail|root|user|admin|login)[_-]?pass encryption[_-]?key license[_-]?key master[_-]?key passwd
    password passphrase private[_-]?key pwd secret(?:[_-]?key)? service[_-]?key session[_-]?(?:id|key) shared[_-]?key
    signing[_-]?key storage[_-]?key subscription[_-]?key token webhook[_-]?url
    """.split()  # noqa: SIM905
)
_NAME_END = r"(?:[_-]?(?:dev|prod|staging|test|live|old|new|value|[0-9]{1,3}))?"
# A declaration or an empty value is not a secret:   password: str = None
_NO_VALUE = r"(?!(?:str|bytes|int|bool|float|object|Any|None|True|False|null|true|false|Optional|Secret\w{0,20})\b)"


def _triple(quote: str) -> str:
    """Triple-quoted text within a line, or one word between lines: the quotes after a name may also end such a text."""
    return rf"{quote}{{3}}(?:[^\s),.;:\]}}{quote}](?:(?!{quote}{{3}})[^\n])*(?:{quote}{{3}})?|\s{{1,40}}[^\s{quote}]{{3,300}}\s{{0,40}}{quote}{{3}})"


# "..." and '...', also with prefixes, escaped, in triple quotes; the end may be missing.
_QUOTED = (
    rf"[rbufRBUF]{{0,2}}(?:{_triple(chr(34))}|{_triple(chr(39))}"
    r"|\\{1,4}\"[^\"\n]*\"?|\\{1,4}'[^'\n]*'?|\"(?:[^\"\\\n]|\\.)+\"?|'(?:[^'\\\n]|\\.)+'?)"
)


# Bare keys, identified by the format of their vendor.
_KEYS = (
    r"hf_[A-Za-z0-9]{16,}",  # Hugging Face
    r"sk-[A-Za-z0-9_-]{16,}", r"gsk_[A-Za-z0-9]{20,}", r"xai-[A-Za-z0-9]{20,}", r"pplx-[A-Za-z0-9]{20,}",
    r"nvapi-[A-Za-z0-9_-]{20,}", r"r8_[A-Za-z0-9]{16,}",  # model makers
    r"gh[pousr]_[A-Za-z0-9]{20,}", r"github_pat_[A-Za-z0-9_]{10,}", r"gl[a-z]{2,5}-[A-Za-z0-9_-]{16,}",
    r"glsa_[A-Za-z0-9_]{20,}", r"xox[a-z]-[A-Za-z0-9-]{10,}", r"xapp-[A-Za-z0-9-]{10,}",
    r"(?:AKIA|ASIA|AROA|AIDA)[0-9A-Z]{16}", r"AIza[0-9A-Za-z_-]{16,}", r"ya29\.[0-9A-Za-z_-]{20,}",
    r"LTAI[A-Za-z0-9]{12,}", r"GOCSPX-[A-Za-z0-9_-]{20,}",
    r"npm_[A-Za-z0-9]{16,}", r"pypi-[A-Za-z0-9_-]{20,}", r"rubygems_[a-f0-9]{40,}", r"dckr_pat_[A-Za-z0-9_-]{20,}",
    r"do[opr]_v1_[a-f0-9]{16,}", r"dapi[a-f0-9]{16,}", r"dp\.[a-z]{2}\.[A-Za-z0-9]{30,}", r"hv[sbr]\.[A-Za-z0-9_-]{20,}",
    r"SG\.[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]*)?", r"SK[0-9a-f]{24,}", r"key-[0-9a-f]{16,}",
    r"[srp]k_(?:live|test)_[A-Za-z0-9]{16,}", r"whsec_[A-Za-z0-9+/=]{16,}", r"shp[a-z]{2}_[0-9a-fA-F]{16,}",
    r"sq0[a-z]{3}-[A-Za-z0-9_-]{20,}", r"sntry[a-z]_[A-Za-z0-9_=+/-]{20,}", r"NRAK-[A-Z0-9]{20,}",
    r"PMAK-[a-f0-9-]{30,}", r"lin_api_[A-Za-z0-9]{20,}", r"secret_[A-Za-z0-9]{40,}", r"ntn_[A-Za-z0-9]{40,}",
    r"tskey-[A-Za-z0-9-]{20,}", r"figd_[A-Za-z0-9_-]{20,}", r"AGE-SECRET-KEY-1[0-9A-Z]{10,}",
    r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]{4,})?",  # JSON web token
    r"[0-9]{8,10}:AA[A-Za-z0-9_-]{16,}",  # Telegram
    r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",  # Discord
)  # fmt: skip

_ENVIRONMENT_NAME = (
    r"[A-Za-z0-9_]{0,60}?(?i:key(?:_?id)?|token|secret|pass(?:word|wd|phrase)?|pwd|credentials?|access_?code|session_?id"
    rf"|webhook_?url){_NAME_END}"
)

# Text before a secret, the secret itself, and lower-case words. A pattern is tried only if the text contains one of its
# words, which every match contains; without words it is always tried.
_FORMS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    # -----BEGIN RSA PRIVATE KEY----- ... ; the end may be missing
    (
        "",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:(?!-----)[\s\S])*-----END[^-\n]{0,60}-----|[A-Za-z0-9+/=\s\\#>|*\"',]*)",
        ("-----begin",),
    ),
    # https://user:password@host, redis://:password@host, https://token@host
    ("://", r"[^\s/@:'\"]{0,200}:[^\s/'\"]{1,200}(?=@)", ("://",)),
    ("://", r"[^\s/@:'\"]{16,200}(?=@)", ("://",)),
    # URLs that are secrets themselves
    (r"hooks\.slack\.com/services/|/api/webhooks/\d{1,25}/", r"[A-Za-z0-9_/-]{10,}", ("hooks",)),
    # ?token=... and &sig=... in a URL
    (
        r"[?&](?i:token|access_token|id_token|code|api_key|apikey|key|sig|signature|password|secret|x-amz-[a-z-]{1,30})=",
        r"[^\s&'\"#]+",
        ("?", "&"),
    ),
    # Authorization: Bearer abc...   Cookie: session=...; and both as entries of a dict
    (
        r"[aA](?i:uthorization)\\{0,4}['\"]?\s{0,4}[:=]\s{0,4}[bf]?\\{0,4}['\"]?(?i:[a-z]{3,12} )?",
        r"[^\s'\",;}]{4,}",
        ("authorization",),
    ),
    (
        r"[cC](?i:ookie)\\{0,4}['\"]?[ \t]{0,4}[:=][ \t]{0,4}\\{0,4}['\"]?",
        r"[^'\"\n]{8,}",
        ("cookie",),
    ),
    (
        r"[bB](?i:earer|asic)[ \t]{1,8}",
        r"(?=[A-Za-z]{0,200}[0-9+/=._~-])[A-Za-z0-9+/=._~-]{8,}",
        ("bearer", "basic"),
    ),
    # --password hunter2   machine h login ann password hunter2   curl -u ann:hunter2   sshpass -p hunter2
    (
        r"--(?i:password|passwd|passphrase|pwd|token|secret|api-?key|[a-z]{1,20}-(?:password|token|secret|key))[ \t]{1,4}",
        r"[^\s-]\S+",
        ("--",),
    ),
    (r"\blogin[ \t]+\S{1,100}[ \t]+password[ \t]+", r"\S+", ("login",)),
    (r" (?:-u|--user)[ =]['\"]?[^\s:'\"]{1,100}:", r"[^\s'\"]+", (" -",)),
    (r"sshpass -p ?", r"\S+", ("sshpass",)),
    # os.environ.setdefault("HF_TOKEN", "...")   monkeypatch.setenv("HF_TOKEN", "...")   %env HF_TOKEN ...
    (
        r"(?:putenv|getenv|setenv|env(?:iron)?\.(?:setdefault|get|pop))\(\s{0,80}\\{0,4}['\"]"
        rf"{_ENVIRONMENT_NAME}\\{{0,4}}['\"]\s{{0,80}},\s{{0,80}}(?:[a-z]{{1,20}}\s{{0,4}}=\s{{0,4}})?",
        _QUOTED,
        ("env",),
    ),
    (
        rf"%(?:set_)?env[ \t]{{1,8}}{_ENVIRONMENT_NAME}(?:[ \t]{{0,4}}=[ \t]{{0,4}}|[ \t]{{1,8}})",
        r"\S[^\n]*",
        ("env",),
    ),
    (r"wandb[ .]login[ (][^\n]{0,100}?", r"\b[0-9a-f]{40}\b", ("wandb",)),
    # api_key = "..."   "password": "..."   token='...'   \"secret\": \"...\"
    (
        rf"(?i:{_NAMES}){_NAME_END}(?![A-Za-z0-9])\\{{0,4}}['\"]?\]?[ \t]{{0,4}}(?:=(?!=)|:(?!:))>?[ \t]{{0,4}}",
        rf"{_NO_VALUE}(?:{_QUOTED}|[(\[]\s{{0,80}}{_QUOTED}(?:\s{{0,80}}(?:,\s{{0,80}})?{_QUOTED}){{0,20}}"
        r"|[^\s,;'\"()\[\]{}]{3,})",
        ("key", "pass", "pwd", "token", "secret", "credential", "access", "session", "webhook"),
    ),
    # OPENAI_KEY=... : long, with a digit and a letter in it, no path and no words with marks between them
    (
        r"(?<!(?i:primary))(?<!(?i:foreign))(?<!(?i:cache))(?<!(?i:sort))[_-][kK](?i:ey)"
        rf"{_NAME_END}(?![A-Za-z0-9])\\{{0,4}}['\"]?\]?[ \t]{{0,4}}[:=][ \t]{{0,4}}\\{{0,4}}['\"]?",
        r"(?=[A-Za-z+=-]{0,200}[0-9])(?=[0-9+=-]{0,200}[A-Za-z])[A-Za-z0-9+=-]{16,}(?![A-Za-z0-9+=_./(\[-])",
        ("key",),
    ),
    # key="...": long, without blanks, with a digit in it
    (
        r"\b[kK](?i:ey)\\{0,4}['\"]?\s{0,4}[:=]\s{0,4}\\{0,4}['\"]",
        r"(?=[A-Za-z+/=_-]{0,200}[0-9])[A-Za-z0-9+/=_-]{20,}",
        ("key",),
    ),
    (r"(?<![A-Za-z0-9_-])", rf"(?:{'|'.join(_KEYS)})", ()),
)
_PATTERNS = [(re.compile(f"({before}){secret}"), words) for before, secret, words in _FORMS]
_SECRET_NAME = re.compile(rf"(?i:{_NAMES}){_NAME_END}$")


def redact(text: str) -> str:
    """The text without secrets."""
    small = text.lower()
    for pattern, words in _PATTERNS:
        if not words or any(word in small for word in words):
            text = pattern.sub(rf"\1{REDACTED}", text)
    return text


def clean(text: str) -> str:
    """Text that can be saved and shown: without secrets, terminal escapes and control characters.

    Line ends and tabs stay. A carriage return overwrites the line in a terminal (progress bars); it is replaced by a
    line end.
    """
    return redact(printable(text))


def printable(text: str) -> str:
    """Text that is safe for a terminal and for any encoding: like :func:`clean`, but secrets stay in."""
    plain = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", plain)


def one_line(text: str) -> str:
    """Like :func:`printable`, with line ends and tabs replaced by spaces."""
    return printable(text).replace("\n", " ").replace("\t", " ")


def clean_value(value: object) -> object:
    """Copy of `value` with every text cleaned; deep nesting, long lists and huge numbers are cut off."""
    return _clean_value(value, _DEPTH_LIMIT)


def _clean_value(value: object, depth: int) -> object:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, int) and abs(value) > _NUMBER_LIMIT:
        return None  # not a plausible count, size or time, and many functions fail with it
    if isinstance(value, (dict, list, tuple)) and depth == 0:
        return None
    if isinstance(value, dict):
        items = list(value.items())[:_ITEM_LIMIT]
        return {clean(str(key)): _named(str(key), item, depth - 1) for key, item in items}
    if isinstance(value, (list, tuple)):
        return [_clean_value(item, depth - 1) for item in value[:_ITEM_LIMIT]]
    return value


def _named(name: str, value: object, depth: int) -> object:
    """Clean a value; a text is redacted completely if its name indicates a secret."""
    if isinstance(value, str) and len(value) >= 3 and _SECRET_NAME.search(name):
        return REDACTED
    return _clean_value(value, depth)
