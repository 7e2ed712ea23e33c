"""Words after which a secret follows: names of variables and fields, words of sentences, in several languages.

Patterns begin with a plain letter, not with a class or a look behind: then `re` skips all other places quickly.
"""

from __future__ import annotations


def any_case(words: str, *, not_after: str = "") -> str:
    """Pattern of words in upper or lower case, none of them after a character of the class `not_after`.

    Each word is a pattern that begins with a letter; with `not_after`, one that has a fixed length.
    """
    rests: dict[str, list[str]] = {}
    for word in words.split():
        behind = f"(?<![{not_after}]{word})" if not_after else ""
        for first in dict.fromkeys((word[0].lower(), word[0].upper())):
            rests.setdefault(first, []).append(word[1:] + behind)
    return f"(?:{'|'.join(f'{first}(?i:{chr(124).join(rest)})' for first, rest in rests.items())})"


# Endings of names whose value is a secret. The restricted suffix keeps "tokenizer = ..." and "keyboard" readable.
_ENDINGS = """
    api[._-]?key access[._-]?key(?:[._-]?id)? account[._-]?key access[._-]?code auth[._-]?(?:key|header) credentials? app[._-]?(?:key|id)
    encryption[._-]?key license[._-]?key master[._-]?key passwd password pass[._-]?phrase pass-?word pass[._-]?code private[._-]?key(?:[._-]?id)? pwd psk creds auth[._-]?string
    db[._-]?(?:pass|pw) my[._-]?(?:pass|pw) pg[._-]?(?:pass|pw) ftp[._-]?(?:pass|pw) smtp[._-]?(?:pass|pw) mail[._-]?(?:pass|pw)
    root[._-]?(?:pass|pw) user[._-]?(?:pass|pw) admin[._-]?(?:pass|pw) login[._-]?(?:pass|pw) redis[._-]?(?:pass|pw)
    secret(?:[._-]?(?:key|string|value))? service[._-]?key session[._-]?(?:id|key) shared[._-]?(?:access[._-]?)?key signing[._-]?key storage[._-]?key
    subscription[._-]?key hmac[._-]?key aes[._-]?key enc[._-]?key crypto?[._-]?key cipher[._-]?key jwt[._-]?key rsa[._-]?key ssh[._-]?key fernet[._-]?key webhook[._-]?url key[_-]data certificate[_-]data authority[_-]data
"""
# German, French, Spanish, Catalan, Portuguese, Italian, Dutch, Polish, Czech, Swedish, Danish, Norwegian, Finnish,
# Hungarian, Turkish, Croatian, Slovenian, Lithuanian, Estonian, Indonesian, Russian, Bulgarian, Greek, Chinese, ...
_FOREIGN_NAMES = """
    passwort kennwort mot_?de_?passe contrase[nñ]a contrasenya senha palavra_?passe parola parolechiave wachtwoord has[lł]o
    heslo l[oö]senord adgangskode passord kodeord salasana jelsz[oó] sifre şifre lozinka geslo slapta[zž]odis parool
    kata_?sandi пароль парола κωδικός 密码 密碼 口令 パスワード 비밀번호 암호 סיסמה รหัสผ่าน
"""
NAME_END = r"(?:[_-]?(?:dev|prod|staging|test|live|old|new|value|default|backup|[0-9]{1,3}))?"
MANY = any_case(
    "passwords passwds secrets credentials api[._-]?keys access[._-]?keys secret[._-]?keys auth[._-]?tokens access[._-]?tokens"
)
STRONG = any_case(_ENDINGS + _FOREIGN_NAMES) + NAME_END
# Not pad_token and eos_token: these are words of a tokenizer.
_TOKENIZER = [
    "pad",
    "eos",
    "bos",
    "unk",
    "mask",
    "sep",
    "cls",
    "oov",
    "start",
    "end",
    "image",
    "special",
    "stop",
    "sot",
    "eot",
    "next",
    "prev",
    "text",
    "prompt",
    "patch",
    "audio",
    "video",
    "prefix",
    "suffix",
    "fim",
    "class",
    "boundary",
    "first",
    "last",
]
TOKEN = f"[tT](?i:oken){''.join(rf'(?<!(?i:{word}[_-]token))' for word in _TOKENIZER)}{NAME_END}"
# Too short to be an ending: a whole name, the part after a mark, or after a small letter: DB_PASS, DbPass, rootPw.
_SHORT = ("passw", "pass", "pw", "mdp", "clave")
_WHOLE = "|".join(
    rf"{first}(?i:{word[1:]})(?:(?<![A-Za-z0-9](?i:{word}))|(?<=[a-z0-9]{word.title()}))"
    for word in _SHORT
    for first in (word[0], word[0].upper())
)
WHOLE = rf"(?:{_WHOLE})_?{NAME_END}"
ENVIRONMENT_NAME = (
    r"[A-Za-z0-9_]{0,60}?(?i:key(?:_?id)?|token|secret|pass(?:word|wd|phrase)?|pwd?|credentials?|access_?code|session_?id"
    rf"|webhook_?url){NAME_END}"
)

# In sentences: "the password is X", "mot de passe : X".
_PASSWORDS = any_case(
    """
    password passwd pass.?phrase passcode passwort credentials? contrase[nñ]a contrasenya wachtwoord has[lł]o heslo l[oö]senord
    adgangskode passord kodeord salasana jelsz[oó] şifre lozinka kennwort пароль парола κωδικός kata.sandi mật.khẩu 密码 密碼 口令
    パスワード 비밀번호 암호 סיסמה รหัสผ่าน كلمة.المرور كلمة.السر
    """
)
_SHORT_PASSWORDS = any_case(
    r"pass(?=\s{0,3}(?:is|was|now|[:=])) pw pwd passe senha parola sifre geslo", not_after="A-Za-z"
)
PASSWORDS = f"(?:{_PASSWORDS}|{_SHORT_PASSWORDS})(?![A-Za-z_])"
_KINDS = any_case(
    "api access secret license account private encryption service auth rejected invalid"
)
# "the key is X": only if X is long and mixed.
PLAIN_KEY = any_case("key", not_after="A-Za-z_")
KEYS = f"(?:{any_case('token secret apikey')}|{_KINDS}[ _-]?(?i:key|token))(?![A-Za-z_])"
FOREIGN_WORDS = [
    "passe",
    "contrase",
    "senha",
    "parola",
    "wachtwoord",
    "has",
    "heslo",
    "senord",
    "adgangskode",
    "kodeord",
    "salasana",
    "jelsz",
    "ifre",
    "lozinka",
    "geslo",
    "slapta",
    "parool",
    "kennwort",
    "sandi",
    "парол",
    "код",
    "κωδικός",
    "密码",
    "密碼",
    "口令",
    "パスワード",
    "비밀번호",
    "암호",
    "סיסמה",
    "รหัสผ่าน",
    "khẩu",
    "mdp",
    "clave",
    "المرور",
    "السر",
]
# One of these is in every name above, in lower case. Not "key" and "data": code is full of them.
NAME_WORDS = (
    "api", "access", "account", "auth", "app_", "app-", "appid", "appkey", "encrypt", "license", "master", "private", "pass", "pw",
    "token", "secret", "service", "session", "shared", "signing", "storage", "subscription", "hmac", "fernet", "webhook", "cred", "psk", "aes", "enc", "crypt", "cipher", "jwt", "rsa", "ssh",
    "key_data", "key-data", "certificate",
)  # fmt: skip
