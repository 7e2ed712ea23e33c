"""A real JupyterLab in headless Chromium."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jupyter_tfguard.demo.server import DemoServer
from jupyter_tfguard.places import bundles_folder
from jupyter_tfguard.record.bundle import READ, BundleStore
from tests.conftest import private_jupyter
from tests.rigs.waiting import DEADLINE_SECONDS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Playwright

    from tests.browser.gpus import Start

SCREENSHOTS = Path(__file__).parent / "screenshots"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_RUN_TRIES, _RUN_MS = 6, 20_000
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(autouse=True)
def jp_asyncio_loop() -> None:
    """pytest-jupyter's event loop does not go together with Playwright's; nothing here needs it."""


@pytest.fixture(autouse=True)
def jp_server_cleanup() -> None:
    """Belongs to pytest-jupyter's server, which is not used here."""


class Lab:
    """JupyterLab on one server, with what the tests do in it."""

    def __init__(self, server: DemoServer, browser: Browser) -> None:
        self.server = server
        self.browser = browser

    def notebook(self, name: str, *cells: str) -> Path:
        """A notebook file in the server's folder."""
        return self.server.write_notebook(name, cells)

    def open(
        self,
        notebook: Path | None = None,
        *,
        prepare: Callable[[Page], object] = lambda page: None,
    ) -> Page:
        """A fresh page, in a window of a person's size; waits until the kernel is idle."""
        page = patient(self.browser.new_page(viewport={"width": 1440, "height": 900}))
        prepare(page)
        tree = f"/tree/{notebook.name}" if notebook else ""
        page.goto(f"{self.server.url}lab{tree}?token={self.server.token}&reset")
        page.wait_for_selector("#jp-main-dock-panel")
        page.wait_for_function("window.jupyterapp !== undefined")
        page.evaluate("window.jupyterapp.restored.then(() => null)")
        if notebook:
            page.wait_for_selector(".jp-StatusBar-Widget >> text=/\\| Idle/")
            time.sleep(1.5)  # a cell that is run at the first "idle" can get lost
        return page


def patient(page: Page) -> Page:
    """The page, with the deadline of all tests for each of its waits; Playwright's own is 30 s."""
    page.set_default_timeout(DEADLINE_SECONDS * 1000)
    return page


def command(page: Page, name: str, arguments: dict[str, Any] | None = None) -> None:
    """Run a JupyterLab command, not waiting for its end."""
    page.evaluate(
        "([name, args]) => { void window.jupyterapp.commands.execute(name, args); }",
        [name, arguments or {}],
    )


def run(page: Page, name: str = "notebook:run-all-cells") -> None:
    """Run cells of the notebook in front by a command, and wait until the kernel runs the first one, or has died of it.

    What is run while JupyterLab handles the first "idle" of a kernel can get lost; it is then run again. A kernel that kills
    itself at once may take the message about its first cell with it.
    """
    from playwright.sync_api import TimeoutError as PlaywrightTimeout

    page.evaluate(
        """() => {
            window.hasBegun = false;
            const { sessionContext } = window.jupyterapp.shell.currentWidget;
            sessionContext.iopubMessage.connect((_, message) => {
                window.hasBegun ||= message.header.msg_type === 'execute_input';
            });
            sessionContext.statusChanged.connect((_, status) => {
                window.hasBegun ||= ['restarting', 'autorestarting', 'dead'].includes(status);
            });
        }"""
    )
    for _ in range(_RUN_TRIES):
        command(page, name)
        with contextlib.suppress(PlaywrightTimeout):
            page.wait_for_function("window.hasBegun", timeout=_RUN_MS)
            return
    raise AssertionError(f"the kernel ran no cell in {_RUN_TRIES * _RUN_MS / 1000:.0f} s")


def theme(page: Page, *, dark: bool) -> None:
    """Switch the theme, and wait until it is there."""
    command(page, "apputils:change-theme", {"theme": f"JupyterLab {'Dark' if dark else 'Light'}"})
    light = "false" if dark else "true"
    page.wait_for_selector(f"body[data-jp-theme-light='{light}']", state="attached")


