"""What secrets look like: the names before them, the forms that their makers give them, the places where they stand.

Each pattern begins with a character of its own and takes what it matched with it, so the time is linear in the length of
the text, whatever the text is.
"""

from __future__ import annotations

import re

REDACTED = "[redacted]"

# Ends of names that say their value is a secret. What may follow keeps "tokenizer = ..." and "keyboard" readable.
_NAMES = (
    "api[_-]?key", "access[_-]?key(?:[_-]?id)?", "account[_-]?key", "access[_-]?code", "auth[_-]?key",
    "credentials?", "(?:db|my|pg|ftp|smtp|mail|root|user|admin|login)[_-]?pass",
    "encryption[_-]?key", "license[_-]?key", "master[_-]?key", "passwd", "password", "passphrase", "private[_-]?key",
    "pwd", "secret(?:[_-]?key)?", "service[_-]?key", "session[_-]?(?:id|key)", "shared[_-]?key", "signing[_-]?key",
    "storage[_-]?key", "subscription[_-]?key", "token", "webhook[_-]?url",
)  # fmt: skip
_NAME_END = r"(?:[_-]?(?:dev|prod|staging|test|live|old|new|value|[0-9]{1,3}))?"
# A declaration or an empty value is no secret:   password: str = None
_NO_VALUE = r"(?!(?:str|bytes|int|bool|float|object|Any|None|True|False|null|true|false|Optional|Secret\w{0,20})\b)"


def _triple(quote: str) -> str:
    """Within a line, or one word between lines: a name may also be the last word of such a text, and its end stand here."""
    return rf"{quote}{{3}}(?:[^\s),.;:\]}}{quote}](?:(?!{quote}{{3}})[^\n])*(?:{quote}{{3}})?|\s{{1,40}}[^\s{quote}]{{3,300}}\s{{0,40}}{quote}{{3}})"


# "..." and '...', also with prefixes, escaped, in triple quotes; the end may have been cut off.
_QUOTED = (
    rf"[rbufRBUF]{{0,2}}(?:{_triple(chr(34))}|{_triple(chr(39))}"
    r"|\\{1,4}\"[^\"\n]*\"?|\\{1,4}'[^'\n]*'?|\"(?:[^\"\\\n]|\\.)+\"?|'(?:[^'\\\n]|\\.)+'?)"
)


def _any_case(words: tuple[str, ...]) -> str:
    """One pattern for all words in capitals or small letters; the first letter stands open, which is fast to look for."""

    def one(word: str) -> str:
        if word.startswith("("):
            return f"(?i:{word})"
        return f"[{word[0]}{word[0].upper()}](?i:{word[1:]})"

    return "|".join(one(word) for word in words)


# Bare keys, by the form that their makers give them.
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

