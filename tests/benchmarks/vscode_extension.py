"""The part of VS Code's Jupyter extension that a widget meets: the page it draws in, and the way of its messages."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_client.jsonutil import json_default

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

    from tests.kernel.rig import GuardedKernel

# Its dependencies are in its bundle.
MANAGER = "@vscode/jupyter-ipywidgets8@1.0.9"
PACKAGES = ("requirejs@2.3.6", "@jupyterlab/services@6.1.17", "esbuild@0.25")
SCRIPT = Path(__file__).with_name("vscode_webview.js")
NBEXTENSIONS = Path(sys.prefix) / "share" / "jupyter" / "nbextensions"
WEBVIEW = "http://webview.test/"
RESOURCES = "https://resources.test/jupyter/"
PAGE = """<!doctype html><html lang=en><style>
body { background: var(--vscode-editor-background); color: var(--vscode-editor-foreground); padding: 0 20px; }
.cell-output-ipywidget-background { background: white !important; --jp-layout-color1: var(--vscode-editor-foreground); }
</style><script src=/require.js></script><script src=/webview.js></script><body><div id=container></div>"""
# Of its themes "Light Modern" and "Dark Modern".
NAMES = (
    *("editor-background", "editor-foreground", "descriptionForeground", "disabledForeground"),
    *("editorWidget-border", "toolbar-hoverBackground"),
    *("charts-blue", "charts-red", "charts-orange", "charts-green"),
)
COLOURS = {
    "light": "#ffffff #3b3b3b #3b3b3b #61616180 #c8c8c8 #b8b8b850 #1a85ff #e51400 #d18616 #388a34",
    "dark": "#1f1f1f #cccccc #9d9d9d #cccccc80 #454545 #5a5d5e50 #3794ff #f14c4c #d18616 #89d185",
}


def install(folder: Path) -> None:
    """The packages, and the script of the page made of ours."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text('{"private": true}')
    quiet = ("--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(folder))
    subprocess.run(["npm", "install", *quiet, *PACKAGES], check=True, cwd=folder)
    subprocess.run(["npm", "pack", "--silent", MANAGER], check=True, cwd=folder)
    with tarfile.open(next(folder.glob("*.tgz"))) as packed:
        packed.extractall(folder, filter="data")
    (folder / "webview.js").write_bytes(SCRIPT.read_bytes())
    options = ("--bundle", "--format=iife", "--define:process.env={}")
    esbuild = folder / "node_modules" / ".bin" / "esbuild"
    made = [esbuild, "webview.js", *options, "--external:/ipywidgets.js", "--outfile=page.js"]
    subprocess.run([*made, "--log-level=error"], check=True, cwd=folder)


class Extension:
    """The part of VS Code's extension between a page and a kernel."""

    def __init__(self, page: Page, kernel: GuardedKernel) -> None:
        self.page = page
        self.client: Any = kernel.client
        self.busy: set[str] = set()
        self.views: list[Any] = []
        page.expose_function("toExtension", self._send)
        page.evaluate(
            "told => connect(told)",
            {
                "clientId": self.client.session.session,
                "model": {"id": kernel.kernel_id, "name": "python3"},
                "resources": RESOURCES,
            },
        )

    def run(self, code: str) -> str:
        """Begin a cell, told to the page too, as the extension does."""
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
        content |= {"user_expressions": {}, "stop_on_error": True}
        message = self.client.session.msg("execute_request", content)
        told = json.loads(json.dumps(message | {"channel": "shell"}, default=json_default))
        self.page.evaluate("told => mirror(told)", told | {"buffers": []})
        self.client.shell_channel.send(message)
        request = str(message["header"]["msg_id"])
        self.busy.add(request)
        return request

    def until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Pass messages on until `done`, so long at most; whether it came to that."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._deliver()
            if done():
                return True
            self.page.wait_for_timeout(30)
        return False

    def _send(self, text: str) -> None:
        message = json.loads(text)
        channel = getattr(self.client, f"{message.pop('channel')}_channel")
        channel.send(message)

    def _deliver(self) -> None:
        texts = []
        for name in ("shell", "iopub", "control"):
            channel = getattr(self.client, f"{name}_channel")
            while True:
                try:
                    message = channel.get_msg(timeout=0)
                except queue.Empty:
                    break
                self._note(message)
                assert not message["buffers"], "a message with binary parts"
                texts.append(json.dumps(message | {"channel": name}, default=json_default))
        if texts:
            self.page.evaluate("texts => fromExtension(texts)", texts)

    def _note(self, message: dict[str, Any]) -> None:
        content = message["content"]
        if message["msg_type"] == "status" and content["execution_state"] == "idle":
            self.busy.discard(message["parent_header"].get("msg_id"))
        view = content.get("data", {}).get("application/vnd.jupyter.widget-view+json")
        if message["msg_type"] == "display_data" and view is not None:
            self.views.append(view)
            self.page.evaluate("view => void renderOutput(view)", view)


def opened(browser: Browser, folder: Path, asked: list[str], complaints: list[str]) -> Page:
    """A page with the parts of VS Code's web view; what it asks the network for is added to `asked`."""
    page = browser.new_page(viewport={"width": 760, "height": 620})
    files = {
        "require.js": folder / "node_modules" / "requirejs" / "require.js",
        "webview.js": folder / "page.js",
        "ipywidgets.js": folder / "package" / "dist" / "ipywidgets.js",
    }

    def answer(route: Route) -> None:
        url = route.request.url
        asked.append(url)
        path = files.get(url.removeprefix(WEBVIEW))
        if url.startswith(RESOURCES):
            path = NBEXTENSIONS.parent / url.removeprefix(RESOURCES)
        if url == WEBVIEW:
            route.fulfill(body=PAGE, content_type="text/html")
        elif path is not None and path.is_file():
            route.fulfill(body=path.read_bytes(), content_type="text/javascript")
        else:
            route.fulfill(status=404)

    page.route("**/*", answer)
    page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(WEBVIEW)
    return page


def paint(page: Page, theme: str) -> None:
    """Give the page the colours of a theme."""
    colours = dict(zip(NAMES, COLOURS[theme].split(), strict=True))
    page.evaluate("([kind, colours]) => paint(kind, colours)", [f"vscode-{theme}", colours])
