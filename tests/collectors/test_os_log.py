"""Lines of the system's log: which are of interest, when they were written, and when it may not be read."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from jupyter_tfguard.collectors import os_log
from jupyter_tfguard.collectors.os_log import SystemLogReader, parse_record
from jupyter_tfguard.diagnosis.os_log import os_faults

pytestmark = pytest.mark.quick

KILLED = (
    "3,1204,{us},-;Memory cgroup out of memory: Killed process 4711 (python3) total-vm:9812344kB, "
    "anon-rss:8123456kB, file-rss:1024kB, shmem-rss:0kB, UID:1000 pgtables:16320kB oom_score_adj:0\n"
)


def record(text: str, seconds_since_boot: float = 1.0) -> str:
    return f"6,99,{int(seconds_since_boot * 1e6)},-;{text}\n SUBSYSTEM=pci\n"


@pytest.mark.parametrize(
    "text",
    [
        "Out of memory: Killed process 4711 (python) total-vm:1kB, anon-rss:1kB",
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/a,task=python3,pid=4711,uid=0",
        "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        "Tasks in /kubepods/pod1 are going to be killed due to memory.oom.group set",
        "NVRM: Xid (PCI:0000:01:00): 31, pid=4711, name=python3, Ch 00000008",
        "python3[4711]: segfault at 0 ip 00007f sp 00007f error 4 in libtensorflow.so.2[7f]",
        "traps: python3[4711] trap invalid opcode ip:7f sp:7f error:0 in lib.so[7f]",
    ],
)
def test_lines_of_interest_are_kept_without_their_device_fields(text: str) -> None:
    found = parse_record(record(text))
    assert found is not None
    assert found[1] == text


@pytest.mark.parametrize(
    "text",
    [
        "Memory failure: 0x1840200: Sending SIGBUS to python3:4711 due to hardware memory corruption",
        "mce: Uncorrected hardware memory error in user-access at af34214200",
        "{1}[Hardware Error]: event severity: recoverable",
        "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1 slot:0)",
        "blk_update_request: I/O error, dev sda, sector 2048 op 0x0:(READ) flags 0x80700",
        "Buffer I/O error on dev sda1, logical block 0, async page read",
        "EXT4-fs error (device sdb7): ext4_get_branch:171: inode #8: comm jbd2/sdb7-8: invalid block",
        "EXT4-fs (sdb7): Remounting filesystem read-only",
        "nfs: server 10.100.0.60 not responding, still trying",
    ],
)
def test_failing_memory_and_storage_are_of_interest_to_reader_and_diagnosis(text: str) -> None:
    found = parse_record(record(text))
    assert found is not None
    assert len(os_faults([text])) == 1


@pytest.mark.parametrize("text", ["eth0: link up", "systemd[1]: Started Session 3 of user a.", ""])
def test_other_lines_are_left_out(text: str) -> None:
    assert parse_record(record(text)) is None


def test_a_line_that_a_program_wrote_is_left_out() -> None:
    """Seen on Linux 6.18: what root writes to /dev/kmsg with ``<3>`` before it comes back as 8 + 3."""
    assert parse_record(KILLED.format(us=1)) is not None
    assert parse_record("1" + KILLED.format(us=1).replace("3,", "1,", 1)) is None


def test_time_since_boot_becomes_unix_time() -> None:
    before = time.time()
    found = parse_record(KILLED.format(us=int((time.monotonic() - 5) * 1e6)))
    assert found is not None
    assert before - 5.01 <= found[0] <= time.time() - 4.99


def test_a_log_that_is_not_there_says_so(tmp_path: Path) -> None:
    reader = SystemLogReader(path=str(tmp_path / "kmsg"))
    assert reader.reason is not None
    assert "No such file" in reader.reason
    assert reader.lines(0) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_reading_never_waits_and_takes_only_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "kmsg"
    path.write_text(KILLED.format(us=1_000_000))
    reader = SystemLogReader(path=str(path))
    assert reader.reason is None
    assert reader.lines(0) == []  # it begins at the end
    with path.open("a") as log:
        log.write(KILLED.format(us=int(time.monotonic() * 1e6)))
    [(when, text)] = reader.lines(0)
    assert "Killed process 4711" in text
    assert reader.lines(when + 1) == []
    reader.close()


def test_a_failing_disk_pushes_no_kill_out(tmp_path: Path) -> None:
    path = tmp_path / "kmsg"
    now = time.monotonic()
    path.write_text("")
    reader = SystemLogReader(path=str(path))
    with path.open("a") as log:
        log.write(KILLED.format(us=int(now * 1e6)))
    assert len(reader.lines(0)) == 1
    for number in range(1000):
        with path.open("a") as log:
            log.write(record(f"I/O error, dev sda, sector {number}", now + number / 1e3))
        reader._read_new()
    lines = [text for _, text in reader.lines(0)]
    assert "Killed process 4711" in lines[0]
    assert lines[-1] == "I/O error, dev sda, sector 999"
    assert len(lines) == 51
    reader.close()


def test_inside_a_container_the_log_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os_log, "_in_first_pid_namespace", lambda: False)
    reader = SystemLogReader()
    assert reader.reason == "the kernel log uses other process ids than this container"
