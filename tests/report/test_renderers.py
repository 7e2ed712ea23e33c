"""What a report says as text and as JSON; Markdown is the text in a code block."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jupyter_tfguard.diagnosis.diagnose import diagnose
from jupyter_tfguard.report import html, text
from jupyter_tfguard.report.announce import whose
from jupyter_tfguard.report.frames import short_frames
from jupyter_tfguard.report.wire import to_entry_and_report, to_report
from tests.rigs.examples import EXAMPLES, bundle_of, examples

pytestmark = pytest.mark.quick

NATIVE_EXAMPLE = "fires-check-failed-abort.json"


def report_of(path: str) -> dict[str, object]:
    bundle = bundle_of(path)
    return to_report(bundle, diagnose(bundle))


def test_the_text_of_a_memory_death_names_what_matters() -> None:
    printed = text.render(report_of("cgroup_oom/fires-v2-own-limit.json"))
    flat = " ".join(printed.split())
    for words in (
        "memory limit of its container (4.00 GiB)",
        "peak 3.93 GiB",
        "[12] history = model.fit",
        "epoch 1 of 10, step 3 of 5",
        "2048 × 100 × 100 × 3, float32",
        "batch_size=512",
        "grew by 2.33 GiB after the start of the fit",
        "1 OOM kill and 94 limit hits",
    ):
        assert words in flat


def test_what_to_do_is_before_how_we_know() -> None:
    report: Any = report_of("cgroup_oom/fires-v2-own-limit.json")
    for printed in (text.render(report), html.render(report)):
        headings = ["What to do", "What you were doing", "How we know"]
        assert headings == sorted(headings, key=printed.index)
    page = html.render(report)
    assert page.index("What to do") < page.index("<figure>")


def test_no_line_is_wider_than_a_terminal_except_code() -> None:
    for example in examples("fires"):
        printed = text.render(to_report(example.bundle, diagnose(example.bundle)))
        body = printed.split("Last lines of stderr")[0]
        assert max(len(line) for line in body.splitlines() if "model." not in line) <= 124


def test_markdown_is_the_whole_text_in_a_code_block_that_no_line_ends() -> None:
    report: Any = report_of("tf_check_failed/" + NATIVE_EXAMPLE)
    report["stderr_tail"] = [f"line {n}" for n in range(60)] + ["`" * 5]
    first, *lines, last = text.markdown(report).splitlines()
    assert (first, last) == ("``````text", "``````")
    assert {"  line 0", "  `````", "Versions"} <= set(lines)
    assert "line 0\n" not in text.render(report)


def test_the_list_has_the_fields_that_scripts_read() -> None:
    bundle = bundle_of("sys_exit/fires-exit-3.json")
    entry, _ = to_entry_and_report(bundle, diagnose(bundle))
    wanted = {
        "id",
        "kernel_id",
        "pid",
        "cause",
        "confidence",
        "title",
        "because",
        "crashed_at",
        "notebook_path",
    }
    assert wanted <= set(entry)
    assert entry["cause"] == "sys_exit"
    assert entry["because"]
    assert all(isinstance(fact, str) for fact in entry["because"])


def test_types_that_a_forged_recording_may_hold_break_nothing() -> None:
    bundle = bundle_of("cgroup_oom/fires-v2-own-limit.json")

    def parts(found: dict[str, Any]) -> list[dict[str, Any]]:
        return [found["kernel"], found["kernel"]["events"][0], found["kernel"]["progress"]]

    for number, part in enumerate(parts(bundle)):
        for value in (None, -1, 1e308, "x", [], {}, [[]], True):
            for key in part:
                forged = json.loads(json.dumps(bundle))
                parts(forged)[number][key] = value
                text.render(to_report(forged, diagnose(forged)))


def test_a_loss_that_is_not_a_number_is_a_word_and_the_json_stays_json() -> None:
    bundle = bundle_of("sigkill_unattributed/fires-plain-kill-9.json")
    logs = {"loss": float("nan"), "mae": float("inf"), "acc": 0.5}
    end = {"n": 9, "t": bundle["identity"]["died"] - 1, "m": 9.0, "kind": "epoch_end", "fit_id": 1}
    bundle["kernel"]["events"].append(end | {"epoch": 1, "logs": logs, "seconds": 1.0})
    report = to_report(bundle, diagnose(bundle))
    assert report["left"]["metrics"]["rows"] == [[1, "nan", "inf", 0.5]]
    json.dumps(report, allow_nan=False)
    assert "nan" in text.render(report)


def test_a_crash_in_native_code_says_what_the_guard_had_replaced() -> None:
    def said(path: str, stop: object) -> str:
        bundle = bundle_of(path)
        bundle["kernel"]["header"]["guard"] = {"stop": stop}
        return " ".join(text.render(to_report(bundle, diagnose(bundle))).split())

    stop = {"level": "soft", "patched": ["NumPy", "Python", 7]}
    crash, kill = (
        "segfault_native/fires-with-python-stack.json",
        "sigkill_unattributed/fires-plain-kill-9.json",
    )
    replaced = "replaced memory functions of NumPy, Python (TfGuard.stop = 'soft')"
    assert replaced in said(crash, stop)
    assert "replaced" not in said(kill, stop)
    for other in (None, {"level": "off", "patched": []}, {"patched": "x"}):
        assert "replaced" not in said(crash, other)


def shape(value: object) -> object:
    """Names and nesting of a JSON value, without its data."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value and isinstance(value[0], dict) else "list"
    return "value"


