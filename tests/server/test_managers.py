"""Kernel managers of other kinds: without events, without provisioners, on another machine."""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.provisioning import (
    KernelProvisionerBase,
    KernelProvisionerFactory,
    LocalProvisioner,
)
from jupyter_server.gateway.gateway_client import GatewayClient
from traitlets.config import Config

from tests.rigs.waiting import wait_until_async

from .conftest import Server

MANAGERS = "jupyter_server.services.kernels.kernelmanager"
PLAIN = {
    "MappingKernelManager": "IOLoopKernelManager",
    "AsyncMappingKernelManager": "AsyncIOLoopKernelManager",
}


class TestManagersWithoutEvents:
    """Their kernels are the plain ones of jupyter_client, which tell nobody what they do."""

    @pytest.fixture(params=sorted(PLAIN))
    def jp_server_config(self, jp_server_config: Config, request: Any) -> Config:
        jp_server_config.ServerApp.kernel_manager_class = f"{MANAGERS}.{request.param}"
        jp_server_config[
            request.param
        ].kernel_manager_class = f"jupyter_client.ioloop.{PLAIN[request.param]}"
        return jp_server_config

    @pytest.mark.filterwarnings("ignore:.*MappingKernelManager class is deprecated")
    @pytest.mark.filterwarnings("ignore:KernelManager class")
    async def test_a_death_is_reported_and_a_shutdown_is_not(self, server: Server) -> None:
        kernel_id = await server.start_kernel()
        manager = server.app.kernel_manager.get_kernel(kernel_id)
        assert type(manager).__name__ == PLAIN[type(server.app.kernel_manager).__name__]
        pid = await server.pid(kernel_id)
        os.kill(pid, signal.SIGKILL)
        [crash] = await server.crashes(1)
        assert crash["cause"] == "sigkill_unattributed"
        # jupyter_client cannot shut a kernel down while it is being restarted.
        await wait_until_async(
            lambda: manager.provisioner.pid not in (None, pid) and manager.ready.done()
        )
        other = await server.start_kernel()
        await server.fetch("api", "kernels", other, method="DELETE")
        await wait_until_async(lambda: not_listed(server, other))
        assert len((await server.get("crashes"))["crashes"]) == 1


async def not_listed(server: Server, kernel_id: str) -> bool:
    return await server.state(kernel_id) is None


class HiddenProcessProvisioner(KernelProvisionerBase):  # type: ignore[misc]
    """Starts kernels on this machine without naming their process, as a provisioner around a batch system does."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._local: Any = LocalProvisioner(**kwargs)

    @property
    def has_process(self) -> Any:
        return self._local.has_process

    async def poll(self) -> Any:
        return await self._local.poll()

    async def wait(self) -> Any:
        return await self._local.wait()

    async def send_signal(self, signum: int) -> None:
        await self._local.send_signal(signum)

    async def kill(self, restart: bool = False) -> None:
        await self._local.kill(restart)

    async def terminate(self, restart: bool = False) -> None:
        await self._local.terminate(restart)

    async def pre_launch(self, **kwargs: Any) -> Any:
        return await self._local.pre_launch(**kwargs)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        return await self._local.launch_kernel(cmd, **kwargs)

    async def cleanup(self, restart: bool = False) -> None:
        await self._local.cleanup(restart)


class TestHiddenProcess:
    """Local kernels whose provisioner does not name their process."""

    @pytest.fixture
    def jp_server_config(
        self, jp_server_config: Config, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[Config]:
        entry = EntryPoint(
            "hidden", f"{__name__}:{HiddenProcessProvisioner.__name__}", "provisioners"
        )
        monkeypatch.setitem(KernelProvisionerFactory.provisioners, "hidden", entry)
        jp_server_config.KernelProvisionerFactory.default_provisioner_name = "hidden"
        KernelProvisionerFactory.clear_instance()
        yield jp_server_config
        KernelProvisionerFactory.clear_instance()

    async def test_it_is_watched_by_its_recording_and_its_death_is_reported(
        self, server: Server
    ) -> None:
        kernel_id = await server.start_kernel()
        pid = await server.pid(kernel_id)
        os.kill(pid, signal.SIGKILL)
        [crash] = await server.crashes(1)
        assert (crash["pid"], crash["cause"]) == (pid, "sigkill_unattributed")
        other = await server.start_kernel()
        await server.fetch("api", "kernels", other, method="DELETE")
        await wait_until_async(lambda: not_listed(server, other))
        assert len((await server.get("crashes"))["crashes"]) == 1


class TestGateway:
    """Kernels of a second, real server, as of a Kernel Gateway."""

    @pytest.fixture
    def gateway(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str]]:
        token = secrets.token_hex(8)
        environment = os.environ | {
            "JUPYTER_CONFIG_DIR": str(tmp_path / "gateway-config"),
            "JUPYTER_RUNTIME_DIR": str(tmp_path / "gateway-runtime"),
            "TFGUARD_DISABLE": "1",
        }
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "jupyter_server",
                "--no-browser",
                "--allow-root",
                "--port=0",
                "--ServerApp.ip=127.0.0.1",
                f"--IdentityProvider.token={token}",
                f"--ServerApp.root_dir={tmp_path}",
            ],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        url = None
        for line in process.stderr:
            if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                url = found[0]
                break
        assert url is not None
        yield url, token
        process.terminate()
        process.communicate(timeout=120)

    @pytest.fixture
    def jp_server_config(
        self, jp_server_config: Config, gateway: tuple[str, str]
    ) -> Iterator[Config]:
        url, token = gateway
        # One per process: made without an address by the server of an earlier test.
        GatewayClient.clear_instance()
        jp_server_config.GatewayClient.url = url
        jp_server_config.GatewayClient.auth_token = token
        yield jp_server_config
        GatewayClient.clear_instance()

    async def test_a_remote_kernel_is_said_to_be_remote(self, server: Server) -> None:
        kernel_id = await server.start_kernel(wait=False)

        async def remote() -> dict[str, Any] | None:
            state = await server.state(kernel_id)
            return state if state and state["unwatched_reason"] != "starting" else None

        state = await wait_until_async(remote, "a verdict")
        assert state["watched"] is False
        assert state["unwatched_reason"] == "remote kernel, not tracked here"
        assert state["pid"] is None
        assert state["host"]["rss_bytes"] is None
        assert state["guard"]["loaded"] is None
        await server.fetch("api", "kernels", kernel_id, method="DELETE")
