"""What tells of a person or of a machine is taken out of a report that is about to leave it: home folders, names, secrets.

Secrets were taken out when the report was kept; they are looked for again here, by what is known of them today.
"""

from __future__ import annotations

import getpass
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..diagnosis.typed import dict_of
from ..redact import clean_value, redact
from ..secret_forms import REDACTED
from .homes import Homes, home_of

USER = "[user]"
HOST = "[host]"

_SHORTEST = 3
# Names that say nothing of anybody, or that stand in texts for other reasons: taken out only where a name is meant.
_ORDINARY = frozenset(
    {
        "account", "adadelta", "adagrad", "adam", "adamax", "adamw", "admin", "app", "array", "batch", "best", "build", "callback", "cell", "cgroup", "checkpoint", "class",
        "client", "cluster", "compute", "container", "core", "cpu", "cuda", "data", "death", "debian", "debug", "default",
        "desktop", "dev", "device", "docker", "driver", "end", "epoch", "error", "event", "exit", "file", "fit", "float",
        "folder", "free", "gpu", "grace", "guard", "guest", "home", "host", "image", "images", "import", "info", "input",
        "int", "job", "jovyan", "jupyter", "keras", "kernel", "kill", "killed", "lab", "label", "labels", "laptop", "last",
        "layer", "learn", "len", "lib", "likely", "limit", "line", "linux", "list", "local", "localhost", "login", "loss",
        "machine", "main", "mark", "master", "max", "mean", "memory", "min", "model", "name", "node", "none", "notebook",
        "numpy", "nvidia", "object", "oom", "output", "path", "pid", "possible", "print", "process", "project", "projects",
        "public", "python", "range", "read", "report", "research", "root", "rss", "run", "runner", "sample", "save", "science",
        "server", "service", "session", "shape", "shared", "signal", "size", "source", "start", "std", "step", "stop",
        "student", "students", "sum", "swap", "system", "target", "task", "temp", "tensor", "tensorflow", "test", "text",
        "tf", "tfguard", "time", "tmp", "total", "train", "training", "true", "type", "ubuntu", "unit", "unknown", "used",
        "user", "users", "vagrant", "val", "value", "version", "watch", "will", "work", "worker", "workspace", "workstation",
    }
)  # fmt: skip
# What stands under these keys is vocabulary of the format when it is built as such, however somebody is called.
_VOCABULARY = frozenset(
    {
        "batch_dtype", "boot_id", "cause", "cell_id", "columns", "confidence", "died_at", "how", "id", "kernel_id", "kind",
        "limit_name", "module", "peak_source", "pid_namespace", "reason", "signal", "source", "state", "unit", "what",
        "written_at",
    }
)  # fmt: skip
_TERM = re.compile(r"[A-Za-z0-9][\w.:\[\]-]{0,99}|container limit|system log|GPU \d{1,3} memory")
_METRIC = re.compile(r"[a-z]+[0-9]{0,3}\.[a-z_]+_(?:bytes|celsius|count|fraction|seconds|watts)")


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

    @staticmethod
    def of_kernel(bundle: dict[str, Any]) -> Identity:
        """As the kernel's own recording tells: it may have run on another machine that shares our folders."""
        header = dict_of(dict_of(bundle.get("kernel")).get("header"))
        host = str(header.get("host") or "").partition("/")[0]
        for name in ("cwd", "prefix"):
            home, user = home_of(str(header.get(name) or ""))
            if home:
                return Identity(home, user, host)
        return Identity("", "", host)


class Anonymous:
    """Takes out what tells of somebody, and counts it.

    Args:
        identities: Whose names are looked for; home folders of others go as well.

    Attributes:
        count: Places where something was taken out until now.
    """

    def __init__(self, *identities: Identity) -> None:
        self.count = 0
        self._homes = Homes(*(identity.home for identity in identities))
        users = {identity.user for identity in identities}
        hosts = {identity.host for identity in identities}
        hosts |= {host.partition(".")[0] for host in hosts}
        hosts |= {written for host in hosts for written in (host.upper(), host.lower())}
        self._names = [*_patterns(users, USER), *_patterns(hosts, HOST)]

    def value(self, value: Any) -> Any:
        """A JSON value with every text in it as :meth:`text` gives it; keys and the format's own words stay."""
        return self._value(clean_value(value))

    def _value(self, value: Any, key: str = "") -> Any:
        if isinstance(value, str):
            return value if _is_vocabulary(key, value) else self.text(value)
        if isinstance(value, dict):
            return {redact(name): self._value(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [self._value(item, key) for item in value]
        return value

    def text(self, text: str) -> str:
        """The text without secrets, home folders, and names of user and host."""
        found = redact(text)
        self.count += found.count(REDACTED)
        found, homes = self._homes.taken_out(found)
        self.count += homes
        for pattern, mark in self._names:
            found, names = pattern.subn(mark, found)
            self.count += names
        return found


def _is_vocabulary(key: str, text: str) -> bool:
    if key == "name":  # of a curve; elsewhere of somebody's array
        return _METRIC.fullmatch(text) is not None
    return key in _VOCABULARY and _TERM.fullmatch(text) is not None and redact(text) == text


def _patterns(names: set[str], mark: str) -> Iterator[tuple[re.Pattern[str], str]]:
    longest_first = sorted((name for name in names if len(name) > 1), key=len, reverse=True)
    ordinary = {n for n in longest_first if len(n) < _SHORTEST or n.lower() in _ORDINARY}
    telling = "|".join(re.escape(name) for name in longest_first if name not in ordinary)
    if telling:
        # After \\n as repr() writes it, too.
        whole = rf"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))(?:{telling})(?![A-Za-z0-9])"
        yield re.compile(whole), mark
    words = "|".join(re.escape(name) for name in longest_first if name in ordinary)
    if words:
        # name@host, and near the root of a path: /scratch/name
        yield (
            re.compile(rf"(?<![\w.-])(?:{words})(?=@\w)|(?<=[\w\]]@)(?:{words})(?![\w-])"),
            mark,
        )
        path = rf"((?<![\w/.~\]-])/(?:[\w.-]{{1,64}}/){{0,2}})(?:{words})(?=[/\s'\":,;)]|\Z)"
        yield re.compile(path), rf"\g<1>{mark}"
