"""How tests wait: for a condition, with a deadline that only a real failure reaches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

# Generous: a machine that runs other tests beside this one may take ten times as long.
DEADLINE_SECONDS = 120.0
_POLL_SECONDS = 0.02

Found = TypeVar("Found")


def wait_until(
    look: Callable[[], Found], what: str = "", *, seconds: float = DEADLINE_SECONDS
) -> Found:
    """The first true result of `look`.

    Raises:
        AssertionError: There was none within `seconds`; the message names `what`.
    """
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > deadline:
            raise AssertionError(_in_vain(look, what, seconds))
        time.sleep(_POLL_SECONDS)
    return found


async def wait_until_async(
    look: Callable[[], Any], what: str = "", *, seconds: float = DEADLINE_SECONDS
) -> Any:
    """The same on an event loop; `look` may be a coroutine function."""
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if isinstance(found, Awaitable):
            found = await found
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(_in_vain(look, what, seconds))
        await asyncio.sleep(_POLL_SECONDS)


def _in_vain(look: object, what: str, seconds: float) -> str:
    return f"waited {seconds:.0f} s in vain for {what or look}"
