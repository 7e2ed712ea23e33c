"""Memory that grows: what is told of it, how it meets the cause of the end, and which advice fits."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_tfguard.diagnosis.diagnose import diagnose
from jupyter_tfguard.diagnosis.evidence import Evidence
from jupyter_tfguard.diagnosis.finding import Confidence, Finding
from jupyter_tfguard.diagnosis.leak import Per
from jupyter_tfguard.diagnosis.memory import growth_fact
from jupyter_tfguard.report import text
from jupyter_tfguard.report.wire import to_report
from jupyter_tfguard.units import GIB
from tests.rigs.examples import Example, bundle_of, examples

pytestmark = pytest.mark.quick


def finding(bundle: dict[str, Any], cause: str) -> Finding:
    (found,) = [f for f in diagnose(bundle).findings if f.cause == cause]
    return found


def everything(found: Finding) -> str:
    return " ".join(f"{a.title} {a.text} {a.code or ''}" for a in found.advice)


def test_the_limit_stays_the_cause_and_the_growth_explains_it() -> None:
    bundle = bundle_of("host_leak/fires-over-41-epochs-then-the-limit.json")
    best, leak = diagnose(bundle).findings
    assert (best.cause, best.confidence) == ("cgroup_oom", Confidence.CERTAIN)
    assert (leak.cause, leak.confidence) == ("host_leak", Confidence.LIKELY)
    assert best.title == (
        "The kernel's memory grew by 318 MiB per epoch, until the kernel reached the memory limit of its container (16.0 GiB) "
        "and the operating system killed it."
    )
    course = next(fact.text for fact in best.because if "steadily" in fact.text)
    assert course.startswith(
        "It grew steadily over 41 epochs: +318 MiB per epoch (95 %: 296 to 339 MiB)"
    )
    assert "and reached the limit of 16.0 GiB (container limit)." in leak.title
    assert best.advice[0].title == leak.advice[0].title
    assert not any("batch" in advice.title for advice in best.advice)


def test_a_leak_on_the_gpu_is_named_with_the_gpu_memory_that_ran_out() -> None:
    bundle = bundle_of("gpu_leak/fires-over-epochs.json")
    out_of_memory = bundle_of("gpu_oom/fires-with-the-card-to-itself.json")
    bundle["kernel"]["stderr_tail"] = out_of_memory["kernel"]["stderr_tail"]
    best, leak = diagnose(bundle).findings
    assert (best.cause, leak.cause) == ("gpu_oom", "gpu_leak")
    assert best.title.startswith(
        "The kernel's memory on GPU 0 (NVIDIA A100) grew by 1.20 GiB per epoch, until the"
    )
    assert best.advice[0] == leak.advice[0]
    assert len(best.advice) <= 3


@pytest.mark.parametrize("example", examples("fires"), ids=str)
def test_a_report_gives_no_advice_and_no_evidence_twice(example: Example) -> None:
    report = to_report(example.bundle, diagnose(example.bundle))
    shown = [report, *report["other_findings"]]
    for found in ("advice", "evidence"):
        texts = [str(one) for finding in shown for one in finding[found]]
        assert len(texts) == len(set(texts))


def test_the_epochs_left_are_reported_where_something_else_ended_it() -> None:
    leak = finding(bundle_of("host_leak/fires-crashed-of-something-else.json"), "host_leak")
    assert "would be reached in about 33 epochs." in leak.title
    assert leak.beside


def test_a_limit_that_is_far_after_the_last_epoch_is_not_worth_a_word() -> None:
    bundle = bundle_of("host_leak/fires-crashed-of-something-else.json")
    assert Evidence(bundle).growth is not None
    for which in ("before", "after"):
        bundle["server"][which]["groups"][0]["limit_bytes"] = 2**40
        bundle["server"][which]["host_total_bytes"] = 2**41
    assert Evidence(bundle).growth is None


def test_clearing_the_session_is_reported_with_what_it_frees_and_only_where_a_loop_builds_models() -> (
    None
):
    looped_bundle = bundle_of("host_leak/fires-models-built-in-a-loop.json")
    looped = finding(looped_bundle, "host_leak")
    own_process, session = looped.advice
    assert "12 fits were of 12 different models" in own_process.text
    assert "maxtasksperchild=1" in (own_process.code or "")
    assert session.title == "Do not rely on clear_session() alone."
    assert (session.code or "").startswith("keras.backend.clear_session()")
    starts = [one for one in looped_bundle["kernel"]["events"] if one["kind"] == "fit_start"]
    for one in starts:
        one |= {"session_cleared": True, "jit_compile": True, "models_alive": 11}
    (own_process,) = finding(looped_bundle, "host_leak").advice
    assert "clear_session() is called already, and does not free this." in own_process.text
    assert "11 of the models still exist" in own_process.text
    assert "With jit_compile=True each model also leaves the program" in own_process.text
    for one in starts:
        one["model_number"] = 1
    assert "A loop builds" not in everything(finding(looped_bundle, "host_leak"))
    one_model = finding(
        bundle_of("host_leak/fires-over-41-epochs-then-the-limit.json"), "host_leak"
    )
    assert all(advice.code is None for advice in one_model.advice)
    assert "clear_session() helps only where new models are built" in everything(one_model)


def test_arrays_and_retracing_that_the_record_shows_are_named() -> None:
    rerun = bundle_of("host_leak/fires-a-cell-run-again-and-again.json")
    found = finding(rerun, "host_leak")
    assert found.confidence is Confidence.POSSIBLE
    assert "predictions from 200 MiB to 900 MiB" in everything(found)
    bundle = bundle_of("host_leak/fires-crashed-of-something-else.json")
    warning = "WARNING:tensorflow:5 out of the last 5 calls to <function f at 0x7f> triggered tf.function retracing."
    bundle["kernel"]["stderr_tail"] = [warning]
    assert "with tensors, not with Python numbers" in finding(bundle, "host_leak").advice[0].title


def test_what_was_swapped_out_is_still_held() -> None:
    """Resident memory stands still at the limit while swap fills."""
    bundle = bundle_of("host_leak/fires-crashed-of-something-else.json")
    table = bundle["kernel"]["seconds"]
    table["columns"] += ["process.swap_bytes.min", "process.swap_bytes.max"]
    low = min(row[1] for row in table["rows"])
    table["rows"] = [[t, low, high, a - low, a - low] for t, a, high in table["rows"]]
    growth = Evidence(bundle).growth
    assert growth is not None
    assert growth.per is Per.EPOCH


def test_the_growth_of_a_gpu_is_that_of_this_kernel_on_that_card() -> None:
    leak = finding(bundle_of("gpu_leak/fires-over-epochs.json"), "gpu_leak")
    assert "on GPU 0 (NVIDIA A100) grew steadily over 20 epochs: +1.20 GiB per epoch" in leak.title
    assert "its 80.0 GiB would be used up in about 39 epochs" in leak.title
    assert "gc.collect() does not free what such a list still holds" in everything(leak)


def test_reports_of_an_older_version_are_shown_too() -> None:
    bundle = bundle_of("host_leak/fires-crashed-of-something-else.json")
    report = to_report(bundle, diagnose(bundle))
    report["other_findings"] = [
        {k: f[k] for k in ("cause", "confidence", "title")} for f in report["other_findings"]
    ]
    assert "host_leak (likely)" in text.render(report)


def test_of_a_peak_before_the_cell_only_the_samples_in_it_count() -> None:
    bundle = bundle_of("cgroup_oom/fires-v2-own-limit.json")

    def grown() -> str | None:
        fact = growth_fact(Evidence(bundle))
        return None if fact is None else fact.text

    bundle["server"]["peak_bytes"] = 9 * GIB
    assert grown() == "It grew by 7.40 GiB after the start of the fit (from 1.60 GiB)"
    bundle["kernel"]["events"][0]["peak_bytes"] = 9 * GIB  # it was there when the cell began
    assert grown() == "It grew by 2.33 GiB after the start of the fit (from 1.60 GiB)"
    bundle["server"]["rows"] = bundle["server"]["rows"][:1]
    assert grown() is None


def test_what_the_alarm_saw_growing_comes_first_in_the_advice() -> None:
    bundle = bundle_of("host_leak/fires-over-41-epochs-then-the-limit.json")
    text = "Collect.kept has 41 entries, 39 more than 39 epochs ago, about 12.1 GiB."
    kept = {"name": "Collect.kept", "text": text, "how": "Empty it.", "added_bytes": 12 * GIB}
    alarm = {"kind": "memory_growth", "t": 1.0, "holders": [7, {"text": 7}, kept]}
    bundle["kernel"]["events"].append(alarm)
    advice = finding(bundle, "host_leak").advice[0]
    assert advice.title == "Empty or shorten what grew at the same time."
    assert advice.text == f"{text} Empty it."
    alarm["holders"] = []
    assert finding(bundle, "host_leak").advice[0].title == "Find out what the loop keeps."


def test_what_held_the_memory_when_the_last_cell_was_stopped_comes_first_in_the_advice() -> None:
    bundle = bundle_of("cgroup_oom/fires-log-names-kernel-without-counters.json")
    text = "kept has 78 entries, 78 more than before this cell, about 1.77 GiB."
    stop = {"kind": "memory_stop", "t": 1.0, "holders": [{"name": "kept", "text": text}]}
    bundle["kernel"]["events"].append(stop)
    advice = finding(bundle, "cgroup_oom").advice[0]
    assert (advice.title, advice.text) == ("Empty or shorten what grew at the same time.", text)
    bundle["kernel"]["events"].append({"kind": "cell_start", "t": 2.0})
    assert finding(bundle, "cgroup_oom").advice[0] != advice
