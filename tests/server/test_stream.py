"""The live stream of a real server."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.rigs.waiting import DEADLINE_SECONDS, wait_until_async

from .conftest import Server


class Stream:
    def __init__(self, socket: Any) -> None:
        self.socket = socket

    async def watch(self, **what: Any) -> None:
        await self.socket.write_message(json.dumps({"type": "watch", "visible": True} | what))

    async def next(self, kind: str, seconds: float = DEADLINE_SECONDS) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while True:
            left = deadline - time.monotonic()
            message = await asyncio.wait_for(self.socket.read_message(), max(0.01, left))
            found: dict[str, Any] = json.loads(message)
            if found["type"] == kind:
                return found

    async def count(self, seconds: float) -> int:
        ticks = 0
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            try:
                await asyncio.wait_for(self.socket.read_message(), left)
            except asyncio.TimeoutError:
                break
            ticks += 1
        return ticks


@pytest.fixture
def connect(server: Server, jp_ws_fetch: Any, jp_asyncio_loop: Any) -> Iterator[Any]:
    sockets = []

    async def open_one() -> Stream:
        sockets.append(await jp_ws_fetch("tfguard", "api", "stream"))
        return Stream(sockets[-1])

    async def close_all() -> None:
        for socket in sockets:
            socket.close()
            while await socket.read_message() is not None:
                pass

    yield open_one
    jp_asyncio_loop.run_until_complete(close_all())


def sample(server: Server, name: str) -> Any:
    return json.loads((server.samples / name).read_text())


async def test_ticks_go_on_while_the_kernel_is_busy(server: Server, connect: Any) -> None:
    kernel_id = await server.start_kernel()
    await server.execute(
        kernel_id, "import time\nheld = bytearray(150 << 20)\ntime.sleep(60)", wait=False
    )
    stream = await connect()
    await stream.watch(kernel_id=kernel_id, rate_hertz=5)
    history = await stream.next("history")
    assert history["kernel_id"] == kernel_id
    seen: set[float] = set()
    ends = time.monotonic() + DEADLINE_SECONDS
    while len(seen) < 10 and time.monotonic() < ends:
        tick = await stream.next("tick")
        seen.add(tick["kernel"]["host"]["time"])
    assert len(seen) == 10  # new numbers, although the cell runs
    kernel = tick["kernel"]
    assert kernel["host"]["rss_bytes"] > 150 << 20
    assert [mark["label"] for mark in kernel["marks"]] == ["[1]"]
    wanted = sample(server, "tick.json")
    assert set(tick) == set(wanted)
    assert set(kernel) == set(wanted["kernel"])
    assert set(kernel["guard"]) == set(wanted["kernel"]["guard"])
    assert set(kernel["host"]) == set(wanted["kernel"]["host"])
    assert set(kernel["host"]["limit"]) == set(wanted["kernel"]["host"]["limit"])
    await stream.watch(kernel_id=kernel_id)
    again = await stream.next("history")
    assert set(again) == set(sample(server, "history.json"))
    assert len(again["rows"]) > len(history["rows"])
    assert all(value is None or isinstance(value, int) for _, value in again["rows"])


async def test_other_kernels_have_one_line_each(server: Server, connect: Any) -> None:
    one, two = await server.start_kernel(), await server.start_kernel()
    stream = await connect()
    await stream.watch(kernel_id=one)
    tick = await stream.next("tick")
    assert tick["kernel"]["kernel_id"] == one
    [other] = tick["others"]
    assert other["kernel_id"] == two
    assert other["rss_bytes"] > 10 << 20
    assert set(other) == set(sample(server, "tick.json")["others"][0])


async def test_a_hidden_page_gets_nothing(server: Server, connect: Any) -> None:
    stream = await connect()
    await stream.watch(kernel_id=None)
    assert (await stream.next("tick"))["kernel"] is None
    await stream.watch(kernel_id=None, visible=False)
    await stream.count(0.3)  # what was on its way
    assert await stream.count(1.2) == 0
    await stream.watch(kernel_id=None, visible=True)
    await stream.next("tick")


async def test_the_rate_is_held_within_bounds(connect: Any) -> None:
    stream = await connect()
    await stream.watch(kernel_id=None, rate_hertz=1000)
    began = time.monotonic()
    for _ in range(20):
        await stream.next("tick")
    assert time.monotonic() - began > 1.5  # ten a second at most
    await stream.watch(kernel_id=None, rate_hertz=0.001)
    for _ in range(2):  # not a quarter of an hour apart
        await stream.next("tick")


async def test_numbers_come_between_ticks_while_the_kernel_is_busy(
    server: Server, connect: Any
) -> None:
    kernel_id = await server.start_kernel()
    await server.execute(kernel_id, "import time\ntime.sleep(60)", wait=False)
    stream = await connect()
    await stream.watch(kernel_id=kernel_id, rate_hertz=2, chart_hertz=10)
    found = [json.loads(await stream.socket.read_message()) for _ in range(26)]
    assert found[0]["type"] == "history"
    kinds = [message["type"] for message in found[1:]]
    assert kinds.count("number") >= 2 * kinds.count("tick") > 0
    number = next(message for message in found if message["type"] == "number")
    wanted = sample(server, "number.json")
    assert set(number) == set(wanted)
    assert set(number["host"]) == set(wanted["host"])
    assert number["kernel_id"] == kernel_id
    times = [m["host"]["time"] for m in found if m["type"] == "number"]
    assert len(set(times)) == len(times)  # each is new


async def test_an_idle_kernel_sends_no_number_twice(server: Server, connect: Any) -> None:
    kernel_id = await server.start_kernel()
    stream = await connect()
    await stream.watch(kernel_id=kernel_id, rate_hertz=0.5, chart_hertz=10)
    found = [json.loads(await stream.socket.read_message()) for _ in range(6)]
    times = [m["host"]["time"] for m in found if m["type"] == "number"]
    assert len(times) >= 2
    assert len(set(times)) == len(times)


async def test_a_closed_panel_gets_one_small_number_every_two_seconds(
    server: Server, connect: Any
) -> None:
    kernel_id = await server.start_kernel()
    await server.execute(kernel_id, "import time\ntime.sleep(60)", wait=False)
    stream = await connect()
    await stream.watch(kernel_id=kernel_id, rate_hertz=10, chart_hertz=10, detail="status")
    first = json.loads(await stream.socket.read_message())
    assert first["type"] == "number"
    assert first["host"]["rss_bytes"] > 10 << 20
    assert len(json.dumps(first)) < 1000
    second = json.loads(await stream.socket.read_message())
    assert second["type"] == "number"
    assert second["host"]["time"] - first["host"]["time"] > 1.5


async def test_a_closed_panel_without_a_kernel_hears_that_the_server_is_there(connect: Any) -> None:
    stream = await connect()
    for kernel_id in (None, "no such kernel"):
        await stream.watch(kernel_id=kernel_id, detail="status")
        number = await stream.next("number")
        assert number["kernel_id"] == kernel_id
        assert "host" not in number


async def test_a_death_is_hinted_to_hidden_pages_too(server: Server, connect: Any) -> None:
    stream = await connect()
    await stream.watch(kernel_id=None, visible=False)
    kernel_id = await server.start_kernel()
    await server.execute(kernel_id, "import os; os.kill(os.getpid(), 9)")
    assert await stream.next("crashes") == {"type": "crashes"}
    assert len((await server.get("crashes"))["crashes"]) == 1


async def test_a_report_that_was_read_or_forgotten_is_hinted_to_pages_that_are_seen(
    server: Server, connect: Any
) -> None:
    kernel_id = await server.start_kernel()
    seen, hidden = await connect(), await connect()
    await seen.watch(kernel_id=None)
    await hidden.watch(kernel_id=None, visible=False)
    await server.execute(kernel_id, "import os; os.kill(os.getpid(), 9)")
    for stream in (seen, hidden):
        await stream.next("crashes")
    (entry,) = (await server.get("crashes"))["crashes"]
    crash = ("tfguard", "api", "crashes", entry["id"])
    await server.fetch(*crash, "read", method="POST", body="")
    await seen.next("crashes")
    await server.fetch(*crash, method="DELETE")
    await seen.next("crashes")
    with pytest.raises(asyncio.TimeoutError):
        await hidden.next("crashes", 2)


BAD = [
    "",
    "{",
    "[]",
    "null",
    '{"type": "shutdown"}',
    '{"type": "watch", "kernel_id": 7}',
    '{"type": "watch", "rate_hertz": "fast"}',
    '{"type": "watch", "rate_hertz": NaN}',
    '{"type": "watch", "rate_hertz": 1' + "0" * 400 + "}",
    '{"type": "watch", "chart_hertz": "fast"}',
    '{"type": "watch", "chart_hertz": true}',
    '{"type": "watch", "detail": "all"}',
    "[" * 3000,
    "x" * 10_000,
]


async def test_messages_that_make_no_sense_are_ignored_and_noted_once(
    server: Server, connect: Any, caplog: pytest.LogCaptureFixture
) -> None:
    stream = await connect()
    for message in BAD:
        await stream.socket.write_message(message)
    await stream.watch(kernel_id="no such kernel")
    assert (await stream.next("history"))["rows"] == []
    assert (await stream.next("tick"))["kernel"] is None
    noted = [r for r in caplog.records if "ignored an invalid message" in r.getMessage()]
    assert len(noted) == 1
    assert noted[0].levelno == logging.WARNING


async def test_a_page_that_goes_away_is_forgotten(server: Server, connect: Any) -> None:
    service = server.app.web_app.settings["tfguard_service"]
    stream = await connect()
    await stream.watch(kernel_id=None, rate_hertz=10)
    await stream.next("tick")
    assert len(service._clients) == 1
    stream.socket.close()
    await wait_until_async(lambda: not service._clients, "the page to be forgotten")
