"""``%tfguard panel`` in the widget manager of VS Code: ``python -m tests.benchmarks.widget_in_vscode_manager [--folder FOLDER] [--json]``.

VS Code's Jupyter extension draws widgets with the package ``@vscode/jupyter-ipywidgets8``; this loads it in Chromium and plays
the extension: messages go to a guarded kernel that no Jupyter server started, anywidget comes from its ``nbextensions``
through requirejs, VS Code's colours and style sheet are around it. Not tried so: VS Code itself. The packages are
downloaded once and kept in FOLDER, with the pictures. Exit code 1 when something was not as it should be.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.benchmarks.vscode_extension import Extension, install, opened, paint
from tests.browser.conftest import launch
from tests.browser.test_panel import FIT
from tests.kernel.rig import GuardedKernel, guarded_kernel

WIDGET = ".jp-TfGuard-Widget"


def play(extension: Extension, kernel: GuardedKernel, folder: Path) -> dict[str, str]:
    """What was seen; ``ok`` where it was as it should be."""
    page = extension.page
    seen: dict[str, str] = {}
    epochs: set[str] = set()
    paint(page, "light")
    extension.run(f"%tfguard panel\n{FIT}")
    widget = page.locator(WIDGET)

    def says(text: str, seconds: float) -> str:
        found = extension.until(lambda: text in widget.inner_text(), seconds)
        return "ok" if found else f"no {text!r}: {widget.inner_text()[-200:]}"

    def moved() -> bool:
        epochs.update(re.findall(r"epoch (\d+) of 400", page.inner_text("body")))
        return len(epochs) >= 3

    seen["drawn"] = "ok" if extension.until(lambda: widget.count() == 1, 60) else "no"
    seen["moves while the cell runs"] = "ok" if extension.until(moved, 90) else f"no: {epochs}"
    page.screenshot(path=folder / "light.png")
    paint(page, "dark")
    extension.until(lambda: False, 1.5)
    page.screenshot(path=folder / "dark.png")
    grounds = page.evaluate(
        "selector => [...document.querySelectorAll(selector)].map(e => getComputedStyle(e).backgroundColor)",
        f"{WIDGET}, .cell-output-ipywidget-background",
    )
    ours = ["rgba(0, 0, 0, 0)", "rgb(31, 31, 31)"]
    seen["colours follow the theme"] = "ok" if grounds == ours else str(grounds)
    assert extension.busy, "the cell has ended by itself"
    os.kill(kernel.pid, signal.SIGINT)
    ended = extension.until(lambda: not extension.busy, 20)
    seen["the cell ends"] = says("idle", 10) if ended else "no"
    extension.run("import time; kept = np.ones(10**8); time.sleep(60)")
    held = widget.locator(".jp-TfGuard-big")
    grown = extension.until(lambda: "GiB" in held.inner_text(), 20)
    seen["goes on with the next cell"] = "ok" if grown else f"no: {held.inner_text()}"
    page.evaluate("disposeOutput()")
    seen["taken away"] = "ok" if widget.count() == 0 else "no"
    return seen


def main() -> int:
    """Print what was seen; 1 when something was not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where packages and pictures are kept")
    parser.add_argument("--json", action="store_true", help="what was seen only")
    chosen = parser.parse_args()
    asked: list[str] = []
    complaints: list[str] = []
    with (
        tempfile.TemporaryDirectory() as name,
        guarded_kernel(Path(name) / "kernel") as kernel,
        sync_playwright() as playwright,
    ):
        folder = (chosen.folder or Path(name) / "packages").resolve()
        install(folder)
        browser = launch(playwright)
        page = opened(browser, folder, asked, complaints)
        seen = play(Extension(page, kernel), kernel, folder)
        told = [*complaints, *page.evaluate("failures")]
        browser.close()
    seen["console"] = "ok" if not told else "; ".join(told)[:300]
    foreign = [url for url in asked if "tfguard" in url]
    seen["asks no server"] = "ok" if not foreign else "; ".join(foreign)
    if chosen.json:
        print(json.dumps(seen))
    else:
        print(*(f"{what:40} {how}" for what, how in seen.items()), sep="\n")
    return int(any(how != "ok" for how in seen.values()))


if __name__ == "__main__":
    sys.exit(main())
