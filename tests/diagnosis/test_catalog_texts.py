"""What the tables say that programs print is what the code reads, and error numbers mean what they say."""

from __future__ import annotations

import signal

import pytest

from jupyter_tfguard.diagnosis.catalog import table
from jupyter_tfguard.diagnosis.catalog.cuda_errors import error_in
from jupyter_tfguard.diagnosis.catalog.native_aborts import heap_damage
from jupyter_tfguard.diagnosis.diagnose import explain
from jupyter_tfguard.diagnosis.exit_status import SIGNAL_NUMBERS, exit_status
from jupyter_tfguard.diagnosis.log_lines import log_lines
from jupyter_tfguard.diagnosis.os_log import oom_kills
from jupyter_tfguard.diagnosis.pasted import Pasted
from jupyter_tfguard.diagnosis.rule import all_rules

pytestmark = pytest.mark.quick

OOM_LINES = table("oom_formats")["line"]
HEAP_CHECKS = [row for row in table("native_aborts")["malloc"] if row["kind"] != "setting"]
LOG_FORMATS = table("tf_log_formats")["format"]


@pytest.mark.parametrize("row", OOM_LINES, ids=lambda row: row["id"])
def test_the_victim_is_read_from_the_lines_that_name_it(row: dict[str, str]) -> None:
    kills = oom_kills([f"[ 1234.567890] {row['sample']}"])
    found = [(kill.pid, kill.name) for kill in kills]
    assert found == ([(4711, "python3")] if row["victim"] else [])


@pytest.mark.parametrize("row", HEAP_CHECKS, ids=lambda row: row["text"])
def test_every_text_of_a_heap_check_is_heap_corruption(row: dict[str, str]) -> None:
    assert (
        explain(Pasted(f"Epoch 1/5\n{row['text']}\n")).best.cause == "glibc_abort_heap_corruption"
    )
    assert heap_damage(f"python3: {row['text']}") == row["kind"]


def test_a_text_that_is_no_heap_check_has_no_kind() -> None:
    assert heap_damage("malloc of a big array") is None


@pytest.mark.parametrize("row", LOG_FORMATS, ids=lambda row: row["series"])
def test_a_fatal_line_of_each_format_is_read_as_one(row: dict[str, str]) -> None:
    (line,) = log_lines(row["sample"])
    assert (line.severity, line.file) == ("F", "env.cc")
    assert line.message.startswith("Check failed: ret == 0 (11 vs. 0)")


def test_signals_have_the_numbers_of_this_system() -> None:
    for name, number in SIGNAL_NUMBERS.items():
        assert signal.Signals[name] == number


def test_a_cause_of_an_exit_status_is_a_label() -> None:
    causes = {rule.cause for rule in all_rules()}
    rows = [*table("exit_status")["signal"], *table("exit_status")["windows"]]
    assert {row["cause"] for row in rows if "cause" in row} <= causes


def test_windows_shows_one_status_signed_and_unsigned() -> None:
    for code in (0xC0000374, 0xC0000374 - (1 << 32)):
        status = exit_status(code=code)
        assert status is not None
        assert (status.signal, status.cause) == ("SIGABRT", "glibc_abort_heap_corruption")
    unread = exit_status(code=0xC0000BAD)
    assert unread is not None
    assert unread.cause is None


@pytest.mark.parametrize(
    ("name", "code", "sticky"),
    [
        ("CUDA_ERROR_ILLEGAL_ADDRESS", 700, True),
        ("cudaErrorIllegalAddress", 700, True),
        ("CUDA_ERROR_OUT_OF_MEMORY", 2, False),
        ("cudaErrorInsufficientDriver", 35, False),
        ("CUDA_ERROR_NO_BINARY_FOR_GPU", 209, False),
        ("CUDA_ERROR_ECC_UNCORRECTABLE", 214, False),
        ("CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH", 1002, False),
        ("CUBLAS_STATUS_ALLOC_FAILED", 3, False),
    ],
)
def test_an_error_is_known_by_its_name(name: str, code: int, sticky: bool) -> None:
    found = error_in(f"Non-OK-status: INTERNAL: failed to synchronize: {name}: text")
    assert found is not None
    assert (found.code, found.sticky) == (code, sticky)


def test_an_error_that_is_in_no_table_means_nothing() -> None:
    assert error_in("CUDA_ERROR_MADE_UP") is None
    assert error_in("CUDA_ERROR_MADE_UP, then CUDA_ERROR_ASSERT") == error_in("CUDA_ERROR_ASSERT")
    assert error_in("all is well") is None