# A pattern is tried where its last entry occurs: words in small letters, one of which every match holds; none: always.
PATTERNS: tuple[tuple[re.Pattern[str], str, tuple[str, ...]], ...] = (
    # -----BEGIN RSA PRIVATE KEY----- ... ; the end may have been cut off
    (
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:(?:(?!-----)[\s\S])*-----END[^-\n]{0,60}-----|[A-Za-z0-9+/=\s\\#>|*\"',]*)"
        ),
        REDACTED,
        ("-----begin",),
    ),
    # https://user:password@host, redis://:password@host, https://token@host
    (re.compile(r"://[^\s/@:'\"]{0,200}:[^\s/'\"]{1,200}@"), f"://{REDACTED}@", ("://",)),
    (re.compile(r"://[^\s/@:'\"]{16,200}@"), f"://{REDACTED}@", ("://",)),
    # Addresses that are a secret themselves
    (
        re.compile(r"(hooks\.slack\.com/services/|/api/webhooks/\d{1,25}/)[A-Za-z0-9_/-]{10,}"),
        rf"\1{REDACTED}",
        ("hooks",),
    ),
    # ?token=... and &sig=... in a URL
    (
        re.compile(
            r"([?&](?i:token|access_token|id_token|code|api_key|apikey|key|sig|signature|password|secret"
            r"|x-amz-[a-z-]{1,30})=)[^\s&'\"#]+"
        ),
        rf"\1{REDACTED}",
        ("?", "&"),
    ),
    # Authorization: Bearer abc...   Cookie: session=...; and both as entries of a dict
    (
        re.compile(
            r"([aA](?i:uthorization)\\{0,4}['\"]?\s{0,4}[:=]\s{0,4}[bf]?\\{0,4}['\"]?(?i:[a-z]{3,12} )?)[^\s'\",;}]{4,}"
        ),
        rf"\1{REDACTED}",
        ("authorization",),
    ),
    (
        re.compile(r"([cC](?i:ookie)\\{0,4}['\"]?[ \t]{0,4}[:=][ \t]{0,4}\\{0,4}['\"]?)[^'\"\n]{8,}"),
        rf"\1{REDACTED}",
        ("cookie",),
    ),
    (
        re.compile(
            r"([bB](?i:earer|asic)[ \t]{1,8})(?=[A-Za-z]{0,200}[0-9+/=._~-])[A-Za-z0-9+/=._~-]{8,}"
        ),
        rf"\1{REDACTED}",
        ("bearer", "basic"),
    ),
    # --password hunter2   machine h login ann password hunter2   curl -u ann:hunter2   sshpass -p hunter2
    (
        re.compile(
            r"(--(?i:password|passwd|passphrase|pwd|token|secret|api-?key|[a-z]{1,20}-(?:password|token|secret|key))"
            r"[ \t]{1,4})[^\s-]\S+"
        ),
        rf"\1{REDACTED}",
        ("--",),
    ),
    (re.compile(r"(\blogin[ \t]+\S{1,100}[ \t]+password[ \t]+)\S+"), rf"\1{REDACTED}", ("login",)),
    (re.compile(r"( (?:-u|--user)[ =]['\"]?[^\s:'\"]{1,100}:)[^\s'\"]+"), rf"\1{REDACTED}", (" -",)),
    (re.compile(r"(sshpass -p ?)\S+"), rf"\1{REDACTED}", ("sshpass",)),
    # os.environ.setdefault("HF_TOKEN", "...")   monkeypatch.setenv("HF_TOKEN", "...")   %env HF_TOKEN ...
    (
        re.compile(
            r"((?:putenv|getenv|setenv|env(?:iron)?\.(?:setdefault|get|pop))\(\s{0,80}\\{0,4}['\"]"
            rf"{_ENVIRONMENT_NAME}\\{{0,4}}['\"]\s{{0,80}},\s{{0,80}}(?:[a-z]{{1,20}}\s{{0,4}}=\s{{0,4}})?){_QUOTED}"
        ),
        rf"\1{REDACTED}",
        ("env",),
    ),
    (
        re.compile(rf"(%(?:set_)?env[ \t]{{1,8}}{_ENVIRONMENT_NAME}(?:[ \t]{{0,4}}=[ \t]{{0,4}}|[ \t]{{1,8}}))\S[^\n]*"),
        rf"\1{REDACTED}",
        ("env",),
    ),
    (
        re.compile(r"(wandb[ .]login[ (][^\n]{0,100}?)\b[0-9a-f]{40}\b"),
        rf"\1{REDACTED}",
        ("wandb",),
    ),
    # api_key = "..."   "password": "..."   token='...'   \"secret\": \"...\"
    (
        re.compile(
            rf"((?:{_any_case(_NAMES)}){_NAME_END}(?![A-Za-z0-9])\\{{0,4}}['\"]?\]?[ \t]{{0,4}}(?:=(?!=)|:(?!:))>?[ \t]{{0,4}}){_NO_VALUE}"
            rf"(?:{_QUOTED}|[(\[]\s{{0,80}}{_QUOTED}(?:\s{{0,80}}(?:,\s{{0,80}})?{_QUOTED}){{0,20}}|[^\s,;'\"()\[\]{{}}]{{3,}})"
        ),
        rf"\1{REDACTED}",
        ("key", "pass", "pwd", "token", "secret", "credential", "access", "session", "webhook"),
    ),
    # OPENAI_KEY=... : long, with a digit and a letter in it, no path and no words with marks between them
    (
        re.compile(
            r"((?<!(?i:primary))(?<!(?i:foreign))(?<!(?i:cache))(?<!(?i:sort))[_-][kK](?i:ey)"
            rf"{_NAME_END}(?![A-Za-z0-9])\\{{0,4}}['\"]?\]?[ \t]{{0,4}}[:=][ \t]{{0,4}}\\{{0,4}}['\"]?)"
            r"(?=[A-Za-z+=-]{0,200}[0-9])(?=[0-9+=-]{0,200}[A-Za-z])[A-Za-z0-9+=-]{16,}(?![A-Za-z0-9+=_./(\[-])"
        ),
        rf"\1{REDACTED}",
        ("key",),
    ),
    # key="...": long, without blanks, with a digit in it
    (
        re.compile(
            r"(\b[kK](?i:ey)\\{0,4}['\"]?\s{0,4}[:=]\s{0,4}\\{0,4}['\"])(?=[A-Za-z+/=_-]{0,200}[0-9])[A-Za-z0-9+/=_-]{20,}"
        ),
        rf"\1{REDACTED}",
        ("key",),
    ),
    (re.compile(rf"(?<![A-Za-z0-9_-])(?:{'|'.join(_KEYS)})"), REDACTED, ()),
)  # fmt: skip

SECRET_NAME = re.compile(rf"(?:{_any_case(_NAMES)}){_NAME_END}$")
