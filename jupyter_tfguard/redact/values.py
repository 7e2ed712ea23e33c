"""Patterns of what a secret consists of, and of what is between its name and it. Each repetition has a limit."""

from __future__ import annotations

import re


def _triple(quote: str) -> str:
    """Triple-quoted text within a line, or one word between lines: the quotes after a name may also end such a text."""
    return rf"{quote}{{3}}(?:[^\s),.;:\]}}{quote}](?:(?!{quote}{{3}})[^\n])*(?:{quote}{{3}})?|\s{{1,40}}[^\s{quote}]{{3,300}}\s{{0,40}}{quote}{{3}})"


# A declaration or an empty value is not a secret:   password: str = None
NO_VALUE = r"(?!(?:str|string|bytes|u?int\d{0,3}|bool|b?float\d{0,3}|complex\d{0,3}|dict|list|tuple|set|Tensor|object|Any|None|True|False|null|true|false|Optional|Secret\w{0,20})\b)"
STAND_INS = (
    r"<[^<>\n]{0,60}>|\[[A-Za-z_ ]{0,30}\]|(?:\{{1,2}[^{}\n]{0,60}\}{1,2}[:/._ -]{0,3}){1,8}|\$\{?\w{1,60}\}?|%\w{1,60}%|\*{2,}|x{3,}|X{3,}|\.{2,}|%s"
    r"|(?i:your|my|the|an?|insert|enter|put)[-_ ][A-Za-z_ -]{0,60}|(?i:pass(?:word|wd|phrase)?|pw|pwd|secret|token|api_?key|key)"
)
NO_STAND_IN = rf"(?![rbufRBUF]{{0,2}}\\{{0,4}}['\"](?:{STAND_INS})?\\{{0,4}}['\"](?!['\"]))"
# The quote after "Password: " ends a text.
NO_END = r"(?!(?:['\"]|['\"]{3}(?!\n))[ \t]{0,4}(?:[),\]]|\n|\Z))"
# "..." and '...', also with prefixes, escaped, in triple quotes; the end may be missing.
QUOTED = (
    rf"[rbufRBUF]{{0,2}}(?:{_triple(chr(34))}|{_triple(chr(39))}"
    r"|\\{1,4}\"[^\"\n]*\"?|\\{1,4}'[^'\n]*'?|\"(?:[^\"\\\n]|\\.)+\"?|'(?:[^'\\\n]|\\.)+'?)"
)
VALUE = rf"{NO_STAND_IN}{NO_END}{QUOTED}"
# A text in quotes that is no plain word.
ODD_VALUE = (
    rf"(?=[rbuf]{{0,2}}\\{{0,4}}['\"](?:[^'\"\n]{{0,60}}[0-9!#$%&*+?@^~]|[^'\"\n]{{9}})){VALUE}"
)
LIST = rf"[(\[]\s{{0,80}}{VALUE}(?:\s{{0,80}}(?:,\s{{0,80}})?{QUOTED}){{0,20}}"
BARE = r"[^\s,;'\"()\[\]{}<>]"
# Without quotes: no path, no variable and no expression, but with a digit or a mark, or only letters after a password's name.
LITERAL = (
    r"(?![$%{<*/~.(]|\.{1,2}/|[A-Za-z]:[\\/]|\d{1,12}(?:\.\d{0,9})?(?![^\s,;'\"()\[\]{}<>])|[A-Za-z_][\w.]{0,60}\.[A-Za-z_]\w{0,60}(?!\S)"
    r"|(?i:pass(?:word|wd)?|pw|token|secret|key|value)_?\d{0,3}(?![^\s,;'\"()\[\]{}<>]))"
    rf"(?={BARE}{{0,200}}[0-9!#$%&*+?@^~=/])(?!=){BARE}{{3,}}(?![^\s,;'\"()\[\]{{}}<>])(?![(\[{{])"
)
CODE_WORDS = (
    r"(?i:pass\w{0,10}|pwd?|secret|token|key|value|text|other|user\w{0,8}|name|none|null|self|raise|return|print|continue|break|yield"
    r"|input|getpass|prompt|hidden|required|optional|missing|wrong|incorrect|invalid|expired|empty|unknown|denied|failed|given|not"
    r"|must|is|was|has|for|and|or|if|else|in|as|with|from|no|ok|the|your|string|str|data|args|line|arg|default|field|x+)"
)
LETTERS = rf"(?!{CODE_WORDS}(?![A-Za-z]))[A-Za-z]{{4,60}}(?=[ \t]{{0,8}}(?:[#;&'\"]|&&|\n|\Z))"
LIKE_PASSWORD = (
    r"(?![A-Za-z]{1,40}_[A-Za-z])(?=[^\s'\"`,;:()<>\[\]{}=/\\]{0,60}[A-Za-z])"
    r"(?=[^\s'\"`,;:()<>\[\]{}=/\\]{0,60}[0-9!#$%&*+?@^~])[^\s'\"`,;:()<>\[\]{}=/\\]{5,80}"
)
LIKE_KEY = (
    r"(?=[A-Za-z+/=_-]{0,200}[0-9])(?=[0-9+/=_-]{0,200}[A-Za-z])[A-Za-z0-9+/=_-]{16,}"
    r"(?:\.(?=[A-Za-z_-]{0,200}[0-9])[A-Za-z0-9_-]{16,})?(?![A-Za-z0-9_./(\[-])"
)
WORD = r"['\"]?[^\s'\"|;&]{1,200}['\"]?"
ARGUMENT = r"(?:'[^'\n]{1,200}'|\"[^\"\n]{1,200}\"|(?![-$<>|])[^\s'\"|;&]{3,200})"
# --- between a name and its value
TYPE = r"[A-Za-z_][\w.]{0,40}(?:\[[^\]\n]{0,60}\])?(?:[ \t]{0,4}\|[ \t]{0,4}\w{1,20}){0,4}"
IS = (
    rf"(?![A-Za-z0-9])\\{{0,4}}['\"]?\]?(?:[ \t]{{0,4}}:[ \t]{{0,4}}{TYPE}(?=[ \t]{{0,4}}=))?"
    r"[ \t]{0,4}(?::=|=(?![=>])|=>|:(?![:=]))[ \t]{0,4}"
)
# Functions that only change the form of a text.
WRAPPED = (
    r"(?:(?:bytes\.fromhex|bytes|str|(?:\w{1,20}\.)?(?:SecretStr|SecretBytes|Secret|b64decode|unhexlify|quote|quote_plus))\([ \t]{0,4}"
    r"|(?:\w{1,20}\.)?(?:getenv|environ\.get)\([^\n,()]{1,60},[ \t]{0,4}"
    r"|[A-Za-z_][\w.]{0,40}[(\[][^()\[\]\n]{0,80}[)\]][ \t]{1,4}or[ \t]{1,4})?"
)
ARGUMENT_NAME = r"(?:[A-Za-z_]{1,20}[ \t]{0,4}=[ \t]{0,4})?"
FIRST = rf"{ARGUMENT_NAME}(?:{QUOTED}|[A-Za-z_][\w.]{{0,60}})[ \t]{{0,4}},\s{{0,40}}{ARGUMENT_NAME}"
ITEM = rf"(?:{QUOTED}|[\w.]{{1,40}})"
REST = r"[^\n|;]{0,120}?"
FILLED = r"(?:[ \t]{1,3}[a-z]{1,10}){0,3}"
SAYS = (
    r"(?:[ \t]{1,3}(?:is|was|are|now|from|to|set|changed|ist|war|lautet|est|es|é|är|er|jest|je|on|для)(?![A-Za-z]))"
    r"{0,3}"
)


def is_stand_in(value: str) -> bool:
    """Whether a value only stands for a secret: ``<pad>``, ``[MASK]``, ``{token}``."""
    return re.fullmatch(STAND_INS, value) is not None
