"""Every example's JSON is valid by its published schema. Other documents are compared where their tests make them."""

from __future__ import annotations

import copy
import json

import jsonschema
import pytest

from jupyter_tfguard.cli import main
from jupyter_tfguard.cli.schema import DOCUMENTS, schema_of
from jupyter_tfguard.diagnosis.diagnose import diagnose, explain
from jupyter_tfguard.report import explained
from jupyter_tfguard.report.documents import crashes_json
from jupyter_tfguard.report.wire import to_entry_and_report
from tests.rigs.examples import examples, text_examples
from tests.rigs.schemas import matches

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("kind", ["fires", "quiet"])
def test_reports_and_list_of_all_examples_match(kind: str) -> None:
    entries = []
    for example in examples(kind):
        bundle = example.bundle
        summary, report = to_entry_and_report(bundle, diagnose(bundle))
        matches("report", report)
        matches("report", report | {"unread": True})
        entries.append(summary | {"unread": True, "announced": False, "same_as": None})
    matches("crashes", crashes_json(entries))


@pytest.mark.parametrize("kind", ["fires", "quiet"])
def test_explanations_of_all_pasted_examples_match(kind: str) -> None:
    for example in text_examples(kind):
        matches("explanation", explained.to_json(explain(example.pasted)))


def test_a_missing_field_a_wrong_type_and_an_unknown_value_do_not_match() -> None:
    bundle = examples("fires")[0].bundle
    _, report = to_entry_and_report(bundle, diagnose(bundle))
    for key in report:
        without = copy.deepcopy(report)
        del without[key]
        with pytest.raises(jsonschema.ValidationError):
            matches("report", without)
    for changed in ({"confidence": "sure"}, {"pid": "4711"}, {"schema_version": 2}, {"more": 1}):
        with pytest.raises(jsonschema.ValidationError):
            matches("report", report | changed)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_command_prints_each_schema(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert f"{name} " in capsys.readouterr().out
    assert main(["schema", name]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == schema_of(name)
    jsonschema.Draft202012Validator.check_schema(printed)
    assert printed["$id"] == f"urn:jupyter-tfguard:{name}:1"
    assert "schema_version" in printed["required"]
    used = {ref.split('"')[0] for ref in json.dumps(printed).split("#/$defs/")[1:]}
    assert used == set(printed["$defs"])
