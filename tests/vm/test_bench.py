"""The bench itself: it ran to its end, and where it cannot run it says what is missing."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .machine import VirtualMachine
from .os_kernel import NoVirtualMachine, OsKernel, find_os_kernel, initial_file_system

if TYPE_CHECKING:
    from tests.vm.conftest import Told
    from tests.vm.machine import Boot


def test_the_guest_came_to_its_end_on_an_older_os_kernel(boot: Boot, told: Told) -> None:
    assert told("end")["uptime"] > told("boot")["uptime"]
    assert not boot.timed_out
    print({line["scenario"]: line.get("seconds") for line in boot.lines}, boot.seconds)
    # Before PIDFD_GET_INFO (Linux 6.15) the exit status must come from elsewhere, and it did.
    major, minor = (int(part) for part in told("boot")["os_kernel"].split(".")[:2])
    assert (major, minor) < (6, 15)
    for name in ("own limit", "ancestor limit", "hidden log", "host", "neighbour"):
        assert told(name)["server"]["exit"]["signal"] == "SIGKILL", name


@pytest.mark.quick
def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFGUARD_VM_OS", str(tmp_path))
    with pytest.raises(NoVirtualMachine, match="fetch_os_kernel"):
        find_os_kernel()
    image = tmp_path / "boot/vmlinuz-9.9-cloud"
    image.parent.mkdir()
    image.touch()
    with pytest.raises(NoVirtualMachine, match="lacks the module 9p, 9pnet_virtio, virtio_pci"):
        find_os_kernel()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoVirtualMachine, match="not installed"):
        VirtualMachine(tmp_path)


@pytest.mark.quick
def test_the_first_file_system_holds_what_the_first_process_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busybox, module = tmp_path / "busybox", tmp_path / "9p.ko"
    busybox.write_bytes(b"static")
    busybox.chmod(0o755)
    module.write_bytes(b"12345")
    monkeypatch.setenv("PATH", str(tmp_path))
    archive = initial_file_system(OsKernel(tmp_path, (module,)), "#!/bin/busybox sh\n")
    found, at = {}, 0
    while at < len(archive):  # the format once more, as its documentation gives it to a reader
        assert archive[at : at + 6] == b"070701"
        fields = [int(archive[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(13)]
        end = at + 110 + fields[11]
        name, start = archive[at + 110 : end - 1].decode(), end + -end % 4
        found[name] = (fields[1], archive[start : start + fields[6]])
        at = start + fields[6] + -fields[6] % 4
    assert found["bin/busybox"] == (stat.S_IFREG | 0o755, b"static")
    assert found["init"][1] == b"#!/bin/busybox sh\n"
    assert found["modules/00.ko"][1] == b"12345"
    assert stat.S_ISDIR(found["host"][0])
    assert list(found)[-1] == "TRAILER!!!"
