"""Tasks and callbacks that a stopped cell has left on the loop end; those of earlier cells and of Jupyter do not."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from jupyter_tfguard.guard.tasks import CellTasks

pytestmark = pytest.mark.quick


_SOURCE = """
import asyncio
class Large: pass
async def fill():
    large = Large()
    made.append(weak(large))
    await asyncio.sleep(600)
async def fail():
    large = Large()
    made.append(weak(large))
    raise MemoryError
def tick():
    calls.append(tick)
    asyncio.get_running_loop().call_later(0.001, tick)
def tock():
    calls.append(tock)
    asyncio.get_running_loop().call_later(0.001, tock)
"""


@pytest.fixture
def cell() -> dict[str, Any]:
    """The globals of a cell, with functions that go on without end."""
    namespace = {"__name__": "notebook", "calls": [], "made": [], "weak": weakref.ref}
    exec(_SOURCE, namespace)
    return namespace


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0.002)


def test_tasks_of_the_cell_are_cancelled_and_their_frames_released(cell: dict[str, Any]) -> None:
    async def run() -> None:
        earlier = asyncio.create_task(cell["fill"]())
        tasks = CellTasks(cell)
        tasks.begin()
        results = asyncio.gather(
            *(cell["fill"]() for _ in range(3)), cell["fail"](), return_exceptions=True
        )
        tasks.note()
        await turns()
        assert sorted(tasks.names) == ["fill"] * 3
        assert tasks.cancel() == 3
        given_back: list[bool] = []
        tasks.release_soon(lambda: given_back.append(True))
        kept = [type(one) for one in await results]
        while not given_back:
            await asyncio.sleep(0.002)
        assert kept == [asyncio.CancelledError] * 3 + [MemoryError]
        gc.collect()
        assert [one() is None for one in cell["made"]] == [False] + [True] * 4
        assert not earlier.done()
        earlier.cancel()

    asyncio.run(run())


def test_callbacks_of_the_cell_are_cancelled(cell: dict[str, Any]) -> None:
    async def run() -> None:
        cell["tock"]()
        tasks = CellTasks(cell)
        tasks.begin()
        cell["tick"]()
        await turns()
        tasks.cancel()
        cell["calls"].clear()
        await turns()
        assert set(cell["calls"]) == {cell["tock"]}

    asyncio.run(run())


def test_the_await_of_a_cell_ends(cell: dict[str, Any]) -> None:
    async def run_cell_async(tasks: CellTasks) -> None:  # named as IPython's
        tasks.begin()
        await asyncio.sleep(600)

    async def run() -> None:
        tasks = CellTasks(cell)
        running = asyncio.create_task(run_cell_async(tasks))
        await turns()
        tasks.cancel()
        await turns()
        assert not running.done()
        tasks.cancel(with_cell=True)
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(run())


def test_without_a_loop_nothing_happens(cell: dict[str, Any]) -> None:
    tasks = CellTasks(cell)
    tasks.begin()
    assert tasks.cancel(with_cell=True) == 0
    tasks.release_soon(lambda: None)
