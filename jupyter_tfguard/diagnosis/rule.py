"""The class of rules, and the discovery of the files in ``rules/``. There is no list to extend."""

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

# Causes that a text may also show when the operating system's log says that it killed the process.
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
    """Decides whether one cause applies.

    Attributes:
        cause: The label of the cause. A rule in a separate file has the name of that file.
        needs: Kinds of evidence that the rule uses; missing ones are listed as not checked.
        outranks: Causes that this one explains, so they are ranked after it: the first error wins, not the loudest.
        judge: Returns the finding, or None if the cause does not apply. The documentation prints its docstring: one
            paragraph on what the cause means, and one on how it is recognised.
        last: The rule runs after the others, because it compares the cause of this end with those of earlier ones.
    """

    cause: str
    needs: tuple[str, ...]
    outranks: tuple[str, ...]
    judge: Judge
    last: bool = False

    @property
    def means(self) -> str:
        """What the cause means, for users; empty if Python runs without docstrings."""
        return self._paragraphs[0]

    @property
    def recognised(self) -> str:
        """The evidence that it requires, and what does not count."""
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
    """Register the decorated function as the rule for `cause`."""

    def declare(judge: Judge) -> Judge:
        if cause in _found:
            raise ValueError(f"two rules for the cause {cause}")
        _found[cause] = Rule(cause, needs, outranks, judge, last)
        return judge

    return declare


@functools.cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, sorted by cause."""
    for module in pkgutil.iter_modules(rules_package.__path__):
        importlib.import_module(f"{rules_package.__name__}.{module.name}")
    return tuple(_found[cause] for cause in sorted(_found))
