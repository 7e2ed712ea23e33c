"""What a rule is, and how the files in ``rules/`` are found: no list to extend."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from . import rules as rules_package
from .evidence import Evidence
from .finding import Finding

# What a text may tell beside the operating system's own word that it killed the process.
CONSEQUENCES_OF_A_KILL = (
    "sigkill_unattributed",
    "cpu_alloc_failure",
    "gpu_oom",
    "kernel_start_failed",
    "no_crash",
    "segfault_native",
    "sys_exit",
    "terminated_by_user_or_manager",
    "tf_check_failed",
)

Judge = Callable[[Evidence], Finding | None]


@dataclass(frozen=True)
class Rule:
    """Judges one cause.

    Attributes:
        cause: The label of the cause. A rule with a file of its own has its name.
        needs: Kinds of evidence it looks at; those that are missing are listed as not checked.
        outranks: Causes that this one explains, so that they stand behind it: the first error wins, not the loudest.
        judge: The finding, or None where it does not apply. Its docstring is what the documentation says of the cause:
            a paragraph on what it means, and one on how it is recognised.
        last: It judges after the others, because it compares this end's cause with those of earlier ones.
    """

    cause: str
    needs: tuple[str, ...]
    outranks: tuple[str, ...]
    judge: Judge
    last: bool = False

    @property
    def means(self) -> str:
        """What the cause means, for people; empty where Python left out docstrings."""
        return self._paragraphs[0]

    @property
    def recognised(self) -> str:
        """What must be seen for it, and what does not count."""
        return self._paragraphs[-1]

    @property
    def _paragraphs(self) -> list[str]:
        text = inspect.cleandoc(self.judge.__doc__ or "")
        return [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]


_found: dict[str, Rule] = {}


def rule(
    cause: str,
    *,
    needs: tuple[str, ...] = (),
    outranks: tuple[str, ...] = (),
    last: bool = False,
) -> Callable[[Judge], Judge]:
    """Declare the decorated function to be the judge of `cause`."""

    def declare(judge: Judge) -> Judge:
        if cause in _found:
            raise ValueError(f"two rules for the cause {cause}")
        _found[cause] = Rule(cause, needs, outranks, judge, last)
        return judge

    return declare


@functools.cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, by name of its cause."""
    for module in pkgutil.iter_modules(rules_package.__path__):
        importlib.import_module(f"{rules_package.__name__}.{module.name}")
    return tuple(_found[cause] for cause in sorted(_found))
