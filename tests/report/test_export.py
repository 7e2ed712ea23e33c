"""What a user leaves out of an export is in no file of it; what remains suspicious is flagged; the receiver learns the place."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.diagnosis.diagnose import diagnose
from jupyter_tfguard.errors import TfGuardError
from jupyter_tfguard.report.anonymous import Identity
from jupyter_tfguard.report.choices import LEFT_OUT, PARTS, REPLACED, Choices
from jupyter_tfguard.report.export import Export, export, shared_markdown
from jupyter_tfguard.report.left_out import FUNCTION, OTHER, SOME_PATH
from jupyter_tfguard.report.wire import to_report

pytestmark = pytest.mark.quick

NOBODY = Identity("", "", "")
RANDOM = "q9Xt2LbV7cRm4KwZp1Ns"
BUNDLE: dict[str, Any] = {
    "id": "20261121-021407-4711-cafe",
    "format": [1, 2],
    "created": 1e9,
    "identity": {
        "pid": 4711,
        "kernel_id": "6f2b8a52-0f5e-4c5e-9d0b-3b7c1d4e9a10",
        "notebook_path": "acme/Mueller_Anna/visit.ipynb",
        "died": 1_000_000_100.0,
    },
    "machine": {
        "system": "linux",
        "in_container": True,
        "is_virtual": False,
        "cores": 4,
        "memory_bytes": 16_215_404 * 1024,
    },
    "server": {
        "exit": {"signal": "SIGSEGV", "code": None, "how": "waitid"},
        "died": 1_000_000_100.0,
        "other_kernel_bytes": [700 * 2**20, 2**31],
        "gpus": [
            {
                "nvml_index": 0,
                "name": "A100",
                "processes": [{"pid": 9, "notebook_path": "secret-project/rival.ipynb"}],
            }
        ],
    },
    "kernel": {
        "header": {
            "format": [1, 2],
            "pid": 4711,
            "cwd": "/data/acme/Mueller_Anna",
            "guard": {"stop": {"state": "paused", "level": "soft", "stop_bytes": 2**25}},
        },
        "events": [
            {
                "kind": "cell_start", "t": 1_000_000_000.0, "m": 1.0, "n": 1, "execution_count": 3,
                "head": "dose = load_visit('anna')\nmodel.fit(dose, epochs=3)", "cell_id": None, "rss_bytes": 5,
            },
            {"kind": "epoch_end", "t": 1_000_000_050.0, "m": 50.0, "n": 2, "epoch": 0, "logs": {"acme_loss": 0.5}},
        ],
        "stderr_tail": [f"license {RANDOM} of ACME expired", "reading /data/acme/Mueller_Anna/scan.npy failed"],
        "fault_text": [
            "Fatal Python error: Segmentation fault",
            "Current thread 0x00007f (most recent call first):",
            '  File "/data/acme/Mueller_Anna/tools.py", line 4 in load_visit',
            '  File "/opt/venv/lib/python3.11/site-packages/keras/src/trainer.py", line 9 in fit',
            '  File "/tmp/ipykernel_4711/1.py", line 1 in <module>',
        ],
    },
}  # fmt: skip


def made(choices: Choices | None = None) -> Export:
    bundle = copy.deepcopy(BUNDLE)
    return export(bundle, to_report(bundle, diagnose(bundle)), NOBODY, choices)


def holds(exported: Export, word: str) -> list[str]:
    return [name for name, text in exported.files.items() if word.lower() in text.lower()]


@pytest.mark.parametrize(
    ("part", "words", "mark"),
    [
        ("cell-text", ["load_visit('anna')", "epochs=3"], LEFT_OUT),
        ("stderr", [RANDOM, "of ACME expired", "scan.npy failed"], LEFT_OUT),
        ("path", ["Mueller_Anna", "visit.ipynb", "tools.py"], SOME_PATH),
        ("functions", ["in load_visit"], FUNCTION),
    ],
)
def test_a_part_that_is_left_out_is_in_no_file(part: str, words: list[str], mark: str) -> None:
    whole, partial = made(), made(Choices.of([part]))
    for word in words:
        assert holds(whole, word)
        assert not holds(partial, word), word
    assert holds(partial, mark)
    assert json.loads(partial.files["report.json"])["cause"] == "segfault_native"
    # What is inside of libraries and Python's own names help, and identify nobody.
    assert holds(partial, "site-packages/keras")
    assert holds(partial, "<module>")


def test_without_any_part_nothing_of_the_user_is_left() -> None:
    bare = made(Choices.of(PARTS, ["acme"]))
    for word in ("anna", "mueller", "acme", RANDOM, "visit", "scan"):
        assert not holds(bare, word), word


def test_a_word_is_replaced_in_all_files_whatever_its_case() -> None:
    whole, replaced = made(), made(Choices.of([], ["acme", "fit"]))
    assert holds(whole, "ACME") == list(whole.files)
    assert not holds(replaced, "acme")  # also as the name of a metric
    assert holds(replaced, REPLACED) == list(replaced.files)
    assert replaced.redacted_count > whole.redacted_count
    # The format stays readable, whatever the word.
    bundle = json.loads(
        made(Choices.of([], ["kind", "fit", "soft", "cell_start"])).files["bundle.json"]
    )
    assert to_report(bundle, diagnose(bundle))["cause"] == "segfault_native"


def test_the_notebooks_of_other_kernels_are_not_named() -> None:
    exported = made()
    assert not holds(exported, "rival")
    assert holds(exported, OTHER) == ["bundle.json"]


def test_what_is_long_and_random_or_may_be_a_name_is_flagged() -> None:
    flagged = {flag["text"]: flag for flag in made().preview()["flagged"]}
    assert set(flagged) == {RANDOM, "Mueller_Anna"}
    assert flagged[RANDOM]["count"] >= 4
    assert flagged[RANDOM]["why"] != flagged["Mueller_Anna"]["why"]
    assert not made(Choices.of([], [RANDOM, "mueller_anna"])).flagged
    [left] = made(Choices.of(["path"])).flagged
    assert left.text == RANDOM


def test_a_shared_report_says_what_machine_and_guard_it_was_and_what_the_causes_mean() -> None:
    exported = made()
    report = json.loads(exported.files["report.json"])
    rows = {row["label"]: row["value"] for row in report["setting"]}
    assert rows["machine"] == "Linux, container, 4 cores, 16.0 GiB of memory"
    assert rows["stop"] == "paused by the user, level soft"
    assert rows["other kernels"] == "2.00 GiB, 700 MiB resident"
    assert report["causes"][0]["cause"] == report["cause"]
    for text in (exported.files["report.md"], exported.files["report.html"]):
        assert "paused by the user" in text
        assert "2.00 GiB, 700 MiB" in text
    assert 'href="#cause-segfault_native"' in exported.files["report.html"]
    assert 'id="cause-segfault_native"' in exported.files["report.html"]
    copied = shared_markdown(BUNDLE, to_report(BUNDLE, diagnose(BUNDLE)), NOBODY)
    assert copied == exported.files["report.md"]


def test_a_bundle_that_knows_nothing_of_its_place_says_so() -> None:
    bundle = {"id": BUNDLE["id"], "format": [1, 0], "kernel": None}
    report = json.loads((Path(__file__).parents[1] / "wire/report.json").read_text())
    rows = json.loads(export(bundle, report, NOBODY).files["report.json"])["setting"]
    assert {row["label"]: row["value"] for row in rows} == {
        "machine": "not recorded",
        "memory limit": "8.00 GiB (container limit)",
        "stop": "not recorded",
        "other kernels": "not known",
    }


@pytest.mark.parametrize(
    "value",
    [None, [], "x", {"without": "stderr"}, {"without": ["all"]}, {"replace": [1]}, {"replace": ["x"]},
     {"replace": ["y" * 501]}, {"replace": ["ab"] * 101}, {"without": [["stderr"]]}],
)  # fmt: skip
def test_choices_of_another_form_are_refused(value: Any) -> None:
    with pytest.raises(TfGuardError):
        Choices.decode(value)


def test_words_are_texts_and_no_patterns() -> None:
    choices = Choices.of([], [" a.c ", "(x"])
    assert choices.pattern is not None
    assert choices.pattern.sub("-", "abc a.c (X)") == "abc - -)"
