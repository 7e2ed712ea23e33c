"""Home folders in texts, of anybody and on any system, whatever stands before them in a path.

``/home/DOMAIN/bob`` cannot be told from ``/home/bob/folder``: of it, only the domain is taken for the name.
"""

from __future__ import annotations

import re
from urllib.parse import quote

HOME = "~"

# Folders of software may hold a folder "home" that is nobody's.
_FOLDER = r"/{1,3}(?!(?:s?bin|include|lib(?:32|64)?|node_modules|share|src|(?:dist|site)-packages)/)[\w.@+-]{1,64}"
_NAME = r"[^/\s'\"<>:;,()\[\]\\]{1,64}"
# Windows has names with blanks: they end at the next separator.
_BLANKS = r"[^\s\\/'\"<>:|*?;,]{1,64}(?: [^\s\\/'\"<>:|*?;,]{1,64}){0,4}(?=[\\/'\"])"
_WINDOWS_NAME = rf"(?:{_BLANKS}|[^\s\\/'\"<>:|*?;,)\]]{{1,64}})"
_USERS = r"(?i:Users|Documents and Settings)"
# A path begins here: not within a word or another path, but after -I and after \n as repr() writes it.
_BEGIN = r"(?:(?<![\w/.~-])(?!(?<=:)//)|(?<=\\[nrt])|(?<=[^\w-]-[A-Za-z])|(?<=^-[A-Za-z])|(?<=-isystem)|(?<!http)(?<!https)(://[^\s/'\"<>]{0,255}))"
_SEPARATOR = r"%(?:2[Ff]|5[Cc])"

_WINDOWS = (
    # /mnt/c/Users/Bob Miller of WSL, /c/Users/Bob Miller of its shells
    rf"(?:{_FOLDER}){{0,4}}/[A-Za-z]/{_USERS}/{_WINDOWS_NAME}",
    # C:\Users\Bob Miller, also with doubled backslashes and with slashes
    rf"/?[A-Za-z]:[\\/]{{1,4}}{_USERS}[\\/]{{1,4}}{_WINDOWS_NAME}",
)
_POSIX = rf"(?:{_FOLDER}){{0,4}}/{{1,3}}(?:home|Users)/{{1,3}}{_NAME}(?![\w.-])"
_OTHERS = (
    # \\wsl$\Ubuntu\home\bob
    rf"\\{{1,4}}(?i:home|users)\\{{1,4}}{_WINDOWS_NAME}",
    # %2Fhome%2Fbob%2Fproject
    rf"(?:[A-Za-z]%3[Aa])?{_SEPARATOR}(?i:home|users){_SEPARATOR}(?:(?!{_SEPARATOR})[^/\s'\"<>:;,&?#)\]\\]){{1,64}}",
)
_WHOLE = re.compile(
    rf"(?P<home>(?:{_FOLDER}){{0,4}}/[A-Za-z]/{_USERS}/(?P<a>[^/]+)"
    rf"|[A-Za-z]:[\\/]{_USERS}[\\/](?P<b>[^\\/]+)"
    rf"|(?:{_FOLDER}){{0,4}}/(?:home|Users)/(?P<c>[^/]+))(?:[\\/]|\Z)"
)

# Nothing but a home of Windows: what is behind the last blank may be its name, too.
_BARE = re.compile(
    rf"(?:(?:{_FOLDER}){{0,4}}/[A-Za-z]/|[A-Za-z]:[\\/]){_USERS}[\\/][^\s\\/:,'\"]+(?: [^\s\\/:,'\"]+){{0,3}}"
)


def home_of(path: str) -> tuple[str, str]:
    """The home folder that a path lies in, and whose it is; two empty texts when none is seen."""
    found = _WHOLE.match(path)
    if found is None:
        return "", ""
    return found["home"], found["a"] or found["b"] or found["c"]


class Homes:
    """Takes home folders out of texts; what follows them in a path stays.

    Args:
        known: Homes that are known, wherever they lie.
    """

    def __init__(self, *known: str) -> None:
        known = tuple(sorted({home for home in known if len(home) > 1}, key=len, reverse=True))
        # /data is a home in some containers, and a folder in many a path.
        own = [
            rf"(?:{_FOLDER}){{0,{4 if home.count('/') > 1 else 0}}}{re.escape(home)}(?![\w.-])"
            for home in known
            if home[0] == "/"
        ]
        own += [rf"(?i:{_any_slash(home)})(?![\w.-])" for home in known if home[0] != "/"]
        self._plain = re.compile(rf"{_BEGIN}(?:{'|'.join((*own, *_WINDOWS, _POSIX))})")
        quoted = [rf"(?i:{re.escape(quote(home, safe=''))})(?![\w.-])" for home in known]
        self._others = re.compile("|".join((*quoted, *_OTHERS)))

    def taken_out(self, text: str) -> tuple[str, int]:
        """The text without home folders, and how many there were."""
        if _BARE.fullmatch(text) and home_of(text)[0] == text:
            return HOME, 1
        text, plain = self._plain.subn(lambda found: (found[1] or "") + HOME, text)
        text, others = self._others.subn(HOME, text)
        return text, plain + others


def _any_slash(home: str) -> str:
    return r"[\\/]{1,4}".join(map(re.escape, re.split(r"[\\/]+", home)))
