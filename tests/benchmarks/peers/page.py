"""Writes the comparison page from the results of the two measured parts."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.benchmarks.bench import summary
from tests.benchmarks.peers.deaths import DEATHS, Death
from tests.benchmarks.peers.judging import SERVER, Answer, Level, best, stored
from tests.benchmarks.peers.watching import HANG_SECONDS, PATIENCE_SECONDS, Said

TOOLS = (
    "jupyter-tfguard",
    "plain Jupyter",
    "jupyter-resource-usage",
    "jupyterlab-nvdashboard",
    "marimo",
    "papermill",
    "memray",
)
_LABS = TOOLS[:4]
_TERMINALS = TOOLS[5:]
_WORDS = {
    Level.CAUSE: "cause",
    Level.ENDING: "signal or code",
    Level.DIED: "died",
    Level.NOTHING: "nothing",
}
_COSTS, _OTHERS = "## Costs\n", "## What other tools do better\n"  # where these parts begin
_TEXTS = Path(__file__).parent
Found = dict[str, dict[str, list[Said]]]


def write(folder: Path, page: str) -> str:
    """The page. A part without results in `folder` stays as it is.

    Args:
        folder: May have ``deaths/TOOL.json`` and ``costs.json``.
        page: The page as it is.
    """
    deaths, rest = page.split(_COSTS)
    costs = _COSTS + rest.split(_OTHERS)[0]
    if any(folder.glob("deaths/*.json")):
        deaths = _deaths(folder)
    if (folder / "costs.json").exists():
        costs = _costs(json.loads((folder / "costs.json").read_text()))
    parts = [deaths, costs, (_TEXTS / "others.md").read_text()]
    return "\n".join(part.strip("\n") + "\n" for part in parts)


def _deaths(folder: Path) -> str:
    found: Found = {}
    known: dict[str, Any] = {}
    for file in sorted(folder.glob("deaths/*.json")):
        known = json.loads(file.read_text())
        for death, said in known["found"].items():
            found.setdefault(death, {})[file.stem] = [Said(**one) for one in said]
    parts = [
        (_TEXTS / "introduction.md").read_text(),
        _facts(known),
        _overview(found),
        *(_one(death, found[death.name]) for death in DEATHS if death.name in found),
    ]
    return "\n".join(part.strip("\n") + "\n" for part in parts)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [[*head]]
    lines.append(["---"] * len(lines[0]))
    lines += [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _facts(known: dict[str, Any]) -> str:
    machine = known["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in known["versions"].items())
    return (
        "## This run\n\n"
        f"* Machine: {machine['cores']} cores, {machine['memory']} of memory, {machine['system']}, "
        f"cgroup {machine['cgroup']}, no GPU.\n"
        f"* Date: {machine['date']}.\n"
        "* Command: `python -m tests.benchmarks.comparison FOLDER deaths page`; `--only` runs one tool or death again.\n"
        f"* Versions: {versions}.\n"
    )


def _overview(found: Found) -> str:
    rows = []
    for number, death in enumerate(DEATHS, 1):
        if death.name in found:
            answers = [_cell(tool, death, found[death.name].get(tool)) for tool in TOOLS]
            rows.append([f"{number}. {death.title}", *answers])
    counts = [
        sum(
            best(death, found[death.name].get(tool, [])).level == Level.CAUSE
            for death in DEATHS
            if death.name in found
        )
        for tool in TOOLS
    ]
    rows.append([f"**Cause named, of {len(rows)}**", *(f"**{count}**" for count in counts)])
    return "## The deaths: an overview\n\n" + _table(["death", *TOOLS], rows)


def _cell(tool: str, death: Death, said: list[Said] | None) -> str:
    if said is None:
        return "not run"
    answer = best(death, said)
    text = ", ".join(filter(None, (_WORDS[answer.level], _after(answer, tool))))
    if best(death, said, server=True).level > answer.level:
        text += f" ({_WORDS[best(death, said, server=True).level]} in the server's terminal)"
    return text


def _after(answer: Answer, tool: str) -> str:
    if answer.said is None:
        return ""
    if answer.said.seconds is None:
        return "looked up later"
    seconds = answer.said.seconds
    when = f"{seconds:.1f} s" if seconds >= 0.1 else "< 0.1 s"
    if not answer.said.after_restart:
        return when
    return f"{when}, after {'Ctrl-C' if tool in _TERMINALS else 'the restart'}"


def _one(death: Death, by_tool: dict[str, list[Said]]) -> str:
    rows = []
    for tool in TOOLS:
        if tool not in by_tool:
            continue
        said = by_tool[tool]
        answer = best(death, said)
        quotes = [f'{answer.said.where}: "{_escaped(answer.quote)}"'] if answer.said else []
        terminal = best(death, said, server=True)
        if terminal.level > answer.level:
            quotes.append(f'{SERVER}: "{_escaped(terminal.quote)}"')
        quotes += [
            f"{where}: {_escaped(text)}" for where, text in stored(said) if text != answer.quote
        ]
        rows.append([tool, _WORDS[answer.level], _after(answer, tool), "<br>".join(quotes)])
    number = DEATHS.index(death) + 1
    head = ["tool", "level", "known after", "what it showed or kept"]
    return f"### {number}. {death.title}\n\n{_note(death)}{_table(head, rows)}"


def _escaped(text: str) -> str:
    """A quote as Markdown shows it: nothing in it is markup."""
    return re.sub(r"([\\`*_\[\]<>~])", r"\\\1", text)


def _note(death: Death) -> str:
    if not death.restarted:
        return ""
    return (
        f"The user waits {PATIENCE_SECONDS:.0f} s, then restarts the kernel, or presses Ctrl-C in a terminal. "
        f"tfguard reports a hang after five minutes by default; in this run after {HANG_SECONDS:.0f} s.\n\n"
    )


# --- costs


def _costs(known: dict[str, Any]) -> str:
    turns = known["turns"]
    parts = [_COSTS, (_TEXTS / "costs.md").read_text().rstrip("\n") + "\n", _facts_of_costs(known)]
    return "\n".join([*parts, _fits(turns), _panels(turns), _starts(turns)])


def _facts_of_costs(known: dict[str, Any]) -> str:
    machine = known["machine"]
    return f"Measured on {machine['date']} by `{machine['command'].strip()}`, {len(known['turns'])} turns.\n"


def _spread(values: list[float], form: Callable[[float], str]) -> str:
    found = summary([{"": value} for value in values])[""]
    return f"{form(found['median'])} ({form(found['low'])} to {form(found['high'])})"


def _ratios(turns: list[Any], case: str) -> list[float]:
    return [on / off for turn in turns for on, off in turn[case]["pairs"]]


def _fits(turns: list[Any]) -> str:
    from tests.benchmarks.peers.costs import FITS
    from tests.benchmarks.step_cost import STEPS

    rows = []
    for tool in (*_LABS, "memray"):
        pairs = [pair for turn in turns for pair in turn[tool]["pairs"]]
        speeds = [[STEPS * FITS / seconds for seconds in side] for side in zip(*pairs, strict=True)]
        rows.append(
            [
                tool,
                *(_spread(side, lambda v: f"{v:.0f}") for side in speeds),
                _spread(_ratios(turns, tool), lambda v: f"{v:.3f}"),
                str(len(pairs)),
            ]
        )
    head = [
        "tool",
        "steps per second, with",
        "steps per second, without",
        "time with / without",
        "n",
    ]
    written = statistics.median(turn["memray"]["bytes_per_step"] for turn in turns)
    return (
        f"### Effect on a fit\n\n{_table(head, rows)}\n"
        f"memray's file grew by {written / 1024:.1f} KiB per step.\n"
    )


def _panels(turns: list[Any]) -> str:
    rows = []
    for tool in _LABS:
        seen = [turn[tool] for turn in turns]
        plain = [turn["plain Jupyter"] for turn in turns]
        per_sample = [
            1000 * (_work(one) - _work(base)) / one["samples_per_second"]
            for one, base in zip(seen, plain, strict=True)
            if one["samples_per_second"]
        ]
        shares = [
            _spread([100 * one[f"{part}_fraction"] for one in seen], lambda v: f"{v:.2f} %")
            for part in ("kernel", "server", "page")
        ]
        rate = _spread([one["samples_per_second"] for one in seen], lambda v: f"{v:.1f}")
        cost = _spread(per_sample, lambda v: f"{v:.1f} ms") if per_sample else "no samples"
        rows.append([tool, rate, *shares, cost])
    head = ["panel", "samples per second", "kernel", "server", "page", "one sample"]
    ratio = [
        turn["jupyter-tfguard"]["page_fraction"] / turn["jupyterlab-nvdashboard"]["page_fraction"]
        for turn in turns
    ]
    compared = _spread(ratio, lambda v: f"{v:.2f}")
    return (
        f"### A sample, and the page in the browser\n\n{_table(head, rows)}\n"
        f"Page, jupyter-tfguard / jupyterlab-nvdashboard in the same turn: {compared}.\n"
    )


def _work(one: dict[str, float]) -> float:
    return one["kernel_fraction"] + one["server_fraction"]


def _starts(turns: list[Any]) -> str:
    pairs = [pair for turn in turns for pair in turn["kernel start"]["pairs"]]
    guarded, bare = ([*side] for side in zip(*pairs, strict=True))
    ratio = _spread(_ratios(turns, "kernel start"), lambda v: f"{v:.2f}")
    rows = [
        ["with jupyter-tfguard", _spread(guarded, lambda v: f"{v:.2f} s")],
        ["without", _spread(bare, lambda v: f"{v:.2f} s")],
        ["ratio by turns", ratio],
    ]
    return (
        "### Effect on the start of a kernel\n\n"
        "jupyter-resource-usage, jupyterlab-nvdashboard and papermill put nothing into a kernel at its start.\n\n"
        + _table(["kernel", f"start, n = {len(pairs)}"], rows)
    )
