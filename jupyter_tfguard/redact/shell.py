"""Forms of secrets among the arguments of programs."""

from __future__ import annotations

from .form import Form
from .names import STRONG, TOKEN
from .values import ARGUMENT, REST, STAND_INS, WORD

FORMS: tuple[Form, ...] = (
    # --password hunter2   --http-password=hunter2   machine h login ann password hunter2   curl -u ann:hunter2
    Form(
        ("--",),
        r"--(?i:password|passwd|passphrase|pwd|token|secret|api-?key|[a-z]{1,20}-(?:password|passwd|pass|pw|token|secret|key))[ \t=]{1,4}",
        r"(?!['\"]?,)[^\s-][^\s,]+|'[^'\n]+'|\"[^\"\n]+\"",
    ),
    Form(
        ("login", "machine"),
        r"\blogin\s{1,40}\S{1,100}\s{1,40}(?:account\s{1,40}\S{1,100}\s{1,40})?password\s{1,40}",
        r"[^\s'\"]+",
    ),
    Form(
        (" -",),
        r" (?:-[A-Za-z]{0,6}[uUa]|--(?:proxy-)?user)[ =]{1,2}['\"]?[A-Za-z0-9][^\s:'\"/]{0,100}:",
        rf"(?!(?:{STAND_INS})(?:[\s'\"]|\Z)|\d{{1,5}}(?:[\s:]|\Z)|/)[^\s'\"]+",
    ),
    Form(("mysql", "mariadb"), rf"\b(?:mysql|mariadb)\w{{0,12}}{REST}\s-p", ARGUMENT),
    Form(("7z", "rar "), rf"\b(?:7z[ar]?|rar|unrar)(?: {REST})?\s-h?p", ARGUMENT),
    Form(("zip ",), rf"\b(?:un)?zip(?: {REST})?\s-P ?", ARGUMENT),
    Form(
        (" -p",),
        r" -u[ =]?[^\s'\"]{1,60} {1,4}-p[ =]?",
        rf"(?=['\"]?[^\s'\"]{{0,60}}[0-9!#$%&*+?@^~]){ARGUMENT}",
    ),
    Form(
        (" --",),
        r" --?[a-z-]{0,20}key[ \t]{1,4}",
        r"['\"]?(?=[A-Za-z+/=_-]{0,80}[0-9])[A-Za-z0-9+/=_-]{16,}['\"]?(?![\w./-])",
    ),
    # -password X, -storepass X
    Form(
        (" -",),
        r" -(?i:password|passphrase|passwd|pw|token|secret|api-?key|(?:store|key|src|dest)[a-z]{0,8}pass)[ \t]{1,4}",
        rf"(?=['\"]?[^\s'\"/]{{0,60}}[0-9!#$%&*+?@^~]){ARGUMENT}",
    ),
    # ["mysql", "-pX"], ["curl", "-u", "ann:X"]
    Form(
        ("mysql", "mariadb"),
        rf"['\"](?:mysql|mariadb)\w{{0,12}}['\"]{REST}['\"]-p",
        r"[^'\"\n]{3,}",
    ),
    Form(
        ("'-u'", '"-u"', "--user"),
        r"['\"](?:-u|--user)['\"],[ \t]{0,4}['\"][^:'\"\n/]{1,60}:",
        r"[^'\"\n]{3,}",
    ),
    Form(("vault ",), r"\bvault (?:kv put|write) [^\n]{0,80}? [\w-]{1,60}=", ARGUMENT),
    Form(
        ("<<<",),
        r"<<<[ \t]{0,4}",
        rf"(?=['\"]?[^\s'\"]{{0,60}}[0-9])(?=['\"]?[^\s'\"]{{0,60}}[A-Za-z])(?=['\"]?[^\s'\"]{{8}}){ARGUMENT}",
    ),
    Form(("obscure",), r"rclone obscure ", ARGUMENT),
    # sftp ann:hunter2@host
    Form(
        ("ftp", "scp", "ssh", "rsync", "proxy"),
        rf"\b(?:(?:[sl]|nc)?ftp|scp|ssh|rsync|proxy\w{{0,10}}){REST}[\s'\"=][A-Za-z][\w.-]{{0,60}}:",
        r"(?=[^\s'\"@:/]{0,60}[0-9!#$%&*+?^~])[^\s'\"@:/]{5,80}(?=@[A-Za-z])",
    ),
    Form(("alias set",), r"\bmc alias set \S{1,60} \S{1,100} ", r"\S{1,100} \S{1,200}"),
    Form(("lftp",), rf"\blftp(?: {REST})?\s-u ?[^\s,]{{1,60}},", ARGUMENT),
    Form(("ssh-keygen",), rf"ssh-keygen(?: {REST})?\s-[NP] ?", ARGUMENT),
    Form(("/p:", "/rp "), r" /(?:p:|rp )", rf"(?=[^\s]{{0,60}}[0-9!#$%&*+?@^~]){ARGUMENT}"),
    Form(
        ("send ",),
        r"\bsend[ \t]{1,4}(?:--[ \t]{1,4})?(?=\"[^\"\n]{4,80}\\[rn]\")",
        r"\"[^\"\n]{4,}\"",
    ),
    Form(("_auth",), r"_auth[ \t]{0,4}=[ \t]{0,4}", r"[A-Za-z0-9+/=]{12,}"),
    Form(("sshpass",), r"sshpass -p ?", ARGUMENT),
    Form(("login", "mongo"), rf"\b(?:login|mongo\w{{0,10}})(?: {REST})?\s-p[ =]?", ARGUMENT),
    Form(("redis-cli",), rf"redis-cli(?: {REST})?\s-a ", ARGUMENT),
    Form(("ldap",), rf"\bldap\w{{2,10}}(?: {REST})?\s-w ?", ARGUMENT),
    Form(
        ("smb", "rpcclient"),
        rf"\b(?:smb\w{{2,10}}|rpcclient)(?: {REST})?\s-U ?['\"]?[^\s%]{{1,60}}%",
        r"[^\s'\"]+",
    ),
    Form(("net use", "net user"), r"\bnet user? [^\n]{1,80}?\\\\\S{1,80} ", r"(?!/)\S+"),
    Form(("openssl",), rf"openssl {REST}(?:-pass(?:in|out)? ?(?:pass:)|-k )", ARGUMENT),
    Form(("htpasswd",), r"htpasswd -\w{0,8}b\w{0,8} \S{1,100} \S{1,100} ", ARGUMENT),
    Form(
        ("echo", "printf"),
        r"\b(?:echo|printf)[ \t]{1,4}(?:-[ne]{1,2}[ \t]{1,4})?",
        rf"{WORD}(?=[ \t]{{0,4}}\|[ \t]{{0,4}}(?:\w{{1,20}}[ \t]{{1,4}}){{0,4}}(?:-S\b|[^\n|]{{0,80}}--?(?:password-)?stdin|(?:chpasswd|kinit|su|cryptsetup|gpg|ssh-add|smbpasswd)\b|[^\n|]{{0,60}}--with-token))",
    ),
    Form(
        ("<<<",),
        r"\b(?:login|token|passwd|kinit|su|sudo|cryptsetup|gpg|ssh-add|smbpasswd|mount)\b[^\n|]{0,60}<<<[ \t]{0,4}",
        ARGUMENT,
    ),
    Form(("from-literal",), r"--from-literal[ =][\w.-]{1,80}=", ARGUMENT),
    # aws configure set aws_secret_access_key X   git config user.password X   setx NAME X   ENV NAME X
    Form(
        ("config", "set", "env ", "authtoken", "requirepass", "create", "arg "),
        rf"\b(?:(?:config(?:ure)?|setx|ENV|ARG|set|create)\b(?:[ \t]+[^\s=]{{1,60}}){{0,6}}?[ \t]+[\w.-]{{0,60}}?(?:{STRONG}|{TOKEN}|(?i:key))"
        r"|(?:add-)?authtoken|requirepass)[ \t]+",
        rf"(?=['\"]?[^\s'\"]{{0,200}}[0-9!#$%&*+?@^~])(?!=){ARGUMENT}",
    ),
    Form(("kaggle",), r"kaggle config set -n \w{1,20} -v ", r"\S+"),
    Form(
        ("wandb",),
        r"wandb(?:[ .]login[ (]|: (?=[^\n]{0,80}netrc))[^\n]{0,100}?",
        r"\b[0-9a-f]{40}\b|(?<![\w/.])[A-Za-z0-9_-]{36,}(?![\w/.])",
    ),
    # host:5432:database:user:password
    Form(
        (":",),
        r"(?m:^)[\w.*-]{1,80}:(?:\d{4,5}|\*):[A-Za-z*][\w-]{0,60}:[\w.-]{1,60}:",
        r"[^\s:'\"]{3,}$",
    ),
)
