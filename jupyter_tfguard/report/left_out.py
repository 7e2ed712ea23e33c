"""Leaves parts out of a bundle and its report: text of cells, stderr, paths, names of functions.

A part is removed where it is kept, and replaced wherever else it occurs: a report quotes lines of the cell and of stderr.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..decode import dict_of, list_of
from .choices import CELL_TEXT, FUNCTIONS, LEFT_OUT, PATH, STDERR

Json = dict[str, Any]
Replacement = tuple[re.Pattern[str], str]

FUNCTION = "[function]"
SOME_PATH = "[path]"
OTHER = "[other notebook]"
# Shorter lines, such as "pass", are left where they are quoted.
_LINE_CHARACTERS = 8
_FRAME = re.compile(r"File \"([^\"]*)\", line \d+,? in ([^\s(]+)")
_LIBRARY = re.compile(r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python\d|^<frozen ")
# Names of functions that are ordinary words are replaced only in stacks.
_ORDINARY = frozenset(
    """
    apply batch build call compile data evaluate fit forward generate get init load loop main model predict run save set
    setup start step stop test train train_step update work wrapper
    """.split()  # noqa: SIM905
)
_SYSTEM = re.compile(r"/(?:usr|lib|lib64|proc|sys|dev|etc|bin|sbin|run)(?:/|$)")
_PATH = re.compile(
    r"(?<![\w/\\~.:\]-])(?:~|[A-Za-z]:)?(?:[/\\]{1,2}[^\s/\\'\"<>:;,|()\[\]{}`]{1,120}){2,40}[/\\]?|(?:(?<![\w/~])~|\[path\])[/\\][^\s'\"<>:;,|()\[\]{}`]{1,400}"
)


def left_out(bundle: Json, report: Json, without: frozenset[str]) -> tuple[Json, Json]:
    """Copies of bundle and report without the parts."""
    if CELL_TEXT in without:
        bundle = _in_kernel(bundle, "events", _without_heads)
        rows = [
            row | {"value": LEFT_OUT} if dict_of(row).get("code") else row
            for row in list_of(report.get("activity"))
        ]
        report = report | {"activity": rows, "advice": _without_code(report.get("advice"))}
        others = [
            other | {"advice": _without_code(other.get("advice"))}
            for other in map(dict_of, list_of(report.get("other_findings")))
        ]
        report["other_findings"] = others
    if STDERR in without:
        bundle = _in_kernel(bundle, "stderr_tail", lambda _: [LEFT_OUT])
        report = report | {"stderr_tail": [LEFT_OUT] if report.get("stderr_tail") else []}
    if PATH in without:
        report = report | {"notebook_path": None}
    return bundle, report


def replacements(bundle: Json, report: Json, without: frozenset[str]) -> list[Replacement]:
    """Patterns of what else of the parts is quoted in texts, and of the notebooks of others, with what replaces it."""
    kernel = dict_of(bundle.get("kernel"))
    found: list[Replacement] = []
    lines: list[str] = []
    if CELL_TEXT in without:
        heads = [str(dict_of(event).get("head") or "") for event in list_of(kernel.get("events"))]
        lines += [line for head in heads for line in head.removesuffix("…").splitlines()]
    if STDERR in without:
        lines += [
            *map(str, list_of(kernel.get("stderr_tail"))),
            *map(str, list_of(report.get("stderr_tail"))),
        ]
    found += _literally(lines, LEFT_OUT, _LINE_CHARACTERS)
    own = {str(path) for path in _own_paths(bundle, report)}
    found += _literally(_with_names(set(_notebooks(bundle)) - own), OTHER, 4)
    if PATH in without:
        found += _literally(_with_names(own), SOME_PATH, 4)
    if FUNCTIONS in without:
        found += _functions(bundle, report)
    return found


def without_paths(text: str) -> str:
    """The text with each path replaced, except those of the system and the part inside of libraries."""
    return _PATH.sub(_shortened, text)


def _shortened(path: re.Match[str]) -> str:
    library = _LIBRARY.search(path[0])
    if library is not None:
        return SOME_PATH + path[0][library.start() :]
    return path[0] if _SYSTEM.match(path[0]) else SOME_PATH


def _in_kernel(bundle: Json, name: str, change: Any) -> Json:
    kernel = dict_of(bundle.get("kernel"))
    return (
        bundle | {"kernel": kernel | {name: change(kernel[name])}} if kernel.get(name) else bundle
    )


def _without_heads(events: Any) -> list[Any]:
    return [
        event | {"head": LEFT_OUT} if dict_of(event).get("head") else event
        for event in list_of(events)
    ]


def _without_code(advice: Any) -> list[Any]:
    return [step | {"code": None} for step in map(dict_of, list_of(advice))]


def _literally(texts: Any, mark: str, shortest: int) -> list[Replacement]:
    whole = sorted({t.strip() for t in texts if len(t.strip()) >= shortest}, key=len, reverse=True)
    # In parts: a pattern of thousands of texts takes long to build.
    return [
        (re.compile("|".join(map(re.escape, whole[at : at + 200]))), mark)
        for at in range(0, len(whole), 200)
    ]


def _with_names(paths: set[str]) -> Iterator[str]:
    for path in paths:
        yield path
        yield re.split(r"[/\\]", path)[-1]


def _own_paths(bundle: Json, report: Json) -> Iterator[Any]:
    header = dict_of(dict_of(bundle.get("kernel")).get("header"))
    left = dict_of(dict_of(report.get("left")).get("checkpoint"))
    yield from (
        found
        for found in (
            dict_of(bundle.get("identity")).get("notebook_path"),
            header.get("notebook_path"),
            report.get("notebook_path"),
            header.get("cwd"),
            left.get("path"),
        )
        if isinstance(found, str) and found
    )


def _notebooks(value: Any) -> Iterator[str]:
    """Every path of a notebook in a bundle: those of other kernels too."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "notebook_path" and isinstance(item, str) and item:
                yield item
            else:
                yield from _notebooks(item)
    elif isinstance(value, list):
        for item in value:
            yield from _notebooks(item)


def _functions(bundle: Json, report: Json) -> Iterator[Replacement]:
    kernel = dict_of(bundle.get("kernel"))
    stacks = [
        list_of(kernel.get("fault_text")),
        list_of(kernel.get("stderr_tail")),
        *map(list_of, dict_of(kernel.get("signal_texts")).values()),
        list_of(dict_of(dict_of(bundle.get("server")).get("hang")).get("stacks")),
        list_of(report.get("python_stack")),
    ]
    names = {
        match[2].rpartition(".")[2]
        for stack in stacks
        for line in stack
        for match in _FRAME.finditer(str(line))
        if not _LIBRARY.search(match[1])
    }
    names = {name for name in names if re.fullmatch(r"\w{2,200}", name)}
    for name in sorted(names, key=len, reverse=True):
        before = r"(?<=, in )|(?<=\d in )" if name in _ORDINARY else r"(?<!\w)"
        yield re.compile(rf"(?:{before}){re.escape(name)}(?!\w)"), FUNCTION