def hide(page: Page, *, hidden: bool) -> None:
    """As the browser does for a tab behind another: headless Chromium shows all tabs at once."""
    page.evaluate(
        """hidden => {
            const state = hidden ? 'hidden' : 'visible';
            Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
            Object.defineProperty(document, 'visibilityState', { value: state, configurable: true });
            document.dispatchEvent(new Event('visibilitychange'));
        }""",
        hidden,
    )


def picture(page: Page, name: str, settled_ms: int = 0) -> None:
    """A screenshot for a person, once the page has settled: only where ``KEEP_PICTURES`` is set, because it takes time."""
    if "KEEP_PICTURES" in os.environ:
        page.wait_for_timeout(settled_ms)
        SCREENSHOTS.mkdir(exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"{name}.png")


def pictures(page: Page, name: str) -> None:
    """The same in both themes, once the values have moved on."""
    if "KEEP_PICTURES" in os.environ:
        for dark in (False, True):
            theme(page, dark=dark)
            picture(page, f"{name}-{'dark' if dark else 'light'}", 1500)
        theme(page, dark=False)


@contextlib.contextmanager
def lab_server(
    folder: Path,
    *,
    python: str = sys.executable,
    program: str | None = None,
    options: Sequence[str] = (),
    **environment: Path,
) -> Iterator[DemoServer]:
    """A server of JupyterLab, or of another program, with settings and data of its own below `folder`, and more environment variables."""
    home = folder / "home"
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}')
    config = home / "config"
    config.mkdir()
    for name, application in (("lab", "LabApp"), ("notebook", "JupyterNotebookApp")):
        exposed = f'{{"{application}": {{"expose_app_in_browser": true}}}}'
        (config / f"jupyter_{name}_config.json").write_text(exposed)
    # Five minutes would be long for a test.
    (config / "jupyter_tfguard_config.json").write_text('{"TfGuard": {"hang_seconds": 15}}')
    work = folder / "work"
    work.mkdir()
    with private_jupyter(
        home,
        JUPYTERLAB_SETTINGS_DIR=home / "settings",
        JUPYTERLAB_WORKSPACES_DIR=home / "workspaces",
        **environment,
    ):
        found = DemoServer(work, lab=True, python=python, program=program, options=options)
        try:
            yield found
        finally:
            found.stop()


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoServer]:
    """One JupyterLab server for all that need no other."""
    with lab_server(tmp_path_factory.mktemp("lab")) as found:
        yield found


def launch(playwright: Playwright) -> Browser:
    """Chromium of the system, or Playwright's own. Raises playwright's Error where there is none."""
    path = next(filter(None, map(shutil.which, _BROWSERS)), None)
    return playwright.chromium.launch(executable_path=path, args=_FLAGS)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """A browser for all."""
    from playwright.sync_api import Error, sync_playwright

    with sync_playwright() as playwright:
        try:
            found = launch(playwright)
        except Error as missing:
            reason = f"no Chromium on this machine: {str(missing).splitlines()[0]}"
            if os.environ.get("CI"):
                pytest.fail(reason)
            pytest.skip(reason)
        yield found
        found.close()


@pytest.fixture
def lab(server: DemoServer, browser: Browser) -> Iterator[Lab]:
    """JupyterLab, to which deaths of other tests are no news; pages and kernels are closed afterwards."""
    store = BundleStore(bundles_folder())
    for entry in store.entries():
        store.mark(entry["id"], READ)
    made = Lab(server, browser)
    yield made
    for context in list(browser.contexts):
        for page in context.pages:
            # A request in flight would fail in the next test.
            page.unroute_all(behavior="ignoreErrors")
        context.close()
    for session in server.get("api/sessions"):
        server.end_session(session)


@pytest.fixture
def start(standin: Path, cuda_library: Path, tmp_path: Path, browser: Browser) -> Iterator[Start]:
    """Starts a JupyterLab on a machine with GPUs, as a scenario of the stand-in shows them."""
    from tests.browser.gpus import labs_with_gpus  # which uses what stands above

    with labs_with_gpus(standin, cuda_library, tmp_path, browser) as begin:
        yield begin
