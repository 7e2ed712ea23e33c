"""Every option: of the guard from its traits, of the display from the schema that JupyterLab reads."""

from __future__ import annotations

import json
from pathlib import Path

from jupyter_tfguard.config import TfGuard

from .markdown import prose

_SCHEMA = Path(__file__).parents[2] / "labextension/schema/plugin.json"
_RESTART = {"server": "Jupyter", "kernel": "the kernel", "both": "Jupyter and its kernels"}


def guard_options() -> str:
    """A section for each option of the guard, in the order of ``config.py``."""
    traits = TfGuard.class_own_traits(config=True)
    sections = []
    for name in (name for name in vars(TfGuard) if name in traits):
        trait = traits[name]
        bounds = [
            f"{word} {value:g}"
            for word, value in (
                ("at least", getattr(trait, "min", None)),
                ("at most", getattr(trait, "max", None)),
            )
            if value is not None
        ]
        facts = [f"Default: `{trait.default_value!r}`", type(trait).__name__.lower(), *bounds]
        restart = _RESTART[trait.metadata["read_by"]]
        sections.append(
            f"(option-{name})=\n### `TfGuard.{name}`\n\n{prose(trait.help)}\n\n"
            f"{', '.join(facts)}. After a change, restart {restart}.\n"
        )
    return "\n".join(sections)


def display_options() -> str:
    """A definition for each setting of the panel."""
    schema = json.loads(_SCHEMA.read_text(encoding="utf-8"))
    return "\n".join(
        f"{setting['title']} (`{name}`)\n: {prose(setting['description'])} "
        f"Default: `{json.dumps(setting['default'])}`.\n"
        for name, setting in schema["properties"].items()
    )
