"""Which views of a panel are fed: one that was heard and then keeps silent is not, one that cannot be heard is."""

from __future__ import annotations

import pytest

from jupyter_tfguard.kernel.widget_views import SILENT_SECONDS, Views

pytestmark = pytest.mark.quick


def test_a_panel_that_nobody_opened_yet_is_fed() -> None:
    views = Views()
    views.fed(SILENT_SECONDS * 10)
    assert views.is_seen


def test_a_view_that_was_heard_and_keeps_silent_is_gone_and_may_come_back() -> None:
    views = Views()
    views.opened("a")
    assert not views.heard("a")
    views.fed(SILENT_SECONDS - 1)
    assert views.is_seen
    assert not views.heard("a")
    views.fed(SILENT_SECONDS - 1)
    assert views.is_seen
    views.fed(1)
    assert not views.is_seen
    assert views.heard("a")
    assert views.is_seen


def test_a_view_that_cannot_be_heard_is_fed_for_as_long_as_a_cell_runs() -> None:
    views = Views()
    views.opened("a")
    views.fed(SILENT_SECONDS * 1000)
    assert views.is_seen
    views.closed("a")
    assert not views.is_seen


def test_the_view_of_a_page_that_was_reloaded_does_not_keep_it_fed() -> None:
    views = Views()
    views.heard("before")  # its "opened" waits behind the cell
    views.opened("after")
    views.heard("after")
    views.fed(SILENT_SECONDS)
    views.heard("after")
    assert views.is_seen
    views.closed("after")
    assert not views.is_seen


def test_a_message_that_was_read_late_does_not_make_a_view_deaf() -> None:
    views = Views()
    views.heard("a")
    views.opened("a")  # sent before, read after the cell
    views.fed(SILENT_SECONDS)
    assert not views.is_seen


def test_those_that_are_gone_make_room_first() -> None:
    views = Views()
    views.opened("kept")
    for number in range(200):
        views.heard(f"page {number}")
        views.fed(SILENT_SECONDS)
    assert views.is_seen
    views.closed("kept")
    assert not views.is_seen
