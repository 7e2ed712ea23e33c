"""JupyterLab with one tool: plain, jupyter-resource-usage, jupyterlab-nvdashboard, or jupyter-tfguard."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_tfguard.demo.server import DemoServer
from jupyter_tfguard.report import text as report_text
from tests.benchmarks.panel_cost import OPEN_PEER, PEER
from tests.benchmarks.peers.container import container
from tests.benchmarks.peers.deaths import Death
from tests.benchmarks.peers.watching import DEADLINE_SECONDS, HANG_SECONDS, Gate, Read, Said
from tests.browser.conftest import Lab, command, run
from tests.conftest import private_jupyter

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# Server extension and front end; each tool switches the others off.
_EXTENSIONS = {
    "jupyter_tfguard": "jupyter-tfguard",
    "jupyter_resource_usage": "@jupyter-server/resource-usage",
    "jupyterlab_nvdashboard": "jupyterlab-nvdashboard",
}
# What a page may say, by place. The cell's own outputs are the same in every tool.
_PLACES = {
    "dialog": ".jp-Dialog-content",
    "notification": ".Toastify__toast",
    "cell output": ".jp-OutputArea-output",
}
_READ = """places => Object.entries(places).flatMap(([place, selector]) =>
    [...document.querySelectorAll(selector)].map(node => [place, node.innerText.trim()]))"""
_NATIVE_NOISE = re.compile(r"^\[|^\s*$|cuda|oneDNN|cpu_feature_guard|rebuild TensorFlow|^WARNING")


class LabServer(DemoServer):
    """A JupyterLab server that need not have tfguard."""

    def _wait_until_ready(self) -> None:
        ends = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < ends and self.process.poll() is None:
            for found in self.runtime.glob("jpserver-*.json"):
                with contextlib.suppress(OSError, ValueError, KeyError):
                    self.url = json.loads(found.read_text())["url"]
                    self.get("api/status")
                    return
            time.sleep(0.1)
        raise RuntimeError(f"The Jupyter server does not answer:\n{self.log_tail()}")

    def log(self) -> str:
        """The text of its terminal so far."""
        return (self.work / ".server.log").read_text(errors="replace")


def _nothing(page: Page) -> None:
    """Plain JupyterLab has no panel."""


def _resource_usage(page: Page) -> None:
    page.evaluate("() => window.jupyterapp.shell.activateById('kernelusage-panel-id')")
    page.wait_for_selector("#kernelusage-panel-id:visible")


def _nvdashboard(page: Page) -> None:
    page.evaluate(OPEN_PEER, [PEER, "right"])
    page.wait_for_selector(".recharts-surface")


def _tfguard(page: Page) -> None:
    command(page, "tfguard:open-panel")
    page.wait_for_selector(".jp-TfGuard-Panel")


@dataclass(frozen=True)
class LabTool:
    """One tool in JupyterLab.

    Attributes:
        name: As its authors write it.
        python: Interpreter of the server and its kernels.
        keeps: Its server extension.
        show: Opens its panel.
        places: What else than JupyterLab's own places may name a cause.
        panel: Selector of a panel whose figures are quoted as they were last.
    """

    name: str
    python: str
    keeps: str = ""
    show: Callable[[Page], None] = _nothing
    places: tuple[tuple[str, str], ...] = ()
    panel: str = ""

    @property
    def is_tfguard(self) -> bool:
        """True for our own."""
        return self.keeps == "jupyter_tfguard"

    @contextlib.contextmanager
    def server(self, folder: Path, python: str) -> Iterator[LabServer]:
        """A server with only this tool, and with settings and data below `folder`."""
        config, work, settings = folder / "config", folder / "work", folder / "settings"
        off = {name: lab for name, lab in _EXTENSIONS.items() if name != self.keeps}
        # What is said of a death is compared: the kernel must die.
        guard = {"enabled": self.is_tfguard, "hang_seconds": HANG_SECONDS, "stop": "off"}
        fetch = settings / "@jupyterlab/apputils-extension/notification.jupyterlab-settings"
        files: dict[Path, Any] = {
            config / "jupyter_lab_config.json": {"LabApp": {"expose_app_in_browser": True}},
            config / "jupyter_server_config.json": {
                "ServerApp": {"jpserver_extensions": dict.fromkeys(off, False)}
            },
            config / "jupyter_tfguard_config.json": {"TfGuard": guard},
            config / "labconfig/page_config.json": {
                "disabledExtensions": dict.fromkeys(off.values(), True)
            },
            fetch: {"fetchNews": "false"},
        }
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(content))
        work.mkdir()
        with private_jupyter(
            folder,
            JUPYTERLAB_SETTINGS_DIR=settings,
            JUPYTERLAB_WORKSPACES_DIR=folder / "workspaces",
        ):
            found = LabServer(work, lab=True, python=python)
            try:
                yield found
            finally:
                found.stop()

    def play(self, death: Death, folder: Path, browser: Browser) -> list[Said]:
        """What this tool says about a death."""
        gate = Gate(folder)
        with (
            container(folder, self.python, death.limit_bytes) as python,
            self.server(folder, python) as server,
        ):
            page, read = self.begin(death, gate, server, browser)
            try:
                restart = (lambda: _restart(page)) if death.restarted else None
                return gate.observe(read, restart) + self._looked_up(page)
            finally:
                page.context.close()

    def begin(
        self, death: Death, gate: Gate, server: LabServer, browser: Browser
    ) -> tuple[Page, Read]:
        """A page on which the death begins, and what reads the texts that are shown."""
        notebook = server.write_notebook("train", [gate.code, death.code])
        page = Lab(server, browser).open(notebook)
        self.show(page)
        run(page)
        on_page = _reader(page, server, len(server.log()), dict(self.places))
        reports = _Reports(server)

        def read() -> Iterable[tuple[str, str]]:
            yield from on_page()
            if self.is_tfguard:
                yield from reports.read()

        gate.open(death, read)
        return page, read

    def _looked_up(self, page: Page) -> list[Said]:
        if not self.panel:
            return []
        panel = page.locator(self.panel).first
        return [Said("panel figures", panel.inner_text() if panel.is_visible() else "")]


class _Reports:
    """What "Show why" opens, as printed text; asked for four times a second."""

    def __init__(self, server: LabServer) -> None:
        self._server = server
        self._found: dict[str, str] = {}
        self._asked_at = 0.0

    def read(self) -> Iterable[tuple[str, str]]:
        """All reports so far."""
        if time.monotonic() > self._asked_at + 0.25:
            self._asked_at = time.monotonic()
            for entry in self._server.get("tfguard/api/crashes")["crashes"]:
                if entry["id"] not in self._found:
                    report = self._server.get(f"tfguard/api/crashes/{entry['id']}")
                    self._found[entry["id"]] = report_text.render(report)
        return [("report", text) for text in self._found.values()]


def _reader(page: Page, server: LabServer, begun: int, places: dict[str, str]) -> Read:
    def read() -> Iterable[tuple[str, str]]:
        yield from ((where, text) for where, text in page.evaluate(_READ, _PLACES | places) if text)
        for line in server.log()[begun:].splitlines():
            if "KernelRestarter" in line or not _NATIVE_NOISE.search(line):
                yield "server's terminal", re.sub(r"^\[[^]]*\]\s*", "", line).strip()

    return read


def _restart(page: Page) -> None:
    command(page, "kernelmenu:restart")
    page.locator(".jp-Dialog .jp-mod-accept").click()


def lab_tools(ours: str, peers: str) -> tuple[LabTool, ...]:
    """The four, with our interpreter and that of the peers' environment."""
    return (
        LabTool(
            "jupyter-tfguard",
            ours,
            "jupyter_tfguard",
            _tfguard,
            places=(
                ("panel", ".jp-TfGuard-Hang"),
                ("list of deaths", ".jp-TfGuard-Deaths"),
                ("cell", ".jp-TfGuard-CellMark"),
            ),
        ),
        LabTool("plain Jupyter", peers),
        LabTool(
            "jupyter-resource-usage",
            peers,
            "jupyter_resource_usage",
            _resource_usage,
            panel="#kernelusage-panel-id",
        ),
        LabTool(
            "jupyterlab-nvdashboard",
            peers,
            "jupyterlab_nvdashboard",
            _nvdashboard,
            panel=f"#{PEER}",
        ),
    )
