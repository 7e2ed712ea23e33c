"""How a part of the guard begins: one that fails is left out and told, and the others begin all the same."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ..errors import SourceUnavailable, TfGuardError
from ..shield import note_problem


@contextlib.contextmanager
def part(name: str, problems: list[str]) -> Iterator[None]:
    """Begin one part of the guard.

    Args:
        name: Of the part, for people.
        problems: Gets a sentence when it fails.
    """
    try:
        yield
    except SourceUnavailable as absent:
        problems.append(str(absent))  # this system does not have it; no failure of ours
    except Exception as error:
        note_problem(f"kernel start: {name}", error)
        problems.append(str(error) if isinstance(error, TfGuardError) else f"{name}: {error}")
