"""Asks the guard in a kernel while a cell runs, on the kernel's control channel; ``kernel/control.py`` is the other end."""

from __future__ import annotations

import asyncio
from typing import Any

from ..control_words import HERE, RATE, REPLY, REQUEST, STATE
from ..units import is_known

ANSWER_SECONDS = 3.0
_NAME_LENGTH = 40
_NO_ANSWER = "The kernel gave no answer: the guard is not loaded in it, or native code holds its interpreter."
_NO_CHANNEL = "The kernel runs elsewhere: it cannot be asked from here."


class NoAnswer(Exception):
    """The kernel was asked, and said nothing; the text is a sentence for people."""


class NotHere(Exception):
    """There is no way from this server to the kernel; the text is a sentence for people."""


def request_of(asked: object) -> dict[str, Any] | None:
    """The request to pass on, made anew of what a page sent; None when it is none that the guard knows."""
    wanted = asked.get("request") if isinstance(asked, dict) else None
    if wanted == STATE:
        return {"request": STATE}
    if wanted == RATE:
        assert isinstance(asked, dict)
        hertz = asked.get("hertz")
        if isinstance(hertz, (int, float)) and type(hertz) is not bool and is_known(hertz):
            return {"request": RATE, "hertz": hertz}
    if wanted == HERE:
        assert isinstance(asked, dict)
        names = {key: asked.get(key) for key in ("panel", "view")}
        if all(isinstance(name, str) and len(name) <= _NAME_LENGTH for name in names.values()):
            return {"request": HERE, **names}
    return None


async def ask_guard(
    manager: Any, request: dict[str, Any], seconds: float = ANSWER_SECONDS
) -> dict[str, Any]:
    """What the guard in the kernel of this manager answers.

    Raises:
        NoAnswer: None came in time.
        NotHere: There is no way to the kernel.
    """
    try:
        session = manager.session.clone()
        stream = manager.connect_control()
    except Exception as bad:  # managers of remote kernels have no channels here
        raise NotHere(_NO_CHANNEL) from bad
    answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    message = session.msg(REQUEST, request)

    def take(frames: list[Any]) -> None:
        _, rest = session.feed_identities(frames)
        found = session.deserialize(rest)
        is_ours = found["parent_header"].get("msg_id") == message["header"]["msg_id"]
        if found["msg_type"] == REPLY and is_ours and not answer.done():
            answer.set_result(found["content"])

    try:
        stream.on_recv(take)
        session.send(stream, message)
        content = await asyncio.wait_for(answer, seconds)
    except asyncio.TimeoutError as late:
        raise NoAnswer(_NO_ANSWER) from late
    finally:
        stream.close(linger=0)
    if not isinstance(content, dict):
        raise NoAnswer(_NO_ANSWER)
    return content


def keep_out_of_activity(kernels: Any) -> None:
    """Let Jupyter Server not take our requests for the work of a kernel.

    ipykernel says "idle" after each, also while a cell runs: culler and watcher would believe it.
    """
    known = getattr(kernels, "untracked_message_types", None)
    if isinstance(known, list):
        kernels.untracked_message_types = [*known, *(t for t in (REQUEST, REPLY) if t not in known)]
