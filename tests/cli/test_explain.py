"""`jupyter tfguard explain`: a log in, a sentence out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_tfguard.cli import main
from jupyter_tfguard.cli.explain import LONGEST_BYTES, end_of
from jupyter_tfguard.diagnosis.diagnose import diagnose, explain
from jupyter_tfguard.diagnosis.pasted import Pasted
from jupyter_tfguard.report import explained
from jupyter_tfguard.report.text import markdown
from jupyter_tfguard.report.wire import to_report
from tests.rigs.examples import EXAMPLES
from tests.rigs.schemas import matches

pytestmark = pytest.mark.quick

LOG = EXAMPLES / "cuda_illegal_access/fires-wrapped-in-a-check.txt"


def piped(raw: bytes, *arguments: str) -> dict[str, object]:
    command = [sys.executable, "-m", "jupyter_tfguard", "explain", "--json", *arguments]
    done = subprocess.run(command, input=raw, capture_output=True, timeout=120, check=True)
    found: dict[str, object] = matches("explanation", json.loads(done.stdout))
    return found


def cause_of(raw: bytes, *arguments: str) -> str:
    found = piped(raw, *arguments)
    (best, *_) = found["findings"]  # type: ignore[misc]
    return str(best["cause"])


MESSY = {
    "plain": (LOG.read_bytes(), "cuda_illegal_access"),
    "nothing": (b"", "unknown"),
    "zeros": (b"\x00" * 5000, "unknown"),
    "windows file": (LOG.read_text().replace("\n", "\r\n").encode("utf-16"), "cuda_illegal_access"),
    "windows file without its beginning": (LOG.read_text().encode("utf-16-le"), "cuda_illegal_access"),
    "broken utf-8": (b"\xff\xfa\x80" + LOG.read_bytes() + b"\xc3", "cuda_illegal_access"),
    "container's json": (
        json.dumps({"log": "malloc(): corrupted top size\n", "stream": "stderr"}).encode(),
        "glibc_abort_heap_corruption",
    ),
    "cut in the middle of a line": (LOG.read_bytes()[60:], "cuda_illegal_access"),
    "another language": (b"Speicherzugriffsfehler (Speicherabzug geschrieben)", "segfault_native"),
    "a question around it": (
        b"Hi all, my kernel dies :(\n\n> OMP: Error #15: Initializing libomp.dylib, but found libiomp5.dylib\n\nany idea?",
        "libiomp_duplicate",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MESSY)
def test_any_bytes_by_pipe(name: str) -> None:
    raw, cause = MESSY[name]
    assert cause_of(raw) == cause


def test_the_json_has_what_the_readme_promises() -> None:
    found = piped(LOG.read_bytes(), "--exit-code", "134")
    assert set(found) == {"schema_version", "findings", "not_checked"}
    (best, *_) = found["findings"]  # type: ignore[misc]
    assert {"cause", "confidence", "title", "evidence", "advice"} <= set(best)
    assert best["evidence"][0]["line"] == 1
    assert found["not_checked"]


def test_the_kernel_log_and_the_exit_code_count(tmp_path: Path) -> None:
    kernel_log = tmp_path / "dmesg.txt"
    kernel_log.write_text(
        "[1.0] Memory cgroup out of memory: Killed process 77 (python) total-vm:9kB, anon-rss:8kB, file-rss:0kB\n"
    )
    assert cause_of(b"", "--kernel-log", str(kernel_log)) == "cgroup_oom"
    assert cause_of(b"", "--exit-signal", "SEGV") == "segfault_native"


def test_the_text_is_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(LOG)]) == 0
    text = capsys.readouterr().out
    first, second, *_ = text.splitlines()
    assert first.endswith(".")
    assert second == "cuda_illegal_access (certain)"
    assert "line 1 " in text
    assert "What to do" in text


def test_secrets_are_taken_out_and_codes_do_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.txt"
    log.write_text("MemoryError: token=ghp_0123456789abcdefghijABCDEFGHIJ456789 \x1b]0;owned\x07\n")
    assert main(["explain", str(log)]) == 0
    text = capsys.readouterr().out
    assert "ghp_0123456789" not in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    "arguments", [["no-such-file.txt"], [str(LOG), "--exit-signal", "SIGNOPE"]]
)
def test_what_cannot_be_done_is_said_in_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.strip().splitlines()) == 1


TOO_LONG = (
    b"malloc(): corrupted top size\n" + b"step 1 of many\n" * (LONGEST_BYTES // 15) + b"\nKilled\n"
)


def test_of_a_long_stream_only_the_end_is_kept() -> None:
    assert cause_of(TOO_LONG, "/dev/stdin") == "sigkill_unattributed"


def test_of_a_long_file_only_the_end_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_bytes(TOO_LONG)
    with log.open("rb") as file:
        end = end_of(file)
    assert len(end) == LONGEST_BYTES
    assert TOO_LONG.endswith(end)


BUNDLE_OF_A_KILL = EXAMPLES / "cgroup_oom/fires-v2-own-limit.json"


@pytest.mark.parametrize("wrapping", ["as it is", "quoted", "with words around", "explained"])
def test_our_own_report_is_no_log(wrapping: str) -> None:
    """Its words about what did not happen would be evidence otherwise."""
    bundle = json.loads(BUNDLE_OF_A_KILL.read_text())
    report = to_report(bundle, diagnose(bundle))
    text = markdown(report)
    if wrapping == "quoted":
        text = "\n".join(f"> {line}" for line in text.split("\n"))
    elif wrapping == "with words around":
        text = f"My kernel dies, see below.\n\n{text}\nCUDA out of memory? Segmentation fault?"
    elif wrapping == "explained":
        text = explained.render(
            explained.to_json(explain(Pasted("Segmentation fault (core dumped)")))
        )
    found = piped(text.encode())
    (best,) = found["findings"]  # type: ignore[misc]
    if wrapping == "explained":
        assert best["cause"] == "segfault_native"
        return
    assert (best["cause"], best["confidence"]) == ("cgroup_oom", "certain")
    assert best["title"] == report["title"]
    assert [step["title"] for step in best["advice"]] == [s["title"] for s in report["advice"]]
    assert "report of jupyter-tfguard" in best["evidence"][0]["text"]


def test_a_log_with_one_of_our_headings_is_still_a_log() -> None:
    assert cause_of(b"What to do\nsegfault_native (certain)\nMemoryError") == "cpu_alloc_failure"
