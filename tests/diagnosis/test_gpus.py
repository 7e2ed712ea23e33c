"""The GPUs of a bundle: who held what, which card a fault is about, and that nothing there is trusted."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_tfguard.config import load_settings
from jupyter_tfguard.diagnosis.diagnose import diagnose
from jupyter_tfguard.diagnosis.evidence import Evidence
from jupyter_tfguard.diagnosis.finding import Finding, Source
from jupyter_tfguard.diagnosis.gpus import gpus_of
from tests.rigs.examples import bundle_of

pytestmark = pytest.mark.quick

DIED = 1790000000.0


def best_of(path: str) -> Finding:
    return diagnose(bundle_of(path)).best


@pytest.mark.parametrize(
    ("bus_id", "place", "same"),
    [
        ("0000:41:00.0", "0000:41:00", True),
        ("00000000:41:00.0", "0000:41:00", True),
        ("0000:41:00.0", "0000:41:00.0", True),
        ("0000:C1:00.0", "0000:c1:00", True),
        ("0000:41:00.0", "0000:81:00", False),
        ("0001:41:00.0", "0000:41:00", False),
    ],
)
def test_a_card_is_known_by_its_address_however_it_is_written(
    bus_id: str, place: str, same: bool
) -> None:
    (gpu,) = gpus_of([{"bus_id": bus_id}], DIED)
    assert gpu.is_at(place) is same


@pytest.mark.parametrize(
    "value", [None, 7, "x", {}, [None, 3], [{"processes": 4, "events": "x", "rows": 1}]]
)
def test_whatever_has_the_wrong_type_is_unknown(value: object) -> None:
    for gpu in gpus_of(value, DIED):
        assert gpu.processes is None
        assert gpu.holds(1) is None
        assert gpu.xids == ()
        assert gpu.series("own_bytes") == []
        assert gpu.title == "GPU"


def test_the_notebook_that_holds_the_card_is_named_and_advised_to_be_shut_down() -> None:
    best = best_of("gpu_oom_other_process/fires-another-notebook-holds-the-card.json")
    assert "course/train_b.ipynb (process 4811), 70.0 GiB of 80.0 GiB" in best.title
    assert best.because[0].source is Source.SERVER
    assert (
        best.advice[0].title == "Shut down the kernel of course/train_b.ipynb, if it is not needed."
    )


def test_heat_before_a_failing_card_is_reported_and_comes_first_in_what_to_do() -> None:
    hot = best_of("gpu_hardware_xid/fires-overheated-and-fell-off-the-bus.json")
    assert any("96 °C in its last minute" in fact.text for fact in hot.because)
    assert "cooling" in hot.advice[0].title
    cool = best_of("gpu_hardware_xid/fires-the-driver-lost-the-card.json")
    assert not any("°C" in fact.text for fact in cool.because)
    assert "cooling" not in cool.advice[0].title


def test_an_event_that_is_in_the_log_too_counts_once() -> None:
    bundle = bundle_of("gpu_hardware_xid/fires-overheated-and-fell-off-the-bus.json")
    bundle["server"]["gpus"][0]["events"] = [
        {"time": DIED - 1.0, "xid": 79},
        {"time": DIED - 0.5, "xid": 45},
    ]
    found = Evidence(bundle).system_log.xids
    assert [(fault.number, fault.is_event) for fault in found] == [(79, False), (45, True)]


def test_a_card_that_its_kernel_never_used_says_nothing_about_it() -> None:
    bundle = bundle_of("gpu_hardware_xid/quiet-the-card-of-another-notebook.json")
    assert "gpu_hardware_xid" not in [f.cause for f in diagnose(bundle).findings]
    for gpu in bundle["server"]["gpus"]:
        gpu["processes"] = None  # where processes cannot be seen a fault of the whole card counts
    assert diagnose(bundle).best.cause == "gpu_hardware_xid"


def test_two_notebooks_that_hold_the_card_together_are_both_named() -> None:
    best = best_of("gpu_oom_other_process/fires-two-notebooks-hold-it-together.json")
    assert "b.ipynb (process 4811), 36.0 GiB of 80.0 GiB" in best.title
    assert "c.ipynb (process 4812), 30.0 GiB of 80.0 GiB" in best.title
    assert best.advice[-1].code == '{"TfGuard": {"gpu_memory_limit_mib": 36864}}'


def test_only_a_machine_with_more_cards_has_another_one_to_use() -> None:
    bundle = bundle_of("gpu_oom_other_process/fires-another-notebook-holds-the-card.json")
    assert not any("another card" in a.title for a in diagnose(bundle).best.advice)
    empty = {"nvml_index": 5, "name": "NVIDIA A100", "processes": []}
    bundle["server"]["gpus"] += [{"nvml_index": 4, "processes": [{"pid": 1}]}, empty]
    second = diagnose(bundle).best.advice[1]
    assert second.title == "Or use GPU 5 (NVIDIA A100): no process used it."
    assert second.code is not None
    assert "CUDA_VISIBLE_DEVICES=5" in second.code


def test_an_instance_of_a_divided_card_is_a_card() -> None:
    best = best_of("gpu_oom_other_process/fires-on-an-instance-of-a-divided-card.json")
    assert best.title.startswith(
        "Another process held the memory of GPU 0 MIG 1 (NVIDIA A100 MIG 1g.10gb): course/train_b"
    )


def test_who_has_a_card_to_itself_is_not_sent_to_look_for_others() -> None:
    best = best_of("gpu_oom/fires-with-the-card-to-itself.json")
    texts = [fact.text for fact in best.because]
    assert "Memory growth was not active: 76.0 GiB of 80.0 GiB was allocated at once" in texts
    assert any(
        text.endswith("before the end; no other process held memory on it") for text in texts
    )
    assert not any("nvidia-smi" in (advice.code or "") for advice in best.advice)


def test_growth_that_was_at_work_is_reported_with_what_it_began_with() -> None:
    bundle = bundle_of("gpu_oom/fires-with-the-card-to-itself.json")
    bundle["server"]["gpus"][0]["growth"] |= {"works": True, "own_bytes": 2 << 30}
    texts = [fact.text for fact in diagnose(bundle).best.because]
    assert "Memory growth was active: the kernel started with 2.00 GiB of 80.0 GiB" in texts


def test_a_fault_is_reported_with_how_long_before_the_end_it_was() -> None:
    best = best_of("gpu_hardware_xid/fires-an-event-on-the-card-of-its-child.json")
    assert ", 2.0 s before the end" in best.because[0].text
    assert "GPU 0" in best.title


@pytest.mark.parametrize("reason", ["Hidden here.", None])
def test_where_holders_cannot_be_seen_the_report_says_why(reason: str | None) -> None:
    bundle = bundle_of("gpu_oom_other_process/quiet-processes-cannot-be-seen.json")
    for gpu in bundle["server"]["gpus"]:
        gpu |= {"processes": None, "processes_reason": reason}
    told = [text for text in diagnose(bundle).not_checked if "Which processes held" in text]
    assert told == (["Which processes held GPU memory: not known. Hidden here."] if reason else [])


def test_the_share_that_is_advised_is_a_setting_that_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = best_of("gpu_oom_other_process/fires-another-notebook-holds-the-card.json")
    [code] = [
        advice.code for advice in best.advice if "gpu_memory_limit_mib" in (advice.code or "")
    ]
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path))
    (tmp_path / "jupyter_tfguard_config.json").write_text(code or "")
    assert load_settings().gpu_memory_limit_mib == int(0.45 * 80 * 1024)
