"""Kernels behind a script that does not `exec`: the process that the server knows is the script's, and its exit code says 128 more."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from traitlets.config import Config

from jupyter_tfguard.postmortem import wrapped
from jupyter_tfguard.record.facts import ExitFacts, ServerFacts, SystemLog
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.recording import Recording
from jupyter_tfguard.watch.crash.crash import Crash
from tests.crash.settings import write_setting
from tests.rigs.waiting import wait_until_async

from .conftest import Server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="exit status by waitid")


@pytest.fixture
def jp_server_config(
    jp_server_config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Config:
    script = tmp_path / "module-load-and-run.sh"
    script.write_text('"$@"\nexit $?\n')
    launcher = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    write_setting(tmp_path / "more" / "kernels", "wrapped", ["bash", str(script), *launcher])
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "more"))
    return jp_server_config


async def start(server: Server, data_folder: Path) -> tuple[str, int]:
    """The kernel's id, and the process id of the kernel itself."""
    answer = await server.fetch("api", "kernels", method="POST", body='{"name": "wrapped"}')
    kernel_id: str = json.loads(answer.body)["id"]

    def recording() -> str | None:
        folder = data_folder / "recordings"
        return next(iter(os.listdir(folder)), None) if folder.is_dir() else None

    name = await wait_until_async(recording, "the kernel's recording")
    await server.execute(kernel_id, "x = 1")
    return kernel_id, int(name.partition("-")[0])


@pytest.mark.parametrize(
    ("number", "cause"),
    [
        (signal.SIGKILL, "sigkill_unattributed"),
        (signal.SIGSEGV, "segfault_native"),
    ],
)
async def test_the_signal_behind_the_exit_code_is_reported_once_and_never_as_certain(
    server: Server, data_folder: Path, number: signal.Signals, cause: str
) -> None:
    kernel_id, pid = await start(server, data_folder)
    os.kill(pid, number)
    [crash] = await server.crashes(1)
    assert (crash["cause"], crash["confidence"]) == (cause, "likely")
    assert (crash["kernel_id"], crash["pid"]) == (kernel_id, pid)
    report = await server.get("crashes", crash["id"])
    told = " ".join(fact["text"] for fact in report["evidence"])
    assert f"exit code {128 + number}, which means signal {int(number)} ({number.name})" in told
    assert "The exit status" not in told
    postmortem = server.app.web_app.settings["tfguard_service"]._postmortem
    await asyncio.to_thread(postmortem.handle_unwatched)  # the kernel's own recording went into it
    assert len((await server.get("crashes"))["crashes"]) == 1


async def test_an_exit_code_of_the_kernels_own_is_passed_on_as_one(
    server: Server, data_folder: Path
) -> None:
    kernel_id, pid = await start(server, data_folder)
    await server.execute(kernel_id, "import os; os._exit(3)")
    [crash] = await server.crashes(1)
    assert (crash["cause"], crash["confidence"], crash["pid"]) == ("sys_exit", "likely", pid)


async def test_a_kernel_whose_starter_was_killed_is_reported_once_with_its_own_recording(
    server: Server, data_folder: Path
) -> None:
    kernel_id, pid = await start(server, data_folder)
    around = server.app.kernel_manager.get_kernel(kernel_id).provisioner.pid
    os.kill(around, signal.SIGKILL)  # ipykernel sees it, and ends the kernel
    [crash] = await server.crashes(1)
    assert (crash["pid"], crash["confidence"]) == (pid, "possible")
    report = await server.get("crashes", crash["id"])
    assert any("the program that had started the kernel" in text for text in report["not_checked"])
    postmortem = server.app.web_app.settings["tfguard_service"]._postmortem
    await asyncio.to_thread(postmortem.handle_unwatched)
    assert len((await server.get("crashes"))["crashes"]) == 1


async def test_of_a_kernel_that_goes_on_nothing_is_reported_when_its_starter_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wrapped, "_ENDS_SECONDS", 0.2)
    with subprocess.Popen(["sleep", "60"]) as kernel:
        process, around = ProcessIdentity.of(kernel.pid), ProcessIdentity.of(os.getpid())
        assert process is not None
        assert around is not None
        facts = ServerFacts(
            exit=ExitFacts(None, 3, "waitid"),
            died=time.time(),
            peak_bytes=5 << 30,
            columns=("time", "process.rss_bytes", "host.used_bytes"),
            rows=((1.0, 2.0, 3.0),),
            ended_children=(1,),
        )
        crash = Crash(
            around, "k", None, None, tmp_path / around.folder_name, facts, SystemLog(True)
        )
        Recording(tmp_path, process, {"kernel_id": "k"}, ()).close()
        assert wrapped.unwrapped(crash) == crash
        kernel.kill()
        kernel.wait()
        inside = wrapped.unwrapped(crash)
        assert (inside.identity, inside.recording) == (process, tmp_path / process.folder_name)
        assert (inside.facts.columns, inside.facts.rows) == (
            ("time", "host.used_bytes"),
            ((1.0, 3.0),),
        )
        assert (inside.facts.peak_bytes, inside.facts.ended_children) == (None, ())


async def test_an_end_that_was_asked_for_leaves_nothing(server: Server, data_folder: Path) -> None:
    kernel_id, pid = await start(server, data_folder)
    os.kill(pid, signal.SIGSTOP)
    server.app.kernel_manager.get_kernel(kernel_id).shutdown_wait_time = 1.0
    await server.fetch("api", "kernels", kernel_id, method="DELETE")
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)

    def is_gone() -> bool:
        return not any(str(pid) in name for name in os.listdir(data_folder / "recordings"))

    await wait_until_async(is_gone, "its recording to go")
    postmortem = server.app.web_app.settings["tfguard_service"]._postmortem
    await asyncio.to_thread(postmortem.handle_unwatched)
    assert (await server.get("crashes"))["crashes"] == []
