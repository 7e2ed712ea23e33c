"""What tells of a person or of a machine is taken out of a report that is about to leave it: home folders, names, secrets.

Secrets were taken out when the report was kept; they are looked for again here, by what is known of them today.
"""

from __future__ import annotations

import getpass
import re
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..redact import REDACTED, clean_value, redact

HOME = "~"
USER = "[user]"
HOST = "[host]"

_ANY_HOME = r"/(?:home|Users)/[^/\s'\"<>:;,)\]]{1,64}"
_SHORTEST = 3
# Names of accounts and machines that say nothing of anybody, and that stand in texts for other reasons.
_ORDINARY = frozenset(
    {
        "admin", "app", "data", "debian", "default", "docker", "guest", "home", "host", "jovyan", "jupyter", "kernel",
        "localhost", "model", "notebook", "python", "root", "runner", "server", "system", "test", "train", "ubuntu", "user",
        "vagrant", "work",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Identity:
    """Whose machine this is. An empty text: not known."""

    home: str
    user: str
    host: str

    @staticmethod
    def of_here() -> Identity:
        """As this process sees it; what it cannot see is not known."""
        try:
            home = str(Path.home())
        except RuntimeError:
            home = ""
        try:
            user = getpass.getuser()
        except (KeyError, OSError, ImportError):  # no account of this number
            user = ""
        return Identity(home, user, socket.gethostname())


class Anonymous:
    """Takes out what tells of somebody, and counts it.

    Args:
        identity: Whose names are looked for; home folders of others go as well.

    Attributes:
        count: Places where something was taken out until now.
    """

    def __init__(self, identity: Identity) -> None:
        self.count = 0
        homes = [_ANY_HOME]
        if len(identity.home) > 1:
            homes.insert(0, re.escape(identity.home))
        self._home = re.compile(rf"(?<![\w/.~-])(?:{'|'.join(homes)})(?![\w.-])")
        hosts = {identity.host, identity.host.partition(".")[0]}
        self._names = [
            (pattern, mark)
            for names, mark in (({identity.user}, USER), (hosts, HOST))
            if (pattern := _names(names)) is not None
        ]

    def value(self, value: Any) -> Any:
        """A JSON value with every text in it as :meth:`text` gives it; the names of keys stay."""
        return self._value(clean_value(value))

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {redact(key): self._value(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._value(item) for item in value]
        return value

    def text(self, text: str) -> str:
        """The text without secrets, home folders, and names of user and host."""
        found = redact(text)
        self.count += found.count(REDACTED)
        found, homes = self._home.subn(HOME, found)
        self.count += homes
        for pattern, mark in self._names:
            found, names = pattern.subn(mark, found)
            self.count += names
        return found


def _names(names: set[str]) -> re.Pattern[str] | None:
    telling = sorted(
        (n for n in names if len(n) >= _SHORTEST and n.lower() not in _ORDINARY),
        key=len,
        reverse=True,
    )
    if not telling:
        return None
    return re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, telling))})(?![A-Za-z0-9])")