def missing(wanted: object, found: object, path: str = "") -> list[str]:
    """Paths in `wanted` that `found` does not have; what is null or empty in `found` says nothing."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return [
            gap
            for name, inner in wanted.items()
            for gap in (
                [f"{path}.{name}"]
                if name not in found
                else missing(inner, found[name], f"{path}.{name}")
            )
        ]
    if isinstance(wanted, list) and isinstance(found, list):
        return missing(wanted[0], found[0], f"{path}[]")
    return []


@pytest.mark.parametrize("name", ["report", "crashes"])
def test_the_json_has_the_shape_that_the_front_end_is_tested_with(name: str) -> None:
    sample = json.loads((EXAMPLES.parent / f"wire/{name}.json").read_text())
    bundle = bundle_of("cgroup_oom/fires-v2-own-limit.json")
    diagnosis = diagnose(bundle)
    made: object = to_report(bundle, diagnosis) | {"unread": True}
    if name == "crashes":
        entry, _ = to_entry_and_report(bundle, diagnosis)
        made = {"crashes": [entry | {"unread": True, "same_as": None}]}
    versions_differ = {".versions.keras", ".versions.numpy", ".versions.ipykernel"}
    assert set(missing(shape(sample), shape(made))) - versions_differ == set()


def test_the_cell_that_ran_is_named_so_that_its_notebook_can_carry_a_mark() -> None:
    bundle = bundle_of("cgroup_oom/fires-v2-own-limit.json")
    start = {"t": 1.0, "kind": "cell_start", "execution_count": 12, "cell_id": "b2f0c1d4"}
    for events, cell in (
        ([start], {"cell_id": "b2f0c1d4", "execution_count": 12}),
        ([start, {"t": 2.0, "kind": "cell_end"}], None),
        ([start | {"cell_id": ["x"]}], {"cell_id": None, "execution_count": 12}),
    ):
        bundle["kernel"]["events"] = events
        entry, report = to_entry_and_report(bundle, diagnose(bundle))
        assert entry["cell"] == report["cell"] == cell


def long_cell() -> dict[str, Any]:
    """A cell that runs for an hour; the server remembers the last seven seconds of it."""
    bundle = bundle_of("cgroup_oom/fires-v2-own-limit.json")
    died = bundle["identity"]["died"]
    for event in bundle["kernel"]["events"]:
        event["t"] -= 3600
    bundle["kernel"]["seconds"] = {
        "columns": ["time", "process.rss_bytes.min", "process.rss_bytes.max"],
        "rows": [[died - 7200 + n * 4, 1e9 + n, 1e9 + n + 0.5] for n in range(1795)],
    }
    return bundle


def test_the_curve_goes_back_to_the_beginning_of_the_cell() -> None:
    bundle = long_cell()
    report = to_report(bundle, diagnose(bundle))
    cell = next(e for e in bundle["kernel"]["events"] if e["kind"] == "cell_start")
    memory = report["memory"]
    assert cell["t"] - 60 < memory["samples"][0][0] <= cell["t"]
    assert 300 < len(memory["samples"]) <= 600
    assert memory["events"][0] == {"time": cell["t"], "kind": "cell", "label": "[12]"}


def test_the_curve_of_a_cell_that_had_ended_is_that_of_the_last_minutes() -> None:
    bundle = long_cell()
    bundle["kernel"]["events"] = [{"n": 1, "t": 0.0, "m": 0.0, "kind": "cell_end"}]
    report = to_report(bundle, diagnose(bundle))
    assert report["memory"]["samples"][0][0] > bundle["identity"]["died"] - 600


def test_a_fact_that_rests_on_a_line_of_a_log_shows_that_line() -> None:
    report = report_of("cgroup_oom/fires-log-names-kernel-without-counters.json")
    evidence: Any = report["evidence"]
    (fact,) = [fact for fact in evidence if fact["raw"]]
    assert fact["source"] == "system log"
    assert "was killed because memory ran out" in fact["text"]
    assert "Killed process" in fact["raw"]
    assert fact["raw"] not in fact["text"]
    assert fact["raw"] in " ".join(text.render(report).split())


def test_a_native_line_is_shown_whole_with_its_time_and_file() -> None:
    evidence: Any = report_of("tf_check_failed/" + NATIVE_EXAMPLE)["evidence"]
    (fact,) = [fact for fact in evidence if fact["raw"]]
    assert fact["text"].startswith("Message on stderr: ")
    assert fact["text"].removeprefix("Message on stderr: ") in fact["raw"]


def test_earlier_deaths_of_the_same_kind_in_the_same_notebook_are_counted() -> None:
    bundle = bundle_of("cgroup_oom/fires-v2-own-limit.json")
    died, path = bundle["identity"]["died"], bundle["identity"]["notebook_path"]
    same = {"cause": "cgroup_oom", "signal": None, "died": died - 60, "kernel_id": "k"}
    bundle["earlier_deaths"] = [
        same | {"notebook_path": path},
        same | {"notebook_path": path, "died": died - 30},
        same | {"notebook_path": path, "cause": "sys_exit"},
        same | {"notebook_path": "another.ipynb"},
        same | {"notebook_path": path, "kernel_alive": True},
    ]
    assert to_report(bundle, diagnose(bundle))["same_before_count"] == 2


def test_the_way_to_resume_from_a_checkpoint_is_printed() -> None:
    bundle = bundle_of("cgroup_oom/fires-v2-own-limit.json")
    died = bundle["identity"]["died"]
    event = {"n": 9, "t": died - 1, "m": 9.0, "kind": "checkpoint", "path": "/runs/m.keras"}
    bundle["kernel"]["events"].append(event | {"written": died - 1})
    report = to_report(bundle, diagnose(bundle))
    printed = text.render(report)
    assert "model = keras.models.load_model('/runs/m.keras')" in printed
    assert "may be" not in printed
    bundle["checkpoint_file"] = {"modified": died - 0.1}
    report = to_report(bundle, diagnose(bundle))
    assert "may be incomplete. Check that it loads" in text.render(report)


def test_a_stack_keeps_line_and_function_of_long_paths_and_folds_ipython() -> None:
    site = "/opt/env/lib/python3.11/site-packages"
    long = f"{site}/{'deep/' * 30}layer.py"
    lines = [
        "Thread 0x00007f41c0a3e740 (most recent call first):",
        f'  File "{long}", line 12 in call',
        '  File "/opt/env/lib/python3.11/asyncio/base_events.py", line 90 in run_forever',
        '  File "/tmp/ipykernel_4711/2093841.py", line 4 in <module>',
        f'  File "{site}/IPython/core/interactiveshell.py", line 3549 in run_code',
        f'  File "{site}/ipykernel/kernelapp.py", line 758 in start',
        f'  File "{site}/tornado/platform/asyncio.py", line 211 in start',
        '  File "<frozen runpy>", line 88 in _run_code',
    ]
    head, call, *rest = short_frames(lines, 100)
    assert head == lines[0]
    assert len(call) == 100
    assert call.endswith('deep/layer.py", line 12 in call')
    assert rest == [*lines[2:4], "  … 4 frames of IPython"]


def test_a_page_shows_a_stack_without_the_frames_of_ipython() -> None:
    bundle = bundle_of("segfault_native/fires-with-python-stack.json")
    site = "/opt/env/lib/python3.11/site-packages"
    machinery = [
        f'  File "{site}/IPython/core/interactiveshell.py", line {n} in run' for n in range(80)
    ]
    bundle["kernel"]["fault_text"] += [*machinery, "", "Thread 0x2 (most recent call first):"]
    report: Any = to_report(bundle, diagnose(bundle))
    assert "  … 80 frames of IPython" in report["python_stack"]
    for printed in (html.render(report), text.render(report), text.markdown(report)):
        assert "80 frames of IPython" in printed
        assert "interactiveshell.py" not in printed


def test_what_tensorflow_prints_at_every_start_is_one_line_of_the_stderr_tail() -> None:
    bundle = bundle_of("segfault_native/fires-with-python-stack.json")
    starts = [
        "2026-09-21 14:13:00.1: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on. You may see slightly",
        "2026-09-21 14:13:00.2: I tensorflow/core/platform/cpu_feature_guard.cc:227] This TensorFlow binary is optimized to use available CPU instructions",
        "To enable the following instructions: AVX2 FMA, in other operations, rebuild TensorFlow",
    ]
    end = "2026-09-21 14:13:19.9: F tensorflow/core/platform/cpu_feature_guard.cc:38] The TensorFlow library was compiled to"
    bundle["kernel"]["stderr_tail"] = [*starts, end, starts[0]]
    report: Any = to_report(bundle, diagnose(bundle))
    assert report["stderr_tail"] == [
        "… 3 known harmless lines of TensorFlow",
        end,
        "… 1 known harmless line of TensorFlow",
    ]


def test_a_crash_of_another_notebook_is_named() -> None:
    entry = {"kernel_id": "k1", "notebook_path": "data/train.ipynb", "pid": 4711}
    assert whose(entry, "k1", "other.ipynb") is None
    assert whose(entry, "k2", "data/train.ipynb") is None
    named = "Crash of data/train.ipynb, not of this notebook."
    assert whose(entry, "k2", "other.ipynb") == whose(entry, None, None) == named
    assert whose(entry | {"notebook_path": None}, "k2", None) == (
        "Crash of another kernel (process 4711)."
    )
