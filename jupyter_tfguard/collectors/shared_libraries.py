"""Which file the dynamic loader would take for a library that TensorFlow opens by name, and which other copies there are.

Nothing is loaded: folders and names are looked at in the order of ld.so(8). Not followed: variants for single processors
(``glibc-hwcaps``), and libraries that another package has loaded before TensorFlow asks.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import SourceUnavailable
from .elf import RunPath, run_path
from .library_cache import cached_libraries
from .procfs import read_text

PATH_VARIABLE = "LD_LIBRARY_PATH"
# Where the loader looks last. Source: ld.so(8); the middle ones are Debian's.
_DEFAULT_FOLDERS = (
    "/lib/{processor}-linux-gnu",
    "/usr/lib/{processor}-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
)
_VERSION = re.compile(r"\.so\.(\d+(?:\.\d+)*)$")


class FoundBy(enum.Enum):
    """What leads the loader to a file."""

    LOADED = "loaded in this process"
    RUN_PATH = "TensorFlow's own search path"
    VARIABLE = PATH_VARIABLE
    CACHE = "the system's library cache"
    DEFAULT = "the system's library folders"


@dataclass(frozen=True)
class Copy:
    """One file that could be taken.

    Attributes:
        soname: The name it answers to.
    """

    soname: str
    path: Path
    found_by: FoundBy

    @property
    def version(self) -> str | None:
        """As the name of the real file tells it: ``9.3.0`` of ``libcudnn.so.9 -> libcudnn.so.9.3.0``.

        None when that says no more than the soname.
        """
        told = soname_version(self.path.resolve().name)
        return None if told == soname_version(self.soname) else told


def soname_version(name: str) -> str | None:
    """``12`` of ``libcudart.so.12``; None when the name carries no version."""
    found = _VERSION.search(name)
    return found[1] if found else None


class LibrarySearch:
    """The loader's search for what a set of libraries opens by name.

    Args:
        root: Folder below which the machine's files lie.
        environ: Environment variables of the process that opens.
        processor: As ``platform.machine`` gives it.
        openers: The libraries that open, whose run paths count.
    """

    def __init__(
        self, root: Path, environ: Mapping[str, str], processor: str, openers: Sequence[Path]
    ) -> None:
        self._root = root
        run_paths = [found for found in map(_run_path, openers) if found.folders]
        early = [f for p in run_paths if p.before_environment for f in p.folders]
        late = [f for p in run_paths if not p.before_environment for f in p.folders]
        # An empty or relative entry means the current folder: each notebook's own, so it is not followed.
        entries = re.split("[:;]", environ.get(PATH_VARIABLE, ""))
        variable = [Path(entry) for entry in entries if entry.startswith("/")]
        defaults = [self._below(f.format(processor=processor)) for f in _DEFAULT_FOLDERS]
        self._folders = [
            *((folder, FoundBy.RUN_PATH) for folder in early),
            *((folder, FoundBy.VARIABLE) for folder in variable),
            *((folder, FoundBy.RUN_PATH) for folder in late),
        ]
        self._defaults = [(folder, FoundBy.DEFAULT) for folder in defaults]
        self._cache = cached_libraries(self._below("/etc/ld.so.cache"), processor)
        self._loaded = _mapped_files(self._below("/proc/self/maps"))

    def copies(self, soname: str) -> list[Copy]:
        """All files that answer to this name, each once; the first is the one that is loaded."""
        # The name of a loaded file is that of the file behind the soname.
        names = [p for p in self._loaded if p.name == soname or p.name.startswith(f"{soname}.")]
        found = [Copy(soname, path, FoundBy.LOADED) for path in names]
        found += _in_folders(soname, self._folders)
        cached = (self._below(path) for path in self._cache.get(soname, ()))
        found += [Copy(soname, path, FoundBy.CACHE) for path in cached if path.is_file()]
        found += _in_folders(soname, self._defaults)
        return list({copy.path.resolve(): copy for copy in reversed(found)}.values())[::-1]

    def other_versions(self, soname: str) -> list[Copy]:
        """Files of the same library under another version's name, in the folders that are searched."""
        stem = soname.split(".so")[0] + ".so."
        names = {name for name in self._cache if name.startswith(stem)}
        for folder, _ in (*self._folders, *self._defaults):
            names |= {path.name for path in folder.glob(f"{stem}*")}
        # A name that is longer than a soname is the file that a soname points to.
        others = [copy for name in sorted(names - {soname}) for copy in self.copies(name)]
        of_ours = {copy.path.resolve() for copy in self.copies(soname)}
        found = {c.path.resolve(): c for c in reversed(others)}
        return [copy for real, copy in reversed(found.items()) if real not in of_ours]

    def _below(self, absolute: str) -> Path:
        return self._root / absolute.lstrip("/")


def _in_folders(name: str, folders: Iterable[tuple[Path, FoundBy]]) -> list[Copy]:
    places = ((folder, folder / name, found_by) for folder, found_by in folders)
    return [Copy(name, f.resolve() / name, by) for f, path, by in places if path.is_file()]


def _run_path(library: Path) -> RunPath:
    try:
        return run_path(library)
    except SourceUnavailable:  # a build of one's own may be anything
        return RunPath()


def _mapped_files(maps: Path) -> list[Path]:
    # 7f3c5a000000-7f3c5a200000 r-xp 00000000 08:01 1312 /usr/lib/libcudart.so.12.5.82
    try:
        lines = read_text(str(maps)).splitlines()
    except SourceUnavailable:
        return []
    paths = (line.split(None, 5)[5] for line in lines if ".so" in line and line.count(" ") >= 5)
    return [Path(path) for path in dict.fromkeys(paths)]
