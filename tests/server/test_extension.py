"""The extension in a server where things are missing, refused or switched off: the server and its kernels live on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from traitlets.config import Config

from jupyter_tfguard.config import TfGuard
from jupyter_tfguard.server import kernels, tracked
from jupyter_tfguard.server.extension import TfGuardExtension, set_environment
from tests.rigs.nvml.library import environ
from tests.rigs.nvml.scenario import one_gpu
from tests.rigs.waiting import wait_until_async

from .conftest import Server

GROWTH = ("TF_FORCE_GPU_ALLOW_GROWTH", "TFGUARD_SET_GROWTH", "TFGUARD_WATCHER_PID")


async def kernel_environment(server: Server, kernel_id: str) -> dict[str, str | None]:
    environ = Path(f"/proc/{await server.pid(kernel_id)}/environ").read_bytes().decode()
    found = dict(pair.partition("=")[::2] for pair in environ.split("\0") if pair)
    return {name: found.get(name) for name in GROWTH}


async def test_kernels_inherit_memory_growth_and_its_mark(server: Server) -> None:
    kernel_id = await server.start_kernel()
    assert await kernel_environment(server, kernel_id) == dict(
        zip(GROWTH, ("true", "1", str(os.getpid())), strict=True)
    )


@pytest.mark.quick
def test_options_of_every_extension_are_known() -> None:
    # `jupyter lab --no-browser` sets it for all extensions, and warns of those without it.
    assert "open_browser" in TfGuardExtension.class_trait_names(config=True)


@pytest.mark.quick
def test_a_value_of_the_user_s_own_wins() -> None:
    environment = {"TF_FORCE_GPU_ALLOW_GROWTH": "false"}
    set_environment(TfGuard(), environment)
    assert environment["TF_FORCE_GPU_ALLOW_GROWTH"] == "false"
    assert "TFGUARD_SET_GROWTH" not in environment
    assert environment["TFGUARD_WATCHER_PID"] == str(os.getpid())


@pytest.mark.quick
def test_growth_can_be_switched_off_alone() -> None:
    environment: dict[str, str] = {}
    set_environment(TfGuard(set_memory_growth=False), environment)
    assert list(environment) == ["TFGUARD_WATCHER_PID"]


class TestSwitchedOffByTheEnvironment:
    @pytest.fixture
    def server(
        self, jp_server_config: Config, monkeypatch: pytest.MonkeyPatch, request: Any
    ) -> Any:
        monkeypatch.setenv("TFGUARD_DISABLE", "1")
        app, fetch = request.getfixturevalue("jp_serverapp"), request.getfixturevalue("jp_fetch")
        return Server(app, fetch)

    async def test_it_says_so_and_does_nothing(self, server: Server) -> None:
        status = await server.get("status")
        [problem] = status["problems"]
        assert problem["what"] == "tfguard is turned off"
        assert "TFGUARD_DISABLE" in problem["fix"]
        assert status["gpus"]["state"] == "unavailable"
        assert "TF_FORCE_GPU_ALLOW_GROWTH" not in os.environ
        assert not [t for t in threading.enumerate() if t.name.startswith("tfguard")]


class TestABadOption:
    @pytest.fixture
    def jp_server_config(self, jp_server_config: Config) -> Config:
        jp_server_config.TfGuard.busy_hertz = "often"
        return jp_server_config

    async def test_it_is_one_line_in_the_log_and_the_server_lives(
        self, capfd: pytest.CaptureFixture[str], jp_serverapp: Any, jp_fetch: Any
    ) -> None:
        answer = await jp_fetch("api", "kernels", method="POST", body="{}")
        assert json.loads(answer.body)["id"]
        lines = capfd.readouterr().err.splitlines()
        [line] = [line for line in lines if "tfguard could not start" in line]
        assert "busy_hertz" in line
        assert "jupyter tfguard doctor" in line


async def test_everything_ends_with_the_server(server: Server) -> None:
    await server.start_kernel()
    service = server.app.web_app.settings["tfguard_service"]
    assert {t.name for t in threading.enumerate() if t.name.startswith("tfguard")} >= {
        "tfguard-sampler",
        "tfguard-live",
    }
    await service.stop()
    await wait_until_async(
        lambda: not [t for t in threading.enumerate() if t.name.startswith("tfguard")],
        "the threads to end",
    )


async def test_a_hanging_gpu_library_leaves_a_working_server(
    standin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    scenario = one_gpu()
    scenario.calls = [
        "nvmlDeviceGetMemoryInfo hang after 1",
        "nvmlDeviceGetMemoryInfo_v2 hang after 1",
    ]
    for name, value in environ(standin, scenario.save(tmp_path / "nvml.txt")).items():
        monkeypatch.setenv(name, value)
    kernel_id = await server.start_kernel()

    async def given_up() -> bool:
        gpus = (await server.get("status"))["gpus"]
        return gpus["state"] == "unavailable" and "does not answer" in gpus["reason"]

    await wait_until_async(given_up, "the helper to be given up")
    os.kill(await server.pid(kernel_id), signal.SIGKILL)
    [crash] = await server.crashes(1)
    assert crash["cause"] == "sigkill_unattributed"


class TestWithoutPosixNames:
    """macOS and Windows, as far as they can be tried here."""

    @pytest.fixture
    def jp_server_config(self, jp_server_config: Config, monkeypatch: pytest.MonkeyPatch) -> Config:
        for name in ("pidfd_open", "waitid", "register_at_fork"):
            monkeypatch.delattr(os, name, raising=False)
        return jp_server_config

    @pytest.mark.parametrize("in_vain", [0, 3])
    async def test_the_return_code_reports(
        self, server: Server, monkeypatch: pytest.MonkeyPatch, in_vain: int
    ) -> None:
        # A zombie whose other threads are not gone yet has no return code. Meanwhile a restart may begin.
        asked: list[int] = []

        def returncode(process: Any) -> int | None:
            asked.append(process.pid)
            if asked.count(process.pid) > in_vain:
                return tracked.returncode(process)
            manager.provisioner.process = None
            return None

        monkeypatch.setattr(kernels, "returncode", returncode)
        kernel_id = await server.start_kernel()
        manager = server.app.kernel_manager.get_kernel(kernel_id)
        pid = await server.pid(kernel_id)
        monitored = server.app.web_app.settings["tfguard_service"]._watcher.monitored_kernels[0]
        assert monitored.handle.fileno() is None
        os.kill(pid, signal.SIGKILL)
        [crash] = await server.crashes(1)
        assert crash["pid"] == pid
        assert (crash["cause"], crash["signal"]) == ("sigkill_unattributed", "SIGKILL")
        await server.start_kernel()

        async def restarted() -> bool:
            state = await server.is_ready(kernel_id)
            return state is not None and state["pid"] != pid

        # Two restarts at once are an error of Jupyter's: its own comes first.
        await wait_until_async(restarted, "the kernel that Jupyter restarts by itself")
        await server.fetch("api", "kernels", kernel_id, "restart", method="POST", body="")
        await wait_until_async(lambda: server.is_ready(kernel_id), "the restarted kernel")
        assert len((await server.get("crashes"))["crashes"]) == 1

    async def test_a_requested_restart_between_two_polls_is_no_crash(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kernel_id = await server.start_kernel()
        pid = await server.pid(kernel_id)
        service = server.app.web_app.settings["tfguard_service"]
        reported: list[Any] = []
        monkeypatch.setattr(service._watcher, "ended", lambda *args, **more: reported.append(args))
        service._watcher._sampler.stop()  # nothing looks at the process meanwhile
        service._tracker._timer.cancel()
        monkeypatch.setattr(service._tracker, "_timer", None)
        await server.fetch("api", "kernels", kernel_id, "restart", method="POST", body="")
        (monitored,) = service._watcher.monitored_kernels
        assert monitored.identity.pid == pid
        service._tracker.reconcile()
        assert [w.identity.pid for w in service._watcher.monitored_kernels] != [pid]
        assert reported == []


IMPORT_ALL = """
import asyncio, importlib, os, pkgutil, select, signal, socket, subprocess, sys
import jupyter_server.serverapp, jupyter_server.extension.application, jupyter_client.provisioning, psutil, json
for module, names in {
    os: ("pidfd_open", "waitid", "register_at_fork", "pread", "pwrite", "posix_fallocate", "fchmod",
         "O_NOFOLLOW", "O_CLOEXEC", "O_DIRECTORY", "O_NONBLOCK", "sysconf", "geteuid", "uname"),
    signal: ("SIGHUP", "SIGKILL", "SIGXCPU", "SIGQUIT", "SIGUSR1", "SIGRTMIN", "SIGRTMAX", "pthread_sigmask"),
}.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
import jupyter_tfguard
assert jupyter_tfguard._jupyter_server_extension_points()
for room in ("collectors", "watch", "server"):
    package = importlib.import_module(f"jupyter_tfguard.{room}")
    for found in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"jupyter_tfguard.{room}.{found.name}")
import jupyter_tfguard.sampler
"""


def test_everything_imports_without_posix_names() -> None:
    answer = subprocess.run([sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
