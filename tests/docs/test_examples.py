"""Settings and code on the pages are accepted: by the options themselves, and by Python."""

from __future__ import annotations

import ast
import dataclasses
import json
import re
from pathlib import Path

import pytest
from traitlets.config import Config

from jupyter_tfguard import places
from jupyter_tfguard.config import TfGuard
from jupyter_tfguard.diagnosis.diagnose import explain
from jupyter_tfguard.diagnosis.pasted import Pasted
from jupyter_tfguard.diagnosis.rule import all_rules
from jupyter_tfguard.doctor.check import CheckResult, Status
from jupyter_tfguard.report import explained
from tests.rigs.documents import ROOT, blocks, documents, notebooks, text_of

pytestmark = pytest.mark.quick

PAGES = documents()
ids = [str(path.relative_to(ROOT)) for path in PAGES]


@pytest.mark.parametrize("path", PAGES, ids=ids)
def test_json_of_settings_is_accepted(path: Path) -> None:
    for block in blocks(path):
        if block.language == "json" and "TfGuard" in block.text:
            settings = json.loads(block.text)
            assert set(settings) == {"TfGuard"}
            accepted(settings)


def accepted(settings: dict[str, dict[str, object]]) -> None:
    """Each option exists and can have that value."""
    made = TfGuard(config=Config(settings))
    for name, value in settings["TfGuard"].items():
        assert name in TfGuard.class_own_traits(config=True)
        assert getattr(made, name) == value


@pytest.mark.parametrize("path", PAGES, ids=ids)
def test_python_code_is_python_and_its_settings_are_accepted(path: Path) -> None:
    for block in blocks(path):
        if block.language == "python":
            ast.parse(block.text)
            if "c.TfGuard" in block.text:
                config = Config()
                exec(block.text, {"c": config})
                accepted({"TfGuard": dict(config.TfGuard)})


@pytest.mark.parametrize("path", [*PAGES, *notebooks()], ids=lambda path: path.name)
def test_named_options_and_variables_exist(path: Path) -> None:
    text = text_of(path)
    traits = TfGuard.class_own_traits(config=True)
    assert set(re.findall(r"\bTfGuard\.([a-z_]+)", text)) <= set(traits)
    variables = {value for name, value in vars(places).items() if name.endswith("_VARIABLE")}
    assert set(re.findall(r"\bTFGUARD_[A-Z_]+", text)) <= variables


def test_the_table_of_variables_has_those_that_users_set() -> None:
    page = (ROOT / "notebooks/configuration.md").read_text(encoding="utf-8")
    for name in (
        places.DISABLE_VARIABLE,
        places.DIRECTORY_VARIABLE,
        places.LIVE_VARIABLE,
        places.GROWTH_VARIABLE,
    ):
        assert f"| `{name}` |" in page


def test_the_number_of_causes_of_explain_is_right() -> None:
    """Causes that a pasted log can have; `no_crash` is none."""
    from tests.rigs.examples import text_examples

    told = {example.cause for example in text_examples("fires")} - {"no_crash", "unknown"}
    page = (ROOT / "notebooks/explain.md").read_text(encoding="utf-8")
    assert f"It knows {len(told)} causes" in page
    assert told <= {rule.cause for rule in all_rules()}


def test_fields_of_json_answers_are_those_that_the_pages_name() -> None:
    doctor = (ROOT / "notebooks/doctor.md").read_text(encoding="utf-8")
    assert all(f"`{field.name}`" in doctor for field in dataclasses.fields(CheckResult))
    assert all(f"`{status.value}`" in doctor for status in Status)
    made = explained.to_json(explain(Pasted("MemoryError", "", None)))
    page = (ROOT / "notebooks/explain.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in (*made, *made["findings"][0]))
