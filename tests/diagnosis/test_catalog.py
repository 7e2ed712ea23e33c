"""The tables of outside facts: every row says where it was read, and no unverified one decides alone."""

from __future__ import annotations

import pytest

from jupyter_tfguard.diagnosis.catalog import table
from jupyter_tfguard.diagnosis.diagnose import explain
from jupyter_tfguard.diagnosis.finding import Confidence
from jupyter_tfguard.diagnosis.pasted import Pasted
from jupyter_tfguard.diagnosis.rule import all_rules
from jupyter_tfguard.diagnosis.signs import message_rows

pytestmark = pytest.mark.quick

CHECKS = {"measured", "read", "secondary", "unverified"}


@pytest.mark.parametrize(("name", "rows"), [("messages", "message"), ("xid", "xid")])
def test_every_row_says_where_it_was_read(name: str, rows: str) -> None:
    for row in table(name)[rows]:
        assert row["source"].strip()
        assert row["check"] in CHECKS


def test_a_message_belongs_to_a_rule_and_can_be_found() -> None:
    causes = {rule.cause for rule in all_rules()}
    ids = [row.id for row in message_rows()]
    assert len(ids) == len(set(ids))
    for row in message_rows():
        assert row.cause in causes, row.id
        assert row.needles, row.id
        assert row.speaker in ("native", "others"), row.id
        assert all(len(needle) >= 3 for needle in row.needles), row.id


def test_an_unverified_row_is_never_certain() -> None:
    unverified = [row for row in message_rows() if row.check == "unverified"]
    assert unverified
    for row in unverified:
        for needle in row.needles:
            best = explain(Pasted(needle)).best
            assert best.confidence is not Confidence.CERTAIN, needle


def test_xid_numbers_are_unique_and_blame_somebody() -> None:
    rows = table("xid")["xid"]
    numbers = [row["xid"] for row in rows]
    assert len(numbers) == len(set(numbers))
    assert {row["blame"] for row in rows} == {"hardware", "software", "cleanup", "other"}
    blame = {row["xid"]: row["blame"] for row in rows}
    for number in (48, 62, 63, 64, 74, 79, 94, 95, 119, 154):
        assert blame[number] == "hardware"
    for number in (8, 13, 31, 43):
        assert blame[number] == "software"
    assert blame[45] == "cleanup"
