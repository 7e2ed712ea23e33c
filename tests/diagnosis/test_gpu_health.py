"""Whether a GPU is well: what is told of it, and how little is told of a sound one."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_tfguard.diagnosis.catalog import table
from jupyter_tfguard.diagnosis.gpu_health import Alarm, CardHealth

pytestmark = pytest.mark.quick

NOW = 1790000000.0
SOUND: dict[str, Any] = {
    "nvml_index": 3,
    "temperature_celsius": 71,
    "slowdown_celsius": 89,
    "shutdown_celsius": 92,
    "throttle_reasons": [],
    "ecc_uncorrected_count": 0,
    "remapped_rows_uncorrected_count": 0,
    "remapped_rows_pending": False,
    "remapped_rows_failed": False,
    "retired_pages_pending": False,
    "lost": False,
}


class Watched:
    """A card that is looked at once a second."""

    def __init__(self) -> None:
        self.health = CardHealth()
        self.now = NOW

    def poll(
        self, seconds: int = 1, *, at_work: bool = True, events: Any = (), **changed: Any
    ) -> tuple[Alarm, ...]:
        for _ in range(seconds):
            self.now += 1.0
            self.health.take(SOUND | changed, events, self.now, at_work=at_work)
        return self.health.alarms

    def text(self, seconds: int = 1, **changed: Any) -> str:
        (alarm,) = self.poll(seconds, **changed)
        return f"{alarm.severity}: {alarm.text}"


@pytest.fixture
def watched() -> Watched:
    return Watched()


class TestASoundCard:
    def test_it_is_silent_for_an_hour_of_full_load(self, watched: Watched) -> None:
        for _ in range(60):
            assert watched.poll(60, throttle_reasons=["SwPowerCap"]) == ()

    @pytest.mark.parametrize(
        "reason", ["GpuIdle", "SyncBoost", "ApplicationsClocksSetting", "DisplayClockSetting"]
    )
    def test_what_belongs_to_normal_work_is_not_reported(
        self, watched: Watched, reason: str
    ) -> None:
        assert watched.poll(120, throttle_reasons=[reason]) == ()

    def test_a_moment_of_heat_is_not_reported(self, watched: Watched) -> None:
        for _ in range(30):
            assert watched.poll(3, throttle_reasons=["SwThermalSlowdown"]) == ()
            assert watched.poll(20) == ()

    def test_slow_clocks_of_a_card_that_nobody_trains_on_are_not_reported(
        self, watched: Watched
    ) -> None:
        assert watched.poll(60, at_work=False, throttle_reasons=["HwSlowdown"]) == ()

    def test_old_errors_are_not_reported(self, watched: Watched) -> None:
        assert (
            watched.poll(
                60,
                ecc_uncorrected_count=7,
                remapped_rows_uncorrected_count=2,
            )
            == ()
        )

    def test_counters_that_begin_again_are_not_reported(self, watched: Watched) -> None:
        watched.poll(5, ecc_uncorrected_count=7)
        assert watched.poll(60, ecc_uncorrected_count=0) == ()

    def test_what_is_not_known_is_not_reported(self, watched: Watched) -> None:
        assert watched.poll(60, **dict.fromkeys(SOUND)) == ()

    @pytest.mark.parametrize("number", [45, 63, 92])
    def test_faults_that_need_nothing_are_not_reported(self, watched: Watched, number: int) -> None:
        assert watched.poll(events=[{"time": NOW, "xid": number}]) == ()


class TestClocksAndHeat:
    def test_heat_that_lasts_is_reported_and_stays_a_while(self, watched: Watched) -> None:
        assert watched.poll(10, throttle_reasons=["SwThermalSlowdown"]) == ()
        (alarm,) = watched.poll(1, throttle_reasons=["SwThermalSlowdown", "SwPowerCap"])
        assert (
            alarm.text
            == "The card runs below full speed: the driver reduces its clocks to keep the temperature below the limit."
        )
        assert (alarm.severity, alarm.since) == ("warning", NOW + 1)
        assert alarm.fix is not None
        assert "cooling" in alarm.fix
        assert "ran below full speed" in watched.text(30)
        assert watched.poll(120) == ()

    def test_the_cards_own_slowdown_is_named_by_its_reason(self, watched: Watched) -> None:
        text = watched.text(12, throttle_reasons=["HwSlowdown", "HwPowerBrakeSlowdown"])
        assert "power supply" in text


class TestFaults:
    def test_a_fault_of_the_card_is_an_error_with_what_to_do(self, watched: Watched) -> None:
        (alarm,) = watched.poll(events=[{"time": NOW, "xid": 79}])
        assert alarm.text.startswith("The card reported a fault (Xid 79): ")
        assert (alarm.severity, alarm.since) == ("error", NOW)
        assert alarm.fix is not None
        assert "Restart the machine" in alarm.fix

    def test_a_fault_of_a_program_is_not_put_down_to_the_card(self, watched: Watched) -> None:
        text = watched.text(events=[{"time": NOW, "xid": 31}])
        assert text.startswith("warning: A program on the card failed (Xid 31)")

    def test_it_stays_for_ten_minutes(self, watched: Watched) -> None:
        events = [{"time": NOW, "xid": 79}]
        assert len(watched.poll(600, events=events)) == 1
        assert watched.poll(events=events) == ()

    def test_a_fault_that_comes_again_is_reported_once(self, watched: Watched) -> None:
        events = [{"time": NOW + n, "xid": 13} for n in range(50)]
        (alarm,) = watched.poll(60, events=events)
        assert alarm.since == NOW + 49

    def test_an_unknown_fault_is_reported_as_it_is(self, watched: Watched) -> None:
        assert "Xid 999" in watched.text(events=[{"time": NOW, "xid": 999}])

    @pytest.mark.parametrize("row", table("xid")["xid"], ids=lambda row: str(row["xid"]))
    def test_every_fault_of_the_table_makes_a_sentence_or_none(
        self, watched: Watched, row: dict[str, Any]
    ) -> None:
        for alarm in watched.poll(events=[{"time": NOW, "xid": row["xid"]}]):
            assert alarm.text.endswith(".")
            assert ".." not in alarm.text


class TestErrors:
    def test_new_errors_that_could_not_be_corrected_are_reported(self, watched: Watched) -> None:
        watched.poll(3, ecc_uncorrected_count=7)
        (alarm,) = watched.poll(3, ecc_uncorrected_count=9)
        assert "reports 2 new uncorrectable memory errors" in alarm.text
        assert (
            alarm.fix == "Stop all programs on the card, then run: sudo nvidia-smi --gpu-reset -i 3"
        )

    def test_rows_to_be_remapped_want_a_reset_and_none_left_a_new_card(
        self, watched: Watched
    ) -> None:
        assert watched.text(remapped_rows_pending=True).startswith("warning")
        assert watched.text(retired_pages_pending=True).startswith("warning")
        (alarm,) = watched.poll(remapped_rows_failed=True, remapped_rows_pending=True)
        assert (alarm.severity, alarm.fix) == ("error", "Have the card replaced.")

    def test_a_card_that_is_gone_comes_first_and_its_last_numbers_say_nothing(
        self, watched: Watched
    ) -> None:
        lost = dict.fromkeys(SOUND) | {"lost": True, "nvml_index": 3}
        events = [{"time": NOW, "xid": 31}]
        watched.poll(2)
        first, _ = watched.poll(5, events=events, **lost)
        assert first.text == "The card is lost: the driver can no longer reach it."
        assert (first.severity, first.since) == ("error", NOW + 3)
