"""Every command from its parser, every magic from its function, every check of the doctor from its file."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
from unittest import mock

from jupyter_tfguard.cli import make_parser
from jupyter_tfguard.doctor import checks as checks_package
from jupyter_tfguard.kernel.magics import actions

from .markdown import block, code, prose, table

_PLAIN = {"COLUMNS": "90", "NO_COLOR": "1", "PYTHON_COLORS": "0"}


def commands() -> str:
    """A section for each command: usage, what it does, its arguments."""
    subparsers = subcommands()
    return "\n".join(_command(name, parser, help_text) for name, parser, help_text in subparsers)


def subcommands() -> list[tuple[str, argparse.ArgumentParser, str]]:
    """Name, parser and short help of each command."""
    (group,) = (
        action
        for action in make_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    helps = {choice.dest: choice.help or "" for choice in group._choices_actions}
    return [(name, parser, helps[name]) for name, parser in group.choices.items()]


def _command(name: str, parser: argparse.ArgumentParser, help_text: str) -> str:
    with mock.patch.dict(os.environ, _PLAIN):
        usage = parser.format_usage()
    what = parser.description or f"{help_text[0].upper()}{help_text[1:]}."
    rows = [(code(_shown(action)), prose(action.help or "")) for action in parser._actions]
    return (
        f"(command-{name})=\n### `jupyter tfguard {name}`\n\n{prose(what)}\n\n"
        f"{block(usage.removeprefix('usage: '))}\n{table(('argument', 'what it does'), rows)}"
    )


def _shown(action: argparse.Action) -> str:
    if not action.option_strings:
        return str(action.metavar or action.dest)
    value = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper()}"
    return ", ".join(f"{option}{value}" for option in action.option_strings)


def magics() -> str:
    """A table of what can follow ``%tfguard``."""
    rows = [
        (code(f"%tfguard {name}"), prose(action.__doc__ or ""))
        for name, action in actions().items()
    ]
    return table(("magic", "what it does"), rows)


def checks() -> str:
    """A list of what the doctor checks, by the first paragraph of each file."""
    rows = []
    for module in pkgutil.iter_modules(checks_package.__path__):
        text = importlib.import_module(f"{checks_package.__name__}.{module.name}").__doc__ or ""
        rows.append((code(module.name), prose(text.partition("\n\n")[0])))
    return table(("check", "question"), rows)
