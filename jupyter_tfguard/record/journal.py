"""Events as records: the JSON text of an event is split over as many records as it needs.

All parts but the last are of type 4; the last is of type 3. Their sequence numbers are consecutive. An event with a
missing part is left out.
"""

from __future__ import annotations

import json
import time
from typing import Any

from ..decode import json_object, text_of
from .record_writer import RecordWriter
from .records import Record
from .series import is_moment

EVENT = 3
EVENT_PART = 4
TYPES = {
    EVENT: {"name": "event", "text": "json"},
    EVENT_PART: {"name": "event part", "text": "json"},
}
EVENT_LIMIT_BYTES = 4096
_CUT_LENGTH = 200
_KIND_LENGTH = 80

Event = dict[str, Any]


def write_event(writer: RecordWriter, kind: str, fields: dict[str, Any]) -> None:
    """Append one event. If it is too long, its texts are cut.

    Raises:
        OSError: The write failed.
    """
    text = _text({"kind": kind} | fields)
    size = writer.payload_bytes
    parts = [text[start : start + size] for start in range(0, len(text), size)]
    first = writer.next_sequences(len(parts))
    monotonic, wall = time.monotonic(), time.time()
    for offset, part in enumerate(parts):
        kind_of_part = EVENT if offset == len(parts) - 1 else EVENT_PART
        writer.write(kind_of_part, part, first + offset, monotonic=monotonic, wall=wall)


def _text(event: Event) -> bytes:
    text = _json(event)
    if len(text) > EVENT_LIMIT_BYTES:
        text = _json({name: _cut(value) for name, value in event.items()})
    if len(text) > EVENT_LIMIT_BYTES:
        text = _json({"kind": event["kind"][:_KIND_LENGTH], "cut": True})
    return text


def _cut(value: Any) -> Any:
    """Cut a text or the texts of a list; other values are unchanged."""
    if isinstance(value, list):
        return [_cut(one) for one in value]
    return value[:_CUT_LENGTH] if isinstance(value, str) else value


def _json(event: Event) -> bytes:
    text = json.dumps(event, ensure_ascii=False, default=str)
    return text.encode("utf-8", "backslashreplace")


class EventReader:
    """Assembles events from records in order, in one or several steps."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._next = 0

    def take(self, record: Record) -> Event | None:
        """The event that this record completes; None if it completes none, or if a part is missing or damaged.

        The event has its fields, ``n`` (sequence), ``t`` (Unix seconds) and ``m`` (monotonic seconds).
        """
        if record.type not in (EVENT, EVENT_PART):
            return None
        if record.sequence != self._next:
            self._parts.clear()
        self._parts.append(record.payload)
        self._next = record.sequence + 1
        if sum(map(len, self._parts)) > EVENT_LIMIT_BYTES:
            self._parts.clear()
            return None
        if record.type == EVENT_PART:
            return None
        text = b"".join(self._parts)
        self._parts.clear()
        event = json_object(text)
        if event is None or text_of(event.get("kind")) is None or not is_moment(record):
            return None
        return event | {"n": record.sequence, "t": record.time, "m": record.monotonic}


def read_events(records: list[Record]) -> list[Event]:
    """The events in these records, in order."""
    reader = EventReader()
    return [event for record in records if (event := reader.take(record)) is not None]
