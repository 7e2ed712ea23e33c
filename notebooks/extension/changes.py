"""Everything that the guard changes in a kernel, from the table that the guard itself works through."""

from __future__ import annotations

from itertools import groupby

from jupyter_tfguard.kernel.changes import CHANGES, ProcessChange

from .markdown import prose

_ONLY = "Only with [`TfGuard.stop`](#option-stop)"
_LEVELS = {"": "", "soft": f"{_ONLY} `soft` or `full`.", "full": f"{_ONLY} `full`."}


def changes() -> str:
    """A section for each moment, with a definition for each change."""
    moments = [change.when for change in CHANGES]
    ordered = sorted(CHANGES, key=lambda change: moments.index(change.when))
    return "\n".join(
        f"## {when[0].upper()}{when[1:]}\n\n" + "\n".join(map(_definition, made))
        for when, made in groupby(ordered, key=lambda change: change.when)
    )


def _definition(change: ProcessChange) -> str:
    title = f"{change.name[0].upper()}{change.name[1:]}"
    lines = [prose(change.what), f"*Why:* {prose(change.why)}", _LEVELS[change.level]]
    lines.append(f"*In a forked child:* {prose(change.child)}.")
    return f"{title}\n: {' '.join(filter(None, lines))}\n"
