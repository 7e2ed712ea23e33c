"""The two files of native text, which take turns: what lies on the disk, and which of them fd 2 is to be."""

from __future__ import annotations

import contextlib
import os

from .folders import PrivateFolder
from .linux_files import WriteWatch
from .native_since import Place
from .native_text import FILE_BYTES, KEPT_BYTES, LEAD_BYTES, NUMBER_STEP, file_name
from .opened_anew import OpenedAnew
from .outlet import Outlet
from .stderr_descriptor import StderrDescriptor
from .textfile import TextFile

FIRST_NUMBERS = (NUMBER_STEP, 2 * NUMBER_STEP)
OPENED_FOLLOWED = 8


class TextFilePair:
    """Makes the two files, and keeps them at their length.

    Args:
        folder: Where they are made.
        outlet: Given what is taken from them.
        watch: Told of each file; None where there is none.
        stderr: Put on the current file as they take turns; not yet when they are made.

    Attributes:
        current: The file that is written to.
        other: The one before, or the next.

    Raises:
        FolderUnusable: A file cannot be made safely.
        OSError: There is no room for it, or the system refused.
    """

    def __init__(
        self,
        folder: PrivateFolder,
        outlet: Outlet,
        watch: WriteWatch | None,
        stderr: StderrDescriptor,
    ) -> None:
        self._folder = folder
        self._outlet = outlet
        self._watch = watch
        self._stderr = stderr
        self._opened: list[OpenedAnew] = []
        self._copied: int | None = None
        self.other = self._make(FIRST_NUMBERS[0])
        try:
            self.current = self._make(FIRST_NUMBERS[1])
        except BaseException:
            self.other.close()
            raise

    @property
    def files(self) -> tuple[TextFile | OpenedAnew, ...]:
        """All that fd 2 may stand for while it is ours."""
        return (self.current, self.other, *self._opened)

    def place(self) -> Place:
        """Where the next text goes. Raises OSError when the files are closed."""
        current = self.current
        return Place(current.number, current.position())

    @property
    def all_taken(self) -> bool:
        """True when nothing new was written to the current file. Raises OSError when the files are closed."""
        current = self.current
        return current.taken >= current.position()

    def short_of_room(self, written: bool) -> bool:
        """True when the current file is full, or soon full while it is written to. Raises OSError when it is closed."""
        return self.current.position() >= (LEAD_BYTES + KEPT_BYTES if written else FILE_BYTES)

    @property
    def opened_anew(self) -> bool:
        """True once somebody has opened a file of ours by its name: what is written there is followed."""
        return bool(self._opened)

    def take(self) -> int:
        """Hand on what is new, oldest first; how many bytes it was."""
        taken, replaced = self._take_once()
        if replaced:  # what else is in there already
            taken += self._take_once()[0]
        return taken

    def look_who_is_current(self) -> None:
        """User code may have kept a copy of fd 2 and put it back: then the other file is the newest again."""
        if self._stderr.stands_for(self.other):
            self.current, self.other = self.other, self.current
            self._make_newest()
        elif self._stderr.stands_for(*self._opened):
            self._stderr.put(self.current, instead_of=self._opened)

    def take_turns(self) -> None:
        """Write on in the other file when this one is full."""
        if not self.current.full or not self._stderr.stands_for(self.current):
            return
        # At every moment the last words lie in files that are not touched just then.
        late: list[bytes] = []
        if self.other.used:
            self.other.rewind(self._outlet, late.append)
        self.current, self.other = self.other, self.current
        self._make_newest()
        self._stderr.put(self.current, instead_of=[self.other])
        self._copy(self.current, b"".join(late))
        self._take_once()  # what came into the old file until then: its last, but for children

    def cut_overgrown(self) -> None:
        """Bring a file that is too long back to its length."""
        if self.other.overgrown and not self._stderr.stands_for(self.other):
            self._cut(self.other)
        if self.current.overgrown and not self._stderr.stands_for(self.current):
            self._cut(self.current)  # user code has lent fd 2, and children write on

    def close(self) -> None:
        """Give the descriptors back; the files stay."""
        for file in self.files:
            file.close()

    def _make(self, number: int, head: bytes = b"") -> TextFile:
        made = TextFile(self._folder, number, head)
        if self._watch is not None:
            try:
                self._watch.add(self._folder.path / file_name(number))
            except BaseException:
                made.close()
                raise
        return made

    def _take_once(self) -> tuple[int, bool]:
        taken, replaced = 0, False
        for opened in self._opened:
            opened.take(self._outlet, self.current.add)
        # What was begun before the files took turns still comes into the other one, and its writer goes on in this one.
        until = self.current.position()
        for file, end in ((self.other, None), (self.current, until)):
            before = file.taken
            anew = file.take(self._outlet, end)
            taken += file.taken - before
            if anew is not None:
                self._replace(file, anew)
                replaced = True
        return taken, replaced

    def _replace(self, file: TextFile, anew: OpenedAnew) -> None:
        """Put a fresh file in the place of one that somebody opened by its name; it begins with the last words."""
        is_current = file is self.current
        fresh = self._make(file.number, file.last[-KEPT_BYTES // 2 :] if is_current else file.last)
        self._opened.append(anew)
        if is_current:
            self.current = fresh
        else:
            self.other = fresh
        self._stderr.put(fresh, instead_of=[anew])
        while len(self._opened) > OPENED_FOLLOWED:
            self._opened.pop(0).close()

    def _make_newest(self) -> None:
        name, number = file_name(self.current.number), self.other.number + NUMBER_STEP
        os.rename(self._folder.path / name, self._folder.path / file_name(number))
        self.current.number = number

    def _cut(self, file: TextFile) -> None:
        """Bring an overgrown file, to which only children write, back to its length; its last words go to a copy."""
        last = file.last
        if self._copy(file, last):  # without room for it the file stays long until its turn
            late: list[bytes] = []
            file.rewind(self._outlet, late.append)
            self._copy(file, (last + b"".join(late))[-KEPT_BYTES:])

    def _copy(self, file: TextFile, text: bytes) -> bool:
        """Keep text that was cleared from a file under the number before its own, and none that was kept earlier."""
        number = file.number - 1 if text else None
        if number is not None:
            try:
                self._folder.write_whole(file_name(number), text)
            except OSError:
                return False
        if self._copied not in (None, number):
            with contextlib.suppress(OSError):
                os.unlink(self._folder.path / file_name(self._copied))
        self._copied = number
        return True
