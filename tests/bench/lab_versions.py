"""The wheel in other JupyterLabs: ``python -m tests.bench.lab_versions [--only ROW] [--folder FOLDER] [--wheel FILE] [--json]``.

In each row, a real server and a page: the panel is styled and shows the memory of a busy kernel; after ``kill -9`` JupyterLab's
dialog has the cause, the report opens from it, the cell is marked, and nothing of ours complained in the browser's console.
Each row needs an environment of its own, which is downloaded once and kept in FOLDER. Exit code 1 when a row failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import Error, sync_playwright

from tests.bench.panel_page import BUSY, wait
from tests.browser.conftest import Lab, command, lab_server, launch, run
from tests.browser.gpus import pid_behind
from tests.rigs.trials import build_wheel

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@dataclass(frozen=True)
class Row:
    """One JupyterLab.

    Attributes:
        name: As it is printed.
        environment: Folder of it; rows may share one.
        packages: What is installed there beside the wheel.
        options: For the server's command line.
    """

    name: str
    environment: str
    packages: tuple[str, ...]
    options: tuple[str, ...] = ()


ROWS = (
    Row("4.2", "4.2", ("jupyterlab==4.2.*",)),
    Row("4.4", "4.4", ("jupyterlab==4.4.*",)),
    Row("newest", "newest", ("jupyterlab>=4.6,<5",)),
    Row("4.2, base URL", "4.2", ("jupyterlab==4.2.*",), ("--ServerApp.base_url=/user/ann/",)),
    Row("newest, base URL", "newest", ("jupyterlab>=4.6,<5",), ("--ServerApp.base_url=/user/ann/",)),
    Row(
        "newest, --collaborative",
        "collaborative",
        ("jupyterlab>=4.6,<5", "jupyter-collaboration"),
        ("--collaborative",),
    ),
)  # fmt: skip


def environment(folder: Path, row: Row, wheel: Path) -> Path:
    """The interpreter of the row's environment, with this wheel."""
    place = folder / row.environment
    python = place / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "-q"]
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    subprocess.run([*pip, *row.packages, str(wheel)], check=True)
    subprocess.run([*pip, "--no-deps", "--force-reinstall", str(wheel)], check=True)
    return python


def version(python: Path) -> str:
    """Of JupyterLab there."""
    code = "import importlib.metadata as m; print(m.version('jupyterlab'))"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def play(row: Row, python: Path, browser: Browser) -> dict[str, str]:
    """What was seen; ``ok`` where it was as it should be."""
    seen: dict[str, str] = {}
    with (
        tempfile.TemporaryDirectory() as name,
        lab_server(Path(name), python=str(python), options=row.options) as server,
    ):
        lab = Lab(server, browser)
        complaints: list[str] = []
        try:
            page = _opened(lab, complaints)
            seen["panel"] = _panel(page)
            seen["style"] = _style(page)
            os.kill(pid_behind(server, "busy"), signal.SIGKILL)
            seen["dialog"] = _dialog(page)
            seen["report"] = _report(page)
            seen["mark"] = _mark(page)
        except (Error, TimeoutError, AssertionError) as bad:
            seen["failed"] = str(bad).splitlines()[0]
            page.screenshot(path=Path(tempfile.gettempdir()) / f"lab-{row.environment}.png")
        ours = [text for text in complaints if "tfguard" in text.lower()]
        seen["console"] = "ok" if not ours else "; ".join(ours)[:200]
        for context in list(browser.contexts):
            context.close()
    return seen


def _opened(lab: Lab, complaints: list[str]) -> Page:
    page = lab.open(lab.notebook("busy", BUSY))
    page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    page.on("requestfailed", lambda request: complaints.append(f"{request.url} failed"))
    # Once more, now that all that is said is heard.
    page.reload()
    page.wait_for_function("window.jupyterapp !== undefined")
    page.wait_for_selector(".jp-StatusBar-Widget >> text=/\\| Idle/", timeout=60_000)
    page.wait_for_timeout(1500)
    run(page)
    page.wait_for_selector(".jp-StatusBar-Widget >> text=/\\| Busy/", timeout=30_000)
    return page


def _panel(page: Page) -> str:
    command(page, "tfguard:open-panel")
    panel = page.locator(".jp-TfGuard-body")
    panel.get_by_text(re.compile(r"\d (MiB|GiB)")).first.wait_for(timeout=20_000)
    first = panel.inner_text()
    page.wait_for_timeout(3000)
    return "ok" if panel.inner_text() != first else "the numbers stand still"


def _style(page: Page) -> str:
    """A rule of each of the style sheets is in force."""
    rules = wait(
        page,
        "[...document.styleSheets].flatMap(s => { try { return [...s.cssRules]; } catch { return []; } })"
        ".filter(r => r.selectorText?.includes('jp-TfGuard')).length",
    )
    shown = page.evaluate("getComputedStyle(document.querySelector('.jp-TfGuard-header')).display")
    return "ok" if rules > 20 and shown == "flex" else f"{rules} rules, header is {shown}"


def _dialog(page: Page) -> str:
    dialog = page.locator(".jp-Dialog", has_text=re.compile("appears to have died"))
    dialog.wait_for(timeout=30_000)
    cause = dialog.locator(".jp-TfGuard-Cause")
    cause.get_by_text("killed with SIGKILL").wait_for(timeout=15_000)
    dialog.get_by_role("button", name="Show why").click()
    return "ok"


def _report(page: Page) -> str:
    report = page.locator(".jp-TfGuard-Report")
    report.get_by_text(re.compile("how we know", re.IGNORECASE)).first.wait_for(timeout=20_000)
    return "ok" if "busy.ipynb" in report.inner_text() else "not of this notebook"


def _mark(page: Page) -> str:
    page.locator(".jp-TfGuard-CellMark").wait_for(timeout=15_000)
    return "ok"


def main() -> int:
    """Print the table; 1 when a row failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=[row.name for row in ROWS])
    parser.add_argument(
        "--folder", type=Path, help="where environments are kept (default: nowhere)"
    )
    parser.add_argument("--wheel", type=Path, help="instead of one that is built now")
    parser.add_argument("--json", action="store_true", help="figures only")
    chosen = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = (chosen.folder or Path(name)).resolve()
        wheel = (chosen.wheel or build_wheel(Path(name))).resolve()
        os.chdir(
            name
        )  # `python -m` imports from here first: it must find the wheel, not the checkout
        browser = launch(playwright)
        for row in ROWS:
            if chosen.only and row.name not in chosen.only:
                continue
            python = environment(folder, row, wheel)
            found[row.name] = {"JupyterLab": version(python)} | play(row, python, browser)
            if not chosen.json:
                told = "  ".join(f"{what}: {how}" for what, how in found[row.name].items())
                print(f"{row.name:26} {told}", flush=True)
        browser.close()
    if chosen.json:
        print(json.dumps(found))
    steps = ("panel", "style", "dialog", "report", "mark", "console")
    return int(any(seen.get(step) != "ok" for seen in found.values() for step in steps))


if __name__ == "__main__":
    sys.exit(main())
