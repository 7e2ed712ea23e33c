"""Where the events of a chart without scripts are named."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_tfguard.report.svg import pictures

pytestmark = pytest.mark.quick


def named(*events: tuple[float, str, str]) -> list[str]:
    """The texts that are found room for in ten minutes, by time."""
    memory: dict[str, Any] = {
        "samples": [[0.0, 2.0**30], [600.0, 2.0**31]],
        "events": [{"time": time, "kind": kind, "label": label} for time, kind, label in events],
    }
    (picture,) = pictures(memory)
    return [tick.text for tick in sorted(picture.events, key=lambda tick: tick.x)]


def test_where_room_is_short_what_went_wrong_is_named_and_the_fit() -> None:
    found = named(
        (290.0, "cell", "[3]"),
        (301.0, "fit", "[3] fit"),
        (302.0, "epoch", "epoch 1"),
        (291.0, "checkpoint", "checkpoint"),
        (304.0, "warning", "90 % of the limit"),
    )
    assert found == ["[3]", "checkpoint ◆", "▸ [3] fit", "", "▲ 90 % of the limit"]


def test_names_of_one_row_keep_apart() -> None:
    found = named(*((300.0 + n, "epoch", f"epoch {n}") for n in range(30)))
    assert 0 < len([text for text in found if "epoch" in text]) <= 3


def test_all_ticks_stay() -> None:
    assert len(named(*((300.0, "epoch", f"epoch {n}") for n in range(9)))) == 9
