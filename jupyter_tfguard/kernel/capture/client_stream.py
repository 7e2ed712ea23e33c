"""ipykernel's stream of stderr, through which the guard passes native text to the client.

Uses private parts of ipykernel's OutStream (6.29 to 7). If they are missing or differ, the text goes through ipykernel's pipe.
"""

from __future__ import annotations

import codecs
import os
import sys
from typing import Any

from ...record.forwarding import STDERR
from ...shield import is_users

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class ClientStream:
    """Does what ipykernel's thread does with the text it reads from its pipe.

    Args:
        stream: The OutStream.
        original: Descriptor of the kernel's original stderr.
        pipe: Descriptor of the end of its pipe to which it writes; None if it keeps none.
    """

    def __init__(self, stream: Any, original: int, pipe: int | None = None) -> None:
        self._stream = stream
        self.original = original
        self.pipe = pipe
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @classmethod
    def found(cls) -> ClientStream | None:
        """The stream whose pipe is fd 2; None if there is none."""
        stream = sys.stderr
        try:
            pipe = os.fstat(stream._fid)  # type: ignore[union-attr]
            original = stream._original_stdstream_copy  # type: ignore[union-attr]
            os.fstat(original)
            stream._parent_header, stream._parent_header_global  # type: ignore[union-attr]  # noqa: B018
            is_ours = os.path.samestat(pipe, os.fstat(STDERR)) and stream._should_watch  # type: ignore[union-attr]
        except (AttributeError, TypeError, OSError):
            return None
        return cls(stream, original, _writing_end(stream._fid)) if is_ours else None  # type: ignore[union-attr]

    def send(self, text: bytes, *, is_last: bool) -> bool:
        """Pass text to the client; False if the stream is being closed, or does not take it.

        Args:
            text: UTF-8.
            is_last: No more text is ready: an incomplete character is not completed soon.
        """
        # Closing the stream writes to fd 2 to wake ipykernel's thread.
        if not self._stream._should_watch:
            return False
        try:
            # ipykernel's thread has no parent header of its own either. In version 6, threads inherit one.
            self._stream._parent_header.set(self._stream._parent_header_global)
            self._stream.write(self._decoder.decode(text, is_last))
        except Exception as bad:
            if is_users(bad):
                raise
            return False
        return True


def _writing_end(reading_end: int) -> int | None:
    """The other end of ipykernel's pipe, which it leaves open and does not name: the next number."""
    try:
        found = os.fstat(reading_end), os.fstat(reading_end + 1)
        flags = fcntl.fcntl(reading_end + 1, fcntl.F_GETFL)
    except OSError:
        return None
    return reading_end + 1 if os.path.samestat(*found) and flags & os.O_WRONLY else None
