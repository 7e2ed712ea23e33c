"""All forms of secrets, as one table: where they occur, what is before them, and what they consist of.

Each pattern begins with a specific character and consumes what it matched, and each repetition has a limit, so the time
is linear in the length of any text.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from .names import (
    ENVIRONMENT_NAME,
    FOREIGN_WORDS,
    KEYS,
    NAME_END,
    NAME_WORDS,
    PASSWORDS,
    STRONG,
    TOKEN,
    WHOLE,
    any_case,
)
from .vendors import KEYS as VENDOR_KEYS


@dataclass(frozen=True)
class Form:
    """One form.

    Attributes:
        words: The form is tried only if a text contains one of these, in lower case; none: always.
        before: Pattern of the text before the secret, which stays.
        secret: Pattern of the secret.
    """

    words: tuple[str, ...]
    before: str
    secret: str

    @functools.cached_property
    def pattern(self) -> re.Pattern[str]:
        """The secret after the text before it, which is group 1. Compiled at first use: that takes a millisecond."""
        return re.compile(f"({self.before})(?:{self.secret})")


def _triple(quote: str) -> str:
    """Triple-quoted text within a line, or one word between lines: the quotes after a name may also end such a text."""
    return rf"{quote}{{3}}(?:[^\s),.;:\]}}{quote}](?:(?!{quote}{{3}})[^\n])*(?:{quote}{{3}})?|\s{{1,40}}[^\s{quote}]{{3,300}}\s{{0,40}}{quote}{{3}})"


# --- values

# A declaration or an empty value is not a secret:   password: str = None
_NO_VALUE = r"(?!(?:str|bytes|int|bool|float|object|Any|None|True|False|null|true|false|Optional|Secret\w{0,20})\b)"
_STAND_INS = (
    r"<[^<>\n]{0,60}>|\[[A-Za-z_ ]{0,30}\]|\{{1,2}[^{}\n]{0,60}\}{1,2}|\$\{?\w{1,60}\}?|%\w{1,60}%|\*{2,}|x{3,}|X{3,}|\.{2,}|%s"
    r"|(?i:your|my|the|an?|insert|enter|put)[-_ ][A-Za-z_ -]{0,60}|(?i:pass(?:word|wd|phrase)?|pw|pwd|secret|token|api_?key|key)"
)
_NO_STAND_IN = rf"(?![rbufRBUF]{{0,2}}\\{{0,4}}['\"](?:{_STAND_INS})?\\{{0,4}}['\"](?!['\"]))"
# The quote after "Password: " ends a text.
_NO_END = r"(?!(?:['\"]|['\"]{3}(?!\n))[ \t]{0,4}(?:[),\]]|\n|\Z))"
# "..." and '...', also with prefixes, escaped, in triple quotes; the end may be missing.
_QUOTED = (
    rf"[rbufRBUF]{{0,2}}(?:{_triple(chr(34))}|{_triple(chr(39))}"
    r"|\\{1,4}\"[^\"\n]*\"?|\\{1,4}'[^'\n]*'?|\"(?:[^\"\\\n]|\\.)+\"?|'(?:[^'\\\n]|\\.)+'?)"
)
_VALUE = rf"{_NO_STAND_IN}{_NO_END}{_QUOTED}"
# A text in quotes that is no plain word.
_ODD_VALUE = (
    rf"(?=[rbuf]{{0,2}}\\{{0,4}}['\"](?:[^'\"\n]{{0,60}}[0-9!#$%&*+?@^~]|[^'\"\n]{{9}})){_VALUE}"
)
_LIST = rf"[(\[]\s{{0,80}}{_VALUE}(?:\s{{0,80}}(?:,\s{{0,80}})?{_QUOTED}){{0,20}}"
_BARE = r"[^\s,;'\"()\[\]{}<>]"
_BARE_END = rf"(?!{_BARE[:-1]}([{{])"
# Without quotes: no path, no variable and no expression, but with a digit or a mark, or only letters after a password's name.
_LITERAL = (
    r"(?![$%{<*/~.(]|\.{1,2}/|[A-Za-z]:[\\/]|\d{1,12}(?:\.\d{0,9})?(?![^\s,;'\"()\[\]{}<>])|[A-Za-z_][\w.]{0,60}\.[A-Za-z_]\w{0,60}(?!\S))"
    rf"(?={_BARE}{{0,200}}[0-9!#$%&*+?@^~=/])(?!=){_BARE}{{3,}}(?![^\s,;'\"()\[\]{{}}<>])(?![(\[{{])"
)
_CODE_WORDS = (
    r"(?i:pass\w{0,10}|pwd?|secret|token|key|value|text|other|user\w{0,8}|name|none|null|self|raise|return|print|continue|break|yield"
    r"|input|getpass|prompt|hidden|required|optional|missing|wrong|incorrect|invalid|expired|empty|unknown|denied|failed|given|not"
    r"|must|is|was|has|for|and|or|if|else|in|as|with|from|no|ok|the|your|string|str|data|args|line|arg|default|field|x+)"
)
_LETTERS = rf"(?!{_CODE_WORDS}(?![A-Za-z]))[A-Za-z]{{4,60}}(?=[ \t]{{0,8}}(?:[#;&'\"]|&&|\n|\Z))"
_LIKE_PASSWORD = (
    r"(?![A-Za-z]{1,40}_[A-Za-z])(?=[^\s'\"`,;:()<>\[\]{}=/\\]{0,60}[A-Za-z])"
    r"(?=[^\s'\"`,;:()<>\[\]{}=/\\]{0,60}[0-9!#$%&*+?@^~])[^\s'\"`,;:()<>\[\]{}=/\\]{5,80}"
)
_LIKE_KEY = r"(?=[A-Za-z+/=_-]{0,200}[0-9])(?=[0-9+/=_-]{0,200}[A-Za-z])[A-Za-z0-9+/=_-]{16,}(?![A-Za-z0-9_./(\[-])"
_WORD = r"['\"]?[^\s'\"|;&]{1,200}['\"]?"
_ARGUMENT = r"(?:'[^'\n]{1,200}'|\"[^\"\n]{1,200}\"|(?![-$<>|])[^\s'\"|;&]{3,200})"

# --- what is before them

_TYPE = r"[A-Za-z_][\w.]{0,40}(?:\[[^\]\n]{0,60}\])?(?:[ \t]{0,4}\|[ \t]{0,4}\w{1,20}){0,4}"
_IS = (
    rf"(?![A-Za-z0-9])\\{{0,4}}['\"]?\]?(?:[ \t]{{0,4}}:[ \t]{{0,4}}{_TYPE}(?=[ \t]{{0,4}}=))?"
    r"[ \t]{0,4}(?::=|=(?![=>])|=>|:(?![:=]))[ \t]{0,4}"
)
# Functions that only change the form of a text.
_WRAPPED = (
    r"(?:(?:bytes\.fromhex|bytes|str|(?:\w{1,20}\.)?(?:SecretStr|SecretBytes|Secret|b64decode|unhexlify|quote|quote_plus))\([ \t]{0,4}"
    r"|[A-Za-z_][\w.]{0,40}[(\[][^()\[\]\n]{0,80}[)\]][ \t]{1,4}or[ \t]{1,4})?"
)
_ARGUMENT_NAME = r"(?:[A-Za-z_]{1,20}[ \t]{0,4}=[ \t]{0,4})?"
_FIRST = (
    rf"{_ARGUMENT_NAME}(?:{_QUOTED}|[A-Za-z_][\w.]{{0,60}})[ \t]{{0,4}},\s{{0,40}}{_ARGUMENT_NAME}"
)
_ITEM = rf"(?:{_QUOTED}|[\w.]{{1,40}})"
_REST = r"[^\n|;]{0,120}?"
_FILLED = r"(?:[ \t]{1,3}[a-z]{1,10}){0,3}"
_SAYS = (
    r"(?:[ \t]{1,3}(?:is|was|are|now|to|set|changed|ist|war|lautet|est|es|é|är|er|jest|je|on|для)(?![A-Za-z]))"
    r"{0,3}"
)

FORMS: tuple[Form, ...] = (
    # -----BEGIN RSA PRIVATE KEY----- ... ; the end may be missing
    Form(
        ("-----begin",),
        "",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:(?!-----)[\s\S])*-----END[^-\n]{0,60}-----|[A-Za-z0-9+/=\s\\#>|*\"',]*)",
    ),
    Form(("private-lines",), r"Private-Lines: \d{1,4}\s{1,4}", r"(?:[A-Za-z0-9+/=]{8,}\s{0,4})+"),
    # kind: Secret, and the block of its data
    Form(
        ("kind: secret",),
        r"kind: Secret\b(?:(?!\n---)[^\x00]){0,400}?\n[ ]{0,8}(?:data|stringData):[ ]{0,4}\n",
        r"(?:[ ]{1,16}[\w.-]{1,80}:[^\n]{0,8000}\n?)+",
    ),
    # https://user:password@host, redis://:password@host, https://token@host
    Form(
        ("://",),
        "://",
        rf"(?![^\s/@:]{{0,200}}:(?:{_STAND_INS})@)[^\s/@:'\"]{{0,200}}:[^\s/'\"]{{1,200}}(?=@)",
    ),
    Form(("://",), "://", r"[^\s/@:'\"]{16,200}(?=@)"),
    Form(("jdbc:",), r"jdbc:oracle:\w{1,10}:[^\s/@]{0,60}/", r"[^\s@/]{1,200}(?=@)"),
    # URLs that are secrets themselves
    Form(
        ("hooks",),
        r"hooks\.slack\.com/(?:services|workflows)/|/api/webhooks/\d{1,25}/|/webhookb2/",
        r"[A-Za-z0-9_/@-]{10,}",
    ),
    Form(("webhookb2",), r"/webhookb2/", r"[A-Za-z0-9_/@-]{10,}"),
    # ?token=... and &sig=... in a URL
    Form(
        ("?", "&", "#"),
        r"[?&#](?i:[a-z_-]{0,20}(?:token|password|passwd|secret|api_?key|access_?key)|code|key|sig|signature|pwd?|pass|app_?id"
        r"|credential|ticket|auth|x-amz-[a-z-]{1,30})=",
        rf"(?!(?:{_STAND_INS})?(?:[&'\"\s]|\Z))[^\s&'\"#]+",
    ),
    # Authorization: Bearer abc...   Cookie: session=...; and both as entries of a dict
    Form(
        ("authorization",),
        r"[aA](?i:uthorization)\\{0,4}['\"]?\s{0,4}[:=]\s{0,4}[bf]?\\{0,4}['\"]?(?i:digest )",
        r"[^\n]{4,}",
    ),
    Form(
        ("authorization",),
        r"[aA](?i:uthorization)\\{0,4}['\"]?\s{0,4}[:=,]\s{0,4}[bf]?\\{0,4}['\"]?(?i:[a-z]{3,12} )?",
        rf"(?!(?:{_STAND_INS})['\"]|[A-Za-z_.]{{1,60}}[(\[]|[A-Za-z]{{3,12}} |required|failed)[^\s'\",;}}]{{4,}}",
    ),
    Form(
        ("cookie",),
        r"[cC](?i:ookie)\\{0,4}['\"]?[ \t]{0,4}[:=][ \t]{0,4}\\{0,4}['\"]?",
        r"(?=[^'\"\n]{0,2000}[0-9])(?=[^'\"\n]{0,200}[=;:|]|[^\s'\"\n]{16})[^'\"\n]{8,}(?:\"[^\"\n]*)?",
    ),
    Form(
        ("cookies",),
        r"[cC]ookies[ \t]{0,4}[=:][ \t]{0,4}(?:dict\(|\{)[ \t]{0,4}",
        r"(?=[^)}\n]{0,80}['\"])[^)}\n]{8,}",
    ),
    Form(
        ("sess", "sid", "csrf", "xsrf", "jwt"),
        rf"(?:{any_case('jsessionid phpsessid sessionid session csrftoken xsrf')}|{any_case('jwt sid', not_after='A-Za-z0-9')})"
        + r"(?:\\?['\"][ \t]{0,4},[ \t]{0,4}\\?['\"]|=(?=\S{20}))",
        r"(?=[A-Za-z%._-]{0,80}[0-9])[A-Za-z0-9%._-]{16,}",
    ),
    Form(
        ("bearer", "basic"),
        r"[bB](?i:earer|asic)[ \t]{1,8}",
        r"(?=[A-Za-z]{0,200}[0-9+/=._~-])[A-Za-z0-9+/=._~-]{8,}",
    ),
    # --- programs and their options
    # --password hunter2   --http-password=hunter2   machine h login ann password hunter2   curl -u ann:hunter2
    Form(
        ("--",),
        r"--(?i:password|passwd|passphrase|pwd|token|secret|api-?key|[a-z]{1,20}-(?:password|token|secret|key))[ \t=]{1,4}",
        r"(?!['\"]?,)[^\s-][^\s,]+|'[^'\n]+'|\"[^\"\n]+\"",
    ),
    Form(
        ("login", "machine"),
        r"\blogin\s{1,40}\S{1,100}\s{1,40}(?:account\s{1,40}\S{1,100}\s{1,40})?password\s{1,40}",
        r"[^\s'\"]+",
    ),
    Form(
        (" -",),
        r" (?:-[A-Za-z]{0,6}[uUa]|--(?:proxy-)?user)[ =]{0,2}['\"]?[A-Za-z0-9][^\s:'\"/]{0,100}:",
        rf"(?!(?:{_STAND_INS})(?:[\s'\"]|\Z)|\d{{1,5}}(?:[\s:]|\Z)|/)[^\s'\"]+",
    ),
    Form(("mysql", "mariadb"), rf"\b(?:mysql|mariadb)\w{{0,12}}{_REST}\s-p", _ARGUMENT),
    Form(("7z", "rar "), rf"\b(?:7z[ar]?|rar|unrar)(?: {_REST})?\s-h?p", _ARGUMENT),
    Form(("zip ",), rf"\b(?:un)?zip(?: {_REST})?\s-P ?", _ARGUMENT),
    Form(("sshpass",), r"sshpass -p ?", _ARGUMENT),
    Form(("login", "mongo"), rf"\b(?:login|mongo\w{{0,10}})(?: {_REST})?\s-p[ =]?", _ARGUMENT),
    Form(("redis-cli",), rf"redis-cli(?: {_REST})?\s-a ", _ARGUMENT),
    Form(("ldap",), rf"\bldap\w{{2,10}}(?: {_REST})?\s-w ?", _ARGUMENT),
    Form(
        ("smb", "rpcclient"),
        rf"\b(?:smb\w{{2,10}}|rpcclient)(?: {_REST})?\s-U ?['\"]?[^\s%]{{1,60}}%",
        r"[^\s'\"]+",
    ),
    Form(("net use", "net user"), r"\bnet user? [^\n]{1,80}?\\\\\S{1,80} ", r"(?!/)\S+"),
    Form(("openssl",), rf"openssl {_REST}(?:-pass(?:in|out)? ?(?:pass:)|-k )", _ARGUMENT),
    Form(("htpasswd",), r"htpasswd -\w{0,8}b\w{0,8} \S{1,100} \S{1,100} ", _ARGUMENT),
    Form(
        ("echo", "printf"),
        r"\b(?:echo|printf)[ \t]{1,4}(?:-[ne]{1,2}[ \t]{1,4})?",
        rf"{_WORD}(?=[ \t]{{0,4}}\|[ \t]{{0,4}}(?:\w{{1,20}}[ \t]{{1,4}}){{0,4}}(?:-S\b|[^\n|]{{0,80}}--?(?:password-)?stdin|chpasswd|[^\n|]{{0,60}}--with-token))",
    ),
    Form(("<<<",), r"\b(?:login|token|passwd)[^\n|]{0,60}<<<[ \t]{0,4}", _ARGUMENT),
    Form(("from-literal",), r"--from-literal[ =][\w.-]{1,80}=", _ARGUMENT),
    # aws configure set aws_secret_access_key X   git config user.password X   setx NAME X   ENV NAME X
    Form(
        ("config", "set", "env ", "authtoken", "requirepass", "create", "arg "),
        rf"\b(?:(?:config(?:ure)?|setx|ENV|ARG|set|create)\b(?:[ \t]+[^\s=]{{1,60}}){{0,6}}?[ \t]+[\w.-]{{0,60}}?(?:{STRONG}|{TOKEN}|(?i:key))"
        r"|(?:add-)?authtoken|requirepass)[ \t]+",
        rf"(?=['\"]?[^\s'\"]{{0,200}}[0-9!#$%&*+?@^~])(?!=){_ARGUMENT}",
    ),
    Form(("kaggle",), r"kaggle config set -n \w{1,20} -v ", r"\S+"),
    Form(
        ("wandb",),
        r"wandb[ .]login[ (][^\n]{0,100}?",
        r"\b[0-9a-f]{40}\b|(?<![\w/.])[A-Za-z0-9_-]{36,}(?![\w/.])",
    ),
    # host:5432:database:user:password
    Form(
        (":",),
        r"(?m:^)[\w.*-]{1,80}:(?:\d{4,5}|\*):[A-Za-z*][\w-]{0,60}:[\w.-]{1,60}:",
        r"[^\s:'\"]{3,}$",
    ),
    # --- calls
    # os.environ.setdefault("HF_TOKEN", "...")   monkeypatch.setenv("HF_TOKEN", "...")   %env HF_TOKEN ...
    Form(
        ("env",),
        r"(?:putenv|getenv|setenv|env(?:iron)?\.(?:setdefault|get|pop))\(\s{0,80}\\{0,4}['\"]"
        rf"{ENVIRONMENT_NAME}\\{{0,4}}['\"]\s{{0,80}},\s{{0,80}}(?:[a-z]{{1,20}}\s{{0,4}}=\s{{0,4}})?",
        _VALUE,
    ),
    Form(
        ("env",),
        rf"%(?:set_)?env[ \t]{{1,8}}{ENVIRONMENT_NAME}(?:[ \t]{{0,4}}=[ \t]{{0,4}}|[ \t]{{1,8}})",
        r"\S[^\n]*",
    ),
    Form(
        ("setattr",),
        rf"setattr\([^\n,]{{1,80}},[ \t]{{0,4}}['\"]\w{{0,40}}?(?:{STRONG}|{TOKEN}|{WHOLE})['\"][ \t]{{0,4}},[ \t]{{0,4}}",
        _VALUE,
    ),
    # config.set("db", "password", "..."), ("api_key", "...")
    Form(
        (*NAME_WORDS, "key"),
        rf"[(,][ \t]{{0,4}}['\"][\w-]{{0,40}}?(?:{STRONG}|{TOKEN}|{WHOLE}|(?i:key))['\"][ \t]{{0,4}},\s{{0,40}}",
        rf"(?=['\"][^'\"\n]{{0,200}}[0-9])(?=['\"][^'\"\n ]{{6}}){_VALUE}",
    ),
    # auth=("ann", "..."), HTTPBasicAuth("ann", "..."), login("ann", "..."), login("...")
    Form(
        ("auth",),
        rf"[aA](?i:uth)\\{{0,4}}['\"]?[ \t]{{0,4}}[=:][ \t]{{0,4}}[(\[][ \t]{{0,4}}{_FIRST}",
        _VALUE,
    ),
    Form(
        ("auth", "login", "sign"),
        rf"{any_case('auth authenticate login log_in sign_?in set_credentials authorize')}\(\s{{0,40}}{_FIRST}",
        _VALUE,
    ),
    Form(
        ("login", "fernet", "auth", "set_", "with_"),
        rf"(?:login|Fernet|authenticate|(?:set|with|use|add)_?(?:{STRONG}|{TOKEN}))\(\s{{0,40}}",
        rf"(?=[rbu]{{0,2}}['\"][^'\"\n\s]{{0,60}}[0-9])(?=[rbu]{{0,2}}['\"][^'\"\n]{{8}}){_VALUE}",
    ),
    Form(("connect(",), rf"connect\(\s{{0,40}}{_QUOTED},\s{{0,40}}{_QUOTED},\s{{0,40}}", _VALUE),
    Form(
        ("jwt", "hmac"),
        r"(?:jwt\.(?:en|de)code\([^\n,]{1,80},[ \t]{0,4}|hmac\.new\([ \t]{0,4})",
        _VALUE,
    ),
    Form(('auth"',), r"\"auth\"[ \t]{0,4}:[ \t]{0,4}", r"\"[A-Za-z0-9+/=]{12,}\""),
    # --- names
    # user, password = "ann", "..."
    Form(
        NAME_WORDS,
        rf"(?:{STRONG}|{TOKEN}|{WHOLE})(?:[ \t]{{0,4}},[ \t]{{0,4}}[A-Za-z_]\w{{0,40}}){{0,4}}[ \t]{{0,4}}=(?!=)[ \t]{{0,4}}\(?",
        rf"{_ITEM}(?:[ \t]{{0,4}},[ \t]{{0,4}}{_ITEM}){{1,6}}(?=[ \t)]{{0,8}}(?:#|\n|\Z))",
    ),
    # api_key = "..."   "password": "..."   token='...'   \"secret\": \"...\"   api_key: str = "..."
    Form(
        (*NAME_WORDS, *FOREIGN_WORDS),
        rf"{STRONG}{_IS}{_WRAPPED}",
        rf"{_NO_VALUE}(?:{_VALUE}|{_LIST}|{_LITERAL})",
    ),
    Form(
        ("token",),
        rf"{TOKEN}{_IS}{_WRAPPED}",
        rf"{_NO_VALUE}(?![rbuf]?['\"][a-z]{{1,7}}['\"])(?:{_VALUE}|{_LIST}|{_LITERAL})",
    ),
    Form(
        ("pass", "pw", "mdp", "clave"),
        rf"{WHOLE}{_IS}{_WRAPPED}",
        rf"{_NO_VALUE}(?:{_ODD_VALUE}|{_LIKE_PASSWORD}(?![^\s,;'\"<>]))",
    ),
    # password=hunter   PASSWORD: 12345678
    Form(
        (*NAME_WORDS, *FOREIGN_WORDS),
        any_case(
            "password passwd passphrase passwort kennwort secret pwd contrase[nñ]a senha wachtwoord"
        )
        + rf"{NAME_END}(?![A-Za-z0-9])\\{{0,4}}['\"]?\]?[ \t]{{0,4}}(?:=(?!=)|:(?!:))[ \t]{{0,4}}",
        rf"{_LETTERS}|[0-9]{{4,40}}(?![^\s,;'\"<>])",
    ),
    Form(
        NAME_WORDS,
        rf"<[\w:-]{{0,40}}?(?:{STRONG}|{TOKEN}|{WHOLE})(?:[ \t][^<>\n]{{0,80}})?>",
        r"[^<>\n]{3,}(?=</)",
    ),
    Form(
        ("value=",),
        rf"(?:name|key)=['\"][\w.-]{{0,40}}?(?:{STRONG}|{TOKEN}|{WHOLE})['\"][ \t]{{1,8}}value=",
        _VALUE,
    ),
    # OPENAI_KEY=... : long, with a digit and a letter in it, no path and no words with marks between them
    Form(
        ("key",),
        r"[_-][kK](?i:ey)(?<!(?i:primary.key))(?<!(?i:foreign.key))(?<!(?i:cache.key))(?<!(?i:sort.key))"
        rf"{NAME_END}(?![A-Za-z0-9])\\{{0,4}}['\"]?\]?[ \t]{{0,4}}[:=][ \t]{{0,4}}\\{{0,4}}['\"]?",
        r"(?=[A-Za-z+=-]{0,200}[0-9])(?=[0-9+=-]{0,200}[A-Za-z])[A-Za-z0-9+=-]{16,}(?![A-Za-z0-9+=_./(\[-])",
    ),
    # key="...": long, without blanks, with a digit in it
    Form(
        ("key",),
        r"\b[kK](?i:ey)\\{0,4}['\"]?\s{0,4}[:=]\s{0,4}\\{0,4}['\"]",
        r"(?=[A-Za-z+/=_-]{0,200}[0-9])[A-Za-z0-9+/=_-]{20,}",
    ),
    # --- sentences
    Form(
        (*NAME_WORDS, *FOREIGN_WORDS),
        rf"{PASSWORDS}(?:[ \t]{{1,3}}(?:for|of|de|für|pour)(?:[ \t]{{1,3}}\w{{1,12}}){{1,3}}?)?{_SAYS}[ \t]{{0,3}}"
        r"(?:[:=：是为為]{1,2}[ \t]{0,3}|[ \t])['\"`]?",
        _LIKE_PASSWORD,
    ),
    Form(
        ("credential",),
        r"(?i:credentials?)[ \t:=]{1,4}['\"]?[\w.@-]{1,40}[/:]",
        _LIKE_PASSWORD,
    ),
    Form(
        ("key", "token", "secret"),
        rf"{KEYS}{_FILLED}[ \t]{{0,3}}(?:[:=][ \t]{{0,3}}|[ \t])['\"`]?",
        _LIKE_KEY,
    ),
    Form(
        ("pin", "otp", "code", "код", "one-time"),
        r"(?:PIN(?<![A-Za-z]PIN)|OTP(?<![A-Za-z]OTP)|TAN(?<![A-Za-z]TAN)|[pP]ass ?code|[oO]ne-time (?:code|password)|[vV]erification code"
        r"|2(?i:fa) code|[кК]од доступа)"
        r"(?:[ \t](?i:is|was|code)){0,2}[ \t:=]{1,4}['\"]?",
        r"[0-9]{4,10}(?![0-9.])",
    ),
    Form((), r"(?<![A-Za-z0-9_-])", rf"(?:{'|'.join(VENDOR_KEYS)})"),
)


@functools.cache
def named() -> re.Pattern[str]:
    """The end of a name whose value is a secret."""
    return re.compile(rf"(?:{STRONG}|{TOKEN}|{WHOLE})$")


def is_stand_in(value: str) -> bool:
    """Whether a value only stands for a secret: ``<pad>``, ``[MASK]``, ``{token}``."""
    return re.fullmatch(_STAND_INS, value) is not None
