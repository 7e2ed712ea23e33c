"""A file that stands in for fd 2: the last words lie in it, and everything that is written to it can be taken once.

All who inherited it (the kernel and its children) share one open file and one position, and write on from there. The file
has a fixed size and is zeros after the text. When it is full, the position is put back to the start, for all of them at
once: the file grows no longer for a child that was started long ago either, and never needs space that it does not have.
No text falls between two chairs: what was written just before the position went back lies after what was taken.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from .folders import PrivateFolder
from .linux_files import checked_size, close_ours, identity, punch
from .native_text import FILE_BYTES, KEPT_BYTES, LEAD_BYTES, file_name
from .opened_anew import ADDED_BYTES, CHUNK_BYTES, OpenedAnew
from .outlet import TAIL_BYTES, WAITING_BYTES, Outlet

# A writer that comes so near to where we clean up may have had some of its text cleaned away.
_SAFE_BYTES = 16 * 1024


class TextFile:
    """One of the files.

    Args:
        folder: Where it is made.
        number: Of its name.
        head: Text that it begins with.

    Attributes:
        descriptor: The open file that becomes fd 2.
        taken: Position up to which the text was taken.
        last: The last words that were taken.

    Raises:
        OSError: There is no room for it, or the system refused.
        FolderUnusable: It cannot be made safely.
    """

    def __init__(self, folder: PrivateFolder, number: int, head: bytes = b"") -> None:
        fresh = f".{file_name(number)}"
        self.number = number
        self.taken = LEAD_BYTES + len(head)
        self.last = head
        self._length = FILE_BYTES
        self._holes = False
        self.descriptor = folder.create(fresh)
        try:
            os.set_blocking(self.descriptor, True)  # as a stderr is
            # Zeros that were written have their place on the disk: one that fills up later cannot swallow last words.
            _write_at(self.descriptor, (bytes(LEAD_BYTES) + head).ljust(FILE_BYTES, b"\0"), 0)
            os.lseek(self.descriptor, self.taken, os.SEEK_SET)
            self.identity = identity(self.descriptor)
            # In one step in the place of an older one, whose words `head` holds.
            os.rename(folder.path / fresh, folder.path / file_name(number))
        except BaseException:
            os.close(self.descriptor)
            with contextlib.suppress(OSError):
                os.unlink(folder.path / fresh)
            raise

    @property
    def full(self) -> bool:
        """True when enough was taken from it to go on in another file."""
        return self.taken >= LEAD_BYTES + KEPT_BYTES

    @property
    def used(self) -> bool:
        """True when so much was taken from it that it is to be cleared before it is used again.

        Not earlier: a child that writes on after that must not get to where it was before.
        """
        return self.taken >= LEAD_BYTES + KEPT_BYTES * 3 // 4

    @property
    def overgrown(self) -> bool:
        """True when it is longer than a file of ours should be."""
        return self.taken > FILE_BYTES

    def position(self) -> int:
        """Where all who share this file write next. Waits for a write that is going on."""
        return os.lseek(self.descriptor, 0, os.SEEK_CUR)

    def take(self, outlet: Outlet, until: int | None = None) -> OpenedAnew | None:
        """Hand on what is new; not None when somebody has opened the file by its name, and so writes elsewhere in it.

        Args:
            until: Leave for later what lies from this position on.
        """
        before = self.position()
        size = checked_size(self.descriptor, self.identity)
        end = self.position()
        longer = size > max(self._length, end)
        if size < max(self._length, before) or (longer and self._lead_is_used()):
            return self._emptied(end, outlet)
        self._take_to(end if until is None or longer else min(end, until), outlet)
        if longer:
            return self._opened_anew(front=self.taken, wall=self._length, end=self._length)
        self._length = size
        return None

    def _take_to(self, end: int, outlet: Outlet) -> None:
        middle = self.taken + outlet.room
        if end - middle > TAIL_BYTES:
            # More than anybody will read in time: the beginning, a gap, and the last words.
            self._pass_on(middle, outlet)
            outlet.drop(end - TAIL_BYTES - self.taken)
            self.taken = end - TAIL_BYTES
        self._pass_on(end, outlet)
        self._holes = False

    def _pass_on(self, end: int, outlet: Outlet) -> None:
        while self.taken < end:
            length = min(CHUNK_BYTES, end - self.taken)
            chunk = os.pread(self.descriptor, length, self.taken)
            needed = max(self._length, self.taken + len(chunk))
            if (b"\0" in chunk and os.fstat(self.descriptor).st_size < needed) or not chunk:
                return  # emptied just now; the next look will see it
            self.taken += len(chunk)
            if self._holes:
                text = chunk.replace(b"\0", b"")
                outlet.drop(len(chunk) - len(text))
                chunk = text
            self._hand_on(chunk, outlet)

    def _hand_on(self, text: bytes, outlet: Outlet) -> None:
        outlet.put(text)
        self.last = (
            text[-KEPT_BYTES:] if len(text) >= KEPT_BYTES else (self.last + text)[-KEPT_BYTES:]
        )

    def add(self, text: bytes, outlet: Outlet) -> None:
        """Write text that came another way, to be kept and handed on with the rest; only hand it on when there is much."""
        written = 0
        if len(text) <= ADDED_BYTES:
            with contextlib.suppress(OSError):  # a full disk
                written = os.write(self.descriptor, text)
        outlet.put(text[written:])

    def rewind(self, outlet: Outlet, keep: Callable[[bytes], None]) -> None:
        """Begin again at the start, at the length it should have. Children that hold the file write on; the kernel must not.

        Args:
            keep: Given what a child wrote while this went on, to be kept in another file.
        """
        end = self.taken
        checked_size(self.descriptor, self.identity)
        self._clear_to(end)
        self.taken = os.lseek(self.descriptor, LEAD_BYTES, os.SEEK_SET)
        self.last = b""
        # What was written until then lies behind the end of what was taken, and what is written now does not reach it,
        # unless a child floods the file: then some of its text is lost, and counted.
        late = self._late(end)
        now = self.position()
        if now > end:
            outlet.drop(min(len(late), now - end))
            late = late[now - end :]
        if late:
            self._hand_on(late, outlet)
            keep(late)
        self._length = os.fstat(self.descriptor).st_size
        if self._length > FILE_BYTES:
            if now <= FILE_BYTES - _SAFE_BYTES:
                os.ftruncate(self.descriptor, FILE_BYTES)
                self._length = FILE_BYTES
        elif late and now <= end:
            _write_at(self.descriptor, bytes(FILE_BYTES - end), end)
        near = now + _SAFE_BYTES > end
        self._holes = near or self.position() > FILE_BYTES

    def _clear_to(self, end: int) -> None:
        _write_at(self.descriptor, bytes(min(end, FILE_BYTES)), 0)
        if end > FILE_BYTES:
            try:
                punch(self.descriptor, FILE_BYTES, end - FILE_BYTES)
            except OSError:
                for start in range(FILE_BYTES, end, CHUNK_BYTES):
                    _write_at(self.descriptor, bytes(min(CHUNK_BYTES, end - start)), start)

    def close(self) -> None:
        """Give the descriptor back."""
        close_ours(self.descriptor, self.identity)

    def _late(self, end: int) -> bytes:
        found = b""
        while chunk := os.pread(self.descriptor, CHUNK_BYTES, end + len(found)):
            found += chunk
            if len(found) >= WAITING_BYTES or not chunk.strip(b"\0"):
                break
        return found.rstrip(b"\0")

    # --- opened by name

    def _emptied(self, position: int, outlet: Outlet) -> OpenedAnew:
        """``echo x > /dev/stderr`` in a child empties the file and writes at its start."""
        wall = max(self.taken, position)
        content = os.pread(self.descriptor, min(self.taken, WAITING_BYTES), 0)
        anew, _, rest = content.partition(b"\0")
        own = os.pread(self.descriptor, min(wall - self.taken, WAITING_BYTES), self.taken)
        own = own.replace(b"\0", b"")
        opened = self._opened_anew(front=len(anew), wall=wall, end=wall)
        opened.erase_head()
        outlet.drop(wall - self.taken - len(own))
        self._hand_on(anew + rest.replace(b"\0", b"") + own, outlet)
        return opened

    def _lead_is_used(self) -> bool:
        return bool(os.pread(self.descriptor, LEAD_BYTES, 0).strip(b"\0"))

    def _opened_anew(self, *, front: int, wall: int, end: int) -> OpenedAnew:
        return OpenedAnew(self.descriptor, self.identity, front, wall, end)


def _write_at(descriptor: int, content: bytes, start: int) -> None:
    view = memoryview(content)
    while view:
        count = os.pwrite(descriptor, view, start)
        view, start = view[count:], start + count
