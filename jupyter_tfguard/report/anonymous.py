"""Remove what identifies a person or a machine from a report before it leaves the machine: homes, names, addresses, secrets.

Secrets were already removed when the report was saved. The text is searched again with the current patterns.
``/home/DOMAIN/bob`` cannot be distinguished from ``/home/bob/folder``: only the domain is removed, as if it were the name.
"""

from __future__ import annotations

import getpass
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..decode import dict_of
from ..redact import REDACTED, clean_value, redact
from .people import HOST, PEOPLE, USER

HOME = "~"

# Names that identify nobody, or that are also ordinary words: removed only where a name is meant.
_ORDINARY = frozenset(
    """
    adam admin app cluster compute cpu cuda data debian docker gpu guest home host jovyan jupyter keras kernel lab linux
    local localhost machine main master max memory model node notebook process python root run server student tensorflow
    test train ubuntu user work worker workspace
    """.split()  # noqa: SIM905
)
# Values of these keys are terms of the format if they have the form of a term, even if they equal a person's name.
_VOCABULARY = frozenset(
    {
        "batch_dtype", "boot_id", "cause", "cell_id", "columns", "confidence", "crashed_at", "how", "id", "kernel_id", "kind",
        "limit_name", "module", "peak_source", "pid_namespace", "reason", "signal", "source", "state", "unit", "what",
        "written_at",
    }
)  # fmt: skip
_TERM = re.compile(r"[A-Za-z0-9][\w.:\[\]-]{0,99}|container limit|system log|GPU \d{1,3} memory")
_METRIC = re.compile(r"[a-z]+[0-9]{0,3}\.[a-z_]+_(?:bytes|celsius|count|fraction|seconds|watts)")

# Folders of software may contain a folder "home" that belongs to no user.
_FOLDER = r"/{1,3}(?!(?:s?bin|include|lib(?:32|64)?|node_modules|share|src|(?:dist|site)-packages)/)[\w.@+-]{1,64}"
_NAME = r"[^/\s'\"<>:;,()\[\]\\]{1,64}"
# Windows user names may contain spaces: they end at the next separator, or at the end of the text.
_BLANKS = r"[^\s\\/'\"<>:|*?;,]{1,64}(?: [^\s\\/'\"<>:|*?;,]{1,64}){0,4}(?=[\\/'\"]|\Z)"
_WINDOWS_NAME = rf"(?:{_BLANKS}|[^\s\\/'\"<>:|*?;,)\]]{{1,64}})"
_USERS = r"(?i:Users|Documents and Settings)"
# Start of a path: not inside a word or another path, but also after -I, and after \n as repr() writes it.
_BEGIN = r"(?:(?<![\w/.~-])(?!(?<=:)//)|(?<=\\[nrt])|(?<=[^\w-]-[A-Za-z])|(?<=^-[A-Za-z])|(?<=-isystem)|(?<!http)(?<!https)(://[^\s/'\"<>]{0,255}))"
_HOMES = (
    # /mnt/c/Users/Bob Miller of WSL, /c/Users/Bob Miller of its shells
    rf"(?:{_FOLDER}){{0,4}}/[A-Za-z]/{_USERS}/{_WINDOWS_NAME}",
    # C:\Users\Bob Miller, also with doubled backslashes and with slashes
    rf"/?[A-Za-z]:[\\/]{{1,4}}{_USERS}[\\/]{{1,4}}{_WINDOWS_NAME}",
    # /home/bob, /nfs/home/bob, /Users/bob
    rf"(?:{_FOLDER}){{0,4}}/{{1,3}}(?:home|Users)/{{1,3}}(?![\w-]{{1,64}}\.(?:html?|js|ts|py)(?!\w)){_NAME}(?![\w.-])",
)
_SEPARATOR = r"%(?:2[Ff]|5[Cc])"
_QUOTED_HOME = re.compile(
    # \\wsl$\Ubuntu\home\bob
    rf"\\{{1,4}}(?i:home|users)\\{{1,4}}{_WINDOWS_NAME}"
    # %2Fhome%2Fbob%2Fproject
    rf"|(?:[A-Za-z]%3[Aa])?{_SEPARATOR}(?i:home|users){_SEPARATOR}(?:(?!{_SEPARATOR})[^/\s'\"<>:;,&?#)\]\\]){{1,64}}"
)
_WHOSE = re.compile(rf"(.*?[\\/](?:home|{_USERS})[\\/]([^\\/]+))(?:[\\/]|\Z)")


