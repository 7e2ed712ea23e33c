"""All forms of secrets, as one table: where they occur, what is before them, and what they consist of.

Each pattern begins with a specific character and consumes what it matched, and each repetition has a limit, so the time
is linear in the length of any text.
"""

from __future__ import annotations

import functools
import re

from .form import Form
from .names import (
    ENVIRONMENT_NAME,
    FOREIGN_WORDS,
    KEYS,
    MANY,
    NAME_END,
    NAME_WORDS,
    PASSWORDS,
    PLAIN_KEY,
    STRONG,
    TOKEN,
    WHOLE,
    any_case,
)
from .shell import FORMS as SHELL_FORMS
from .values import (
    FILLED,
    FIRST,
    IS,
    ITEM,
    LETTERS,
    LIKE_KEY,
    LIKE_PASSWORD,
    LIST,
    LITERAL,
    NO_VALUE,
    ODD_VALUE,
    QUOTED,
    SAYS,
    STAND_INS,
    VALUE,
    WRAPPED,
)
from .vendors import KEYS as VENDOR_KEYS

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
        rf"(?![^\s/@:]{{0,200}}:(?:{STAND_INS})@)[^\s/@:'\"]{{0,200}}:[^\s/'\"]{{1,200}}(?=@)",
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
    # https://conda.example.org/t/.../channel
    Form(
        ("/t/",),
        r"://[^\s/'\"]{1,100}/t/",
        r"(?=[A-Za-z-]{0,60}[0-9])[A-Za-z0-9-]{12,}(?=/)",
    ),
    # ?token=... and &sig=... in a URL
    Form(
        ("?", "&", "#"),
        r"[?&#](?i:[a-z_-]{0,20}(?:token|password|passwd|secret|api_?key|access_?key)|code(?==[^\s&]{8})|key|sig|signature|pwd?|pass|app_?id"
        r"|credential|ticket|auth|x-amz-[a-z-]{1,30}|_{0,2}sign(?==[^\s&]{16})|(?:u|user|login)=[^\s&'\"]{1,60}&p)=",
        rf"(?!(?:{STAND_INS})?(?:[&'\"\s]|\Z))[^\s&'\"#]+",
    ),
    # Authorization: Bearer abc...   Cookie: session=...; and both as entries of a dict
    Form(
        ("authorization",),
        r"[aA](?i:uthorization)\\{0,4}['\"]?\s{0,4}[:=]\s{0,4}[bf]?\\{0,4}['\"]?(?i:digest )",
        r"[^\n]{4,}",
    ),
    Form(
        ("authorization",),
        r"[aA](?i:uthorization)\\{0,4}(?:['\"]?\s{0,4}[:=]|['\"]\s{0,4},(?=\s{0,4}[bf]?['\"][^'\"\n]{12}))\s{0,4}[bf]?\\{0,4}['\"]?(?i:[a-z]{3,12} )?",
        rf"(?!(?:{STAND_INS})(?:['\"\s]|\Z)|[A-Za-z_.]{{1,60}}[(\[]|[A-Za-z]{{3,12}} |required|failed)[^\s'\",;}}]{{4,}}",
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
        r"(?=[A-Za-z+/._~-]{0,200}[0-9=])[A-Za-z0-9+/=._~-]{8,}",
    ),
    *SHELL_FORMS,
    # os.environ.setdefault("HF_TOKEN", "...")   monkeypatch.setenv("HF_TOKEN", "...")   %env HF_TOKEN ...
    Form(
        ("env",),
        r"(?:putenv|getenv|setenv|env(?:iron)?\.(?:setdefault|get|pop))\(\s{0,80}\\{0,4}['\"]"
        rf"{ENVIRONMENT_NAME}\\{{0,4}}['\"]\s{{0,80}},\s{{0,80}}(?:[a-z]{{1,20}}\s{{0,4}}=\s{{0,4}})?",
        VALUE,
    ),
    Form(
        ("env",),
        rf"%(?:set_)?env[ \t]{{1,8}}{ENVIRONMENT_NAME}(?:[ \t]{{0,4}}=[ \t]{{0,4}}|[ \t]{{1,8}})",
        r"\S[^\n]*",
    ),
    Form(
        ("setattr",),
        rf"setattr\([^\n,]{{1,80}},[ \t]{{0,4}}['\"]\w{{0,40}}?(?:{STRONG}|{TOKEN}|{WHOLE})['\"][ \t]{{0,4}},[ \t]{{0,4}}",
        VALUE,
    ),
    # config.set("db", "password", "..."), ("api_key", "...")
    Form(
        (*NAME_WORDS, "key"),
        rf"[(,][ \t]{{0,4}}['\"][\w#.-]{{0,40}}?(?:{STRONG}|{TOKEN}|{WHOLE}|(?i:key))['\"][ \t]{{0,4}},\s{{0,40}}",
        rf"(?=['\"][^'\"\n]{{0,200}}[0-9])(?=['\"][^'\"\n ]{{6}}){VALUE}",
    ),
    # auth=("ann", "..."), HTTPBasicAuth("ann", "..."), login("ann", "..."), login("...")
    Form(
        ("auth", "cred"),
        rf"{any_case('auth creds? credentials? basic_auth')}\\{{0,4}}['\"]?[ \t]{{0,4}}[=:][ \t]{{0,4}}[(\[][ \t]{{0,4}}\(?{FIRST}",
        VALUE,
    ),
    # login_user("ann", "..."), check_password("...")
    Form(
        ("login", "auth", "cred"),
        rf"{any_case('login auth credential')}[A-Za-z_]{{0,30}}\(\s{{0,40}}{FIRST}",
        ODD_VALUE,
    ),
    Form(
        ("pass", "secret", "pwd"),
        r"(?<![A-Za-z.])(?!(?:get|read|load|fetch|ask|input|prompt|keyring)[A-Za-z_.]{0,20}(?:pass|secret|pwd))[A-Za-z_.]{0,30}?"
        r"(?i:password|passwd|passphrase|secret|pwd)[A-Za-z_]{0,20}\(\s{0,40}",
        rf"(?=[rbu]{{0,2}}['\"][^'\"\n\s/]{{0,60}}[0-9])(?=[rbu]{{0,2}}['\"][^'\"\n\s/]{{6}}){VALUE}",
    ),
    Form(
        ("send_keys", "fill("),
        r"\.(?:send_keys|fill)\((?:\s{0,40}['\"][^'\"\n]{0,60}['\"],[ ]{0,4})?",
        ODD_VALUE,
    ),
    Form(
        ("basic", "bearer", "token "),
        r"['\"](?:Basic|Bearer|Token|token) ?['\"][ \t]{0,4}\+[ \t]{0,4}",
        VALUE,
    ),
    Form(("secrets.", "secret_"), r"secrets?[._]\w{0,10}put\w{0,10}\([^\n]{0,200}?value=", VALUE),
    Form(("identified by",), r"(?i:identified by)[ \t]{1,4}", QUOTED),
    Form(("securestring",), r"ConvertTo-SecureString[ \t]{1,4}(?:-String[ \t]{1,4})?", VALUE),
    Form(
        ("auth", "login", "sign"),
        rf"{any_case('auth authenticate login log_in sign_?in set_credentials authorize')}\(\s{{0,40}}{FIRST}",
        VALUE,
    ),
    Form(
        ("login", "fernet", "auth", "set_", "with_"),
        rf"(?:login|Fernet|authenticate|(?:set|with|use|add)_?(?:{STRONG}|{TOKEN}))\(\s{{0,40}}",
        rf"(?=[rbu]{{0,2}}['\"][^'\"\n\s]{{0,60}}[0-9])(?=[rbu]{{0,2}}['\"][^'\"\n]{{8}}){VALUE}",
    ),
    Form(("session(",), rf"\bSession\(\s{{0,40}}{QUOTED},\s{{0,40}}", VALUE),
    Form(("create(",), rf"URL\.create\(\s{{0,40}}{QUOTED},\s{{0,40}}{QUOTED},\s{{0,40}}", VALUE),
    Form(
        ("key",),
        r"[(,][ \t]{0,4}['\"][\w.-]{0,60}(?i:key)[\w.-]{0,60}['\"][ \t]{0,4},[ \t]{0,4}['\"]",
        r"(?=[A-Za-z+/=]{0,80}[0-9])[A-Za-z0-9+/=]{32,}",
    ),
    Form(
        ("minio(", "client("),
        rf"(?:[mM]inio|[cC]lient)\(\s{{0,40}}{QUOTED},\s{{0,40}}{QUOTED},\s{{0,40}}",
        rf"(?=['\"][^'\"\n]{{0,60}}[0-9])(?=['\"][^'\"\n \t]{{12}}){VALUE}",
    ),
    # AES.new(b"...")
    Form(
        ("aes", "chacha", "arc4", "blowfish", "secretbox"),
        r"(?:AES|ChaCha20\w{0,12}|ARC4|Blowfish|SecretBox|AESGCM)(?:\.new)?\(\s{0,40}(?:key[ \t]{0,4}=[ \t]{0,4})?",
        VALUE,
    ),
    # connect("host", "ann", "..."), connect("host", 22, "ann", "...")
    Form(
        ("connect(",),
        rf"connect\(\s{{0,40}}{QUOTED},\s{{0,40}}(?:\d{{1,5}},\s{{0,40}})?{QUOTED},\s{{0,40}}",
        VALUE,
    ),
    Form(
        ("jwt", "hmac"),
        r"(?:jwt\.(?:en|de)code\([^\n,]{1,80},[ \t]{0,4}|hmac\.new\([ \t]{0,4})",
        VALUE,
    ),
    Form(('auth"',), r"\"auth\"[ \t]{0,4}:[ \t]{0,4}", r"\"[A-Za-z0-9+/=]{12,}\""),
    # --- names
    # user, password = "ann", "..."
    Form(
        NAME_WORDS,
        rf"(?:{STRONG}|{TOKEN}|{WHOLE})(?:[ \t]{{0,4}},[ \t]{{0,4}}[A-Za-z_]\w{{0,40}}){{0,4}}[ \t]{{0,4}}=(?!=)[ \t]{{0,4}}\(?",
        rf"(?=[^\n]{{0,200}}['\"]){ITEM}(?:[ \t]{{0,4}},[ \t]{{0,4}}{ITEM}){{1,6}}(?=[ \t)]{{0,8}}(?:#|\n|\Z))",
    ),
    # api_key = Field(default="...")   def password(): return "..."   passwords["ann"] = "..."
    Form(
        NAME_WORDS,
        rf"(?:{STRONG}|{TOKEN}){IS}[A-Za-z_][\w.]{{0,40}}\((?:\w{{1,20}}[ \t]{{0,4}}=[ \t]{{0,4}})?",
        rf"(?=[rbu]?['\"][^'\"\s./]{{8}})(?=[rbu]?['\"][^'\"\s./]{{0,80}}[0-9])(?![rbu]?['\"][A-Z0-9_]{{1,80}}['\"]){ODD_VALUE}",
    ),
    Form(NAME_WORDS, rf"(?:{STRONG}|{TOKEN})\(\)[^\n]{{0,30}}return[ \t]{{1,4}}", VALUE),
    Form(
        ("passw", "secrets", "credentials", "keys", "tokens"),
        rf"{MANY}\[[^\]\n]{{1,60}}\][ \t]{{0,4}}=[ \t]{{0,4}}",
        VALUE,
    ),
    Form(
        ("signature",),
        r"[sS]ignature\\{0,4}['\"]?[ \t]{0,4}[=:][ \t]{0,4}\\{0,4}['\"]?",
        r"(?=[A-Za-z+/=_-]{0,80}[0-9])[A-Za-z0-9+/=_-]{32,}(?![\w(])",
    ),
    # PASSWORDS = ["...", "..."], API_KEYS = {"prod": "..."}
    Form(
        ("passw", "secrets", "credentials", "keys", "tokens"),
        rf"{MANY}{IS}(?=[(\[{{]\s{{0,80}}['\"])",
        r"[(\[{](?=[^)\]}]{0,400}[0-9])[^)\]}]{4,2000}[)\]}]",
    ),
    # api_key = "..."   "password": "..."   token='...'   \"secret\": \"...\"   api_key: str = "..."
    Form(
        (*NAME_WORDS, *FOREIGN_WORDS),
        rf"{STRONG}{IS}{WRAPPED}",
        rf"{NO_VALUE}(?:{VALUE}|{LIST}|{LITERAL})",
    ),
    Form(
        ("token",),
        rf"{TOKEN}{IS}{WRAPPED}",
        rf"{NO_VALUE}(?![rbuf]?['\"][a-z]{{1,7}}['\"])(?:{VALUE}|{LIST}|{LITERAL})",
    ),
    Form(
        ("pass", "pw", "mdp", "clave"),
        rf"{WHOLE}{IS}{WRAPPED}",
        rf"{NO_VALUE}(?:{ODD_VALUE}|{LIKE_PASSWORD}(?![^\s,;'\"<>]))",
    ),
    # mail_pass = "abcd efgh ijkl mnop": a password for one program
    Form(
        ("pass", "pw"),
        rf"(?:{STRONG}|{WHOLE}){IS}['\"]?",
        r"[a-z0-9]{4}(?: [a-z0-9]{4}){3}(?![A-Za-z0-9])",
    ),
    # password=hunter   PASSWORD: 12345678
    Form(
        (*NAME_WORDS, *FOREIGN_WORDS),
        any_case(
            "password passwd passphrase passwort kennwort secret pwd contrase[nñ]a senha wachtwoord"
        )
        + rf"{NAME_END}(?![A-Za-z0-9])\\{{0,4}}['\"]?\]?[ \t]{{0,4}}(?:=(?!=)|:(?!:))[ \t]{{0,4}}",
        rf"{LETTERS}|[0-9]{{4,40}}(?![^\s,;'\"<>])",
    ),
    Form(
        NAME_WORDS,
        rf"<[\w:-]{{0,40}}?(?:{STRONG}|{TOKEN}|{WHOLE})(?:[ \t][^<>\n]{{0,80}})?>",
        r"[^<>\n]{3,}(?=</)",
    ),
    Form(
        ("value=",),
        rf"(?:name|key)=['\"][\w.-]{{0,40}}?(?:{STRONG}|{TOKEN}|{WHOLE})['\"][ \t]{{1,8}}value=",
        VALUE,
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
    # wrong password given: X
    Form(
        (*NAME_WORDS, *FOREIGN_WORDS),
        rf"{PASSWORDS}(?:[ \t]\w{{1,14}}){{1,2}}[ \t]?:[ \t]{{1,3}}['\"`]?",
        LIKE_PASSWORD,
    ),
    Form(
        ("user ",),
        r"(?m:^)user[ \t]{1,4}[\w.-]{1,40}[ \t]{1,4}(?=\S{5,60}(?:\n|\Z))",
        LIKE_PASSWORD,
    ),
    Form(
        (*NAME_WORDS, *FOREIGN_WORDS),
        rf"{PASSWORDS}(?:[ \t]{{1,3}}(?:for|of|de|für|pour)(?:[ \t]{{1,3}}\w{{1,12}}){{1,3}}?)?{SAYS}[ \t]{{0,3}}"
        r"(?:[:=：是为為]{1,2}[ \t]{0,3}|[ \t])['\"`]?",
        LIKE_PASSWORD,
    ),
    Form(
        ("credential",),
        r"(?i:credentials?)[ \t:=]{1,4}['\"]?[\w.@-]{1,40}[/:]",
        LIKE_PASSWORD,
    ),
    Form(
        ("key", "token", "secret"),
        rf"{KEYS}{FILLED}[ \t]{{0,3}}(?:[:=][ \t]{{0,3}}|[ \t])['\"`]?",
        LIKE_KEY,
    ),
    # The token that was sent with the request is invalid: X
    Form(
        ("key", "token", "secret"),
        rf"{KEYS}(?:[ \t]{{1,3}}[a-z]{{1,12}}){{4,9}}[ \t]?:[ \t]{{1,3}}['\"`]?",
        LIKE_KEY,
    ),
    Form(
        ("key",),
        rf"{PLAIN_KEY}[\w]{{0,20}}['\"]?\]?[ \t]{{0,3}}(?:is|was|now|=|:)?[ \t]{{0,3}}(?:is[ \t])?['\"`]?",
        r"(?=[A-Za-z]{0,40}[0-9])(?=[A-Z0-9]{0,40}[a-z])(?=[a-z0-9]{0,40}[A-Z])[A-Za-z0-9]{24,}(?![A-Za-z0-9_./(\[-])",
    ),
    Form(
        ("code",),
        r"(?i:auth\w{0,12}|access|device|login|recovery|backup|security|activation)[ _-](?i:code)s?[ \t:=]{1,4}(?:is[ \t])?['\"]?",
        r"(?=[A-Za-z-]{0,40}[0-9])[A-Za-z0-9-]{6,}(?![\w./(\[-])",
    ),
    # seed phrase: a dozen words or more
    Form(
        ("phrase", "mnemonic"),
        r"(?:(?i:seed|recovery|backup|secret)[ _-]?(?i:phrase|words)|[mM]nemonic)['\"]?[ \t]{0,3}(?:is|[:=])[ \t]{0,3}['\"]?",
        r"(?:[a-z]{3,8}[ ,]{1,3}){11,23}[a-z]{3,8}",
    ),
    # login: ann / ...
    Form(
        ("login", "user"),
        r"(?i:login|user(?:name)?)[ \t]{0,2}[:=][ \t]{0,2}[\w.@-]{1,60}[ \t]{0,2}[/|][ \t]{0,2}",
        LIKE_PASSWORD,
    ),
    Form(
        ("pin", "otp", "code", "код", "one-time"),
        r"(?:PIN(?<![A-Za-z]PIN)|pin(?<![A-Za-z]pin)(?= is | code )|OTP(?<![A-Za-z]OTP)|TAN(?<![A-Za-z]TAN)|[pP]ass ?code|[oO]ne-time (?:code|password)|[vV]erification code"
        r"|2(?i:fa) code|[кК]од доступа)"
        r"(?:[ \t](?i:is|was|code)){0,2}[ \t:=]{1,4}['\"]?",
        r"[0-9]{4,10}(?![0-9.])",
    ),
    # password changed from X to Y
    Form(("pass",), r"\[redacted\] (?:to|into) ['\"]?", LIKE_PASSWORD),
    Form((), r"(?<![A-Za-z0-9_-])", rf"(?:{'|'.join(VENDOR_KEYS)})"),
)


@functools.cache
def named() -> re.Pattern[str]:
    """The end of a name whose value is a secret."""
    return re.compile(rf"(?:{STRONG}|{TOKEN}|{WHOLE})$")
