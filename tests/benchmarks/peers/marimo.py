"""marimo: its editor in a browser, with the same two cells."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import textwrap
import urllib.request
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import Error

from tests.benchmarks.peers.container import container
from tests.benchmarks.peers.deaths import Death
from tests.benchmarks.peers.watching import DEADLINE_SECONDS, Gate, Read, Said
from tests.browser.conftest import patient
from tests.conftest import private_jupyter
from tests.rigs.waiting import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_APP = """\
import marimo

app = marimo.App()


@app.cell
def _():
{gate}
    return (gate,)


@app.cell
def _(gate):
    gate
{cell}
    return


if __name__ == "__main__":
    app.run()
"""
# Lines of the page that change by themselves: clocks, and shares of the machine.
_MOVING = re.compile(r"^[\d.,:\s]*(m?s|%|[KMG]i?B)?$|^\d+[hms]")
_OUTPUTS = """() => [
    ['banner', [...document.querySelectorAll('[class*=text-error], [role=alert], [role=status]')]],
    ['cell output', [...document.querySelectorAll('.output-area, .console-output-area')]],
    ['page', [document.body]],
].flatMap(([place, nodes]) => nodes.map(node => [place, node.innerText]))"""
_PAGE = re.compile(r"(?i)kernel|restart|disconnect|stopped|memory|signal")


@dataclass(frozen=True)
class Marimo:
    """The editor.

    Attributes:
        python: Of the peers' environment.
    """

    python: str
    name: str = "marimo"

    def play(self, death: Death, folder: Path, browser: Browser) -> list[Said]:
        """What marimo's page and terminal say about a death."""
        gate = Gate(folder)
        cells = {"gate": gate.code, "cell": death.code}
        indented = {name: textwrap.indent(code, "    ") for name, code in cells.items()}
        (folder / "notebook.py").write_text(_APP.format(**indented))
        (folder / "pyproject.toml").write_text("[tool.marimo.runtime]\nauto_instantiate = true\n")
        with (
            container(folder, self.python, death.limit_bytes) as python,
            _server(folder, python) as url,
        ):
            page = patient(browser.new_page(viewport={"width": 1440, "height": 900}))
            try:
                page.goto(url)
                read = _reader(page, folder / "terminal.txt")
                gate.open(death, read)
                restart = (lambda: _restart(page)) if death.restarted else None
                return gate.observe(read, restart)
            finally:
                page.context.close()


@contextlib.contextmanager
def _server(folder: Path, python: str) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--headless", "--no-token", "--skip-update-check", "--port", str(port)]
    with private_jupyter(folder), (folder / "terminal.txt").open("wb") as output:
        process = subprocess.Popen(
            [python, "-m", "marimo", "edit", *options, "notebook.py"],
            cwd=folder,
            env=os.environ | {"XDG_CONFIG_HOME": str(folder), "HOME": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    url = f"http://127.0.0.1:{port}/"
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def answers() -> bool:
        assert process.poll() is None, (folder / "terminal.txt").read_text()
        with contextlib.suppress(OSError), direct.open(f"{url}health", timeout=10):
            return True
        return False

    try:
        wait_until(answers, "marimo's server", seconds=DEADLINE_SECONDS)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _reader(page: Page, terminal: Path) -> Read:
    def read() -> Iterable[tuple[str, str]]:
        texts = []
        with contextlib.suppress(Error):  # a restart loads the page again
            texts = page.evaluate(_OUTPUTS)
        for place, text in texts:
            lines = [text] if place == "banner" else text.splitlines()
            for line in map(str.strip, lines):
                if not _MOVING.match(line) and (place != "page" or _PAGE.search(line)):
                    yield place, line
        for line in terminal.read_text(errors="replace").splitlines():
            if line.strip():
                yield "server's terminal", line.strip()

    return read


def _restart(page: Page) -> None:
    page.keyboard.press("Control+k")
    page.keyboard.type("Restart kernel")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Restart").last.click()