@dataclass(frozen=True)
class Identity:
    """User and host names of a machine. An empty text means not known."""

    home: str
    user: str
    host: str

    @staticmethod
    def of_here() -> Identity:
        """The identity that this process can read; what it cannot read is not known."""
        try:
            home = str(Path.home())
        except RuntimeError:
            home = ""
        try:
            user = getpass.getuser()
        except (KeyError, OSError, ImportError):  # no account with this user id
            user = ""
        return Identity(home, user, socket.gethostname())

    @staticmethod
    def of_kernel(bundle: dict[str, Any]) -> Identity:
        """The identity in the kernel's recording. The kernel may have run on another machine that shares our folders."""
        header = dict_of(dict_of(bundle.get("kernel")).get("header"))
        host = str(header.get("host") or "").partition("/")[0]
        found = (_WHOSE.match(str(header.get(name) or "")) for name in ("cwd", "prefix"))
        whose = next(filter(None, found), None)
        return Identity("", "", host) if whose is None else Identity(whose[1], whose[2], host)


class Anonymous:
    """Removes what identifies a person or machine, and counts the removals.

    Args:
        identities: Identities whose names are removed. Home folders of any user are removed too.
        first: Patterns that are replaced before anything else, each with its replacement.
        last: Functions that change each text after everything else.

    Attributes:
        count: Number of removals so far.
    """

    def __init__(
        self,
        *identities: Identity,
        first: Sequence[tuple[re.Pattern[str], str]] = (),
        last: Sequence[Callable[[str], str]] = (),
    ) -> None:
        self.count = 0
        self._first, self._last = tuple(first), tuple(last)
        homes = {identity.home for identity in identities if identity.home.startswith("/")}
        # /data is the home folder in some containers, but a part of many other paths.
        own = [
            rf"(?:{_FOLDER}){{0,{4 if home.count('/') > 1 else 0}}}{re.escape(home)}(?![\w.-])"
            for home in sorted(homes - {"/"}, key=len, reverse=True)
        ]
        self._home = re.compile(rf"{_BEGIN}(?:{'|'.join((*own, *_HOMES))})")
        users = {identity.user for identity in identities}
        hosts = {identity.host for identity in identities}
        hosts |= {host.partition(".")[0] for host in hosts}
        hosts |= {written for host in hosts for written in (host.upper(), host.lower())}
        self._names = [*_patterns(users, USER), *_patterns(hosts, HOST)]

    def value(self, value: Any) -> Any:
        """A JSON value with :meth:`text` applied to every text in it; keys and terms of the format are not changed."""
        return self._value(clean_value(value))

    def _value(self, value: Any, key: str = "") -> Any:
        if isinstance(value, str):
            return value if is_term(key, value) else self.text(value)
        if isinstance(value, dict):
            return {redact(name): self._value(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [self._value(item, key) for item in value]
        return value

    def text(self, text: str) -> str:
        """The text without secrets, home folders, and names of user and host."""
        for pattern, mark in self._first:
            text, others = pattern.subn(mark, text)
            self.count += others
        found = redact(text)
        self.count += found.count(REDACTED)
        found, homes = self._home.subn(lambda path: (path[1] or "") + HOME, found)
        found, quoted = _QUOTED_HOME.subn(HOME, found)
        self.count += homes + quoted
        for pattern, mark in (*self._names, *PEOPLE):
            found, names = pattern.subn(mark, found)
            self.count += names
        for change in self._last:
            changed = change(found)
            self.count += changed != found
            found = changed
        return found


def is_term(key: str, text: str) -> bool:
    """Whether a value is a term of the format, and no text of a person."""
    if key == "name":  # name of a curve; elsewhere, the name of a user's array
        return _METRIC.fullmatch(text) is not None
    return key in _VOCABULARY and _TERM.fullmatch(text) is not None


def _patterns(names: set[str], mark: str) -> Iterator[tuple[re.Pattern[str], str]]:
    longest_first = sorted((name for name in names if len(name) > 1), key=len, reverse=True)
    ordinary = {name for name in longest_first if len(name) < 3 or name.lower() in _ORDINARY}
    distinctive = "|".join(re.escape(name) for name in longest_first if name not in ordinary)
    if distinctive:
        # Also after \\n as repr() writes it.
        whole = rf"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))(?:{distinctive})(?![A-Za-z0-9])"
        yield re.compile(whole), mark
    words = "|".join(re.escape(name) for name in longest_first if name in ordinary)
    if words:
        # name@host, and near the root of a path: /scratch/name
        at = rf"(?<![\w.-])(?:{words})(?=@\w)|(?<=[\w\]]@)(?:{words})(?![\w-])"
        yield re.compile(at), mark
        path = rf"((?<![\w/.~\]-])/(?:[\w.-]{{1,64}}/){{0,2}})(?:{words})(?=[/\s'\":,;)]|\Z)"
        yield re.compile(path), rf"\g<1>{mark}"
