"""What the guard's thread does with ipykernel's stream, with a stand-in for the stream."""

from __future__ import annotations

import contextvars
from typing import Any

import pytest

from jupyter_tfguard.kernel.capture.client_stream import ClientStream

pytestmark = pytest.mark.quick


class Stream:
    """Keeps what is written, with the id of the cell to which it belongs."""

    def __init__(self) -> None:
        self._should_watch = True
        self._parent_header: contextvars.ContextVar[int] = contextvars.ContextVar("header")
        self._parent_header_global = 0
        self.written: list[tuple[int, str]] = []

    def write(self, text: str) -> None:
        self.written.append((self._parent_header.get(), text))


def sent(stream: Stream, *texts: bytes) -> list[Any]:
    client = ClientStream(stream, 2)
    last = len(texts) - 1
    return [client.send(text, is_last=number == last) for number, text in enumerate(texts)]


def test_text_belongs_to_the_newest_cell_not_to_that_in_which_the_thread_began() -> None:
    stream = Stream()
    stream._parent_header.set(1)
    stream._parent_header_global = 2
    assert sent(stream, b"text") == [True]
    assert stream.written == [(2, "text")]


def test_a_character_in_two_pieces_is_whole_and_half_a_character_is_shown() -> None:
    stream = Stream()
    sent(stream, "é".encode()[:1], "é".encode()[1:], b"\xc3")
    assert "".join(text for _, text in stream.written) == "é�"


def test_a_stream_that_closes_or_fails_gets_its_text_another_way() -> None:
    stream = Stream()
    stream._should_watch = False
    assert sent(stream, b"\0") == [False]
    assert not stream.written
    del stream._parent_header_global
    stream._should_watch = True
    assert sent(stream, b"text") == [False]
