"""5,000 hostile texts in report, list, notification, dialog and panel: no node or attribute of theirs, no request."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from jupyter_tfguard.places import bundles_folder
from jupyter_tfguard.record.bundle import BundleStore, new_bundle_id
from tests.browser.conftest import command, patient, picture, run
from tests.rigs.hostile import hostile_texts

if TYPE_CHECKING:
    from playwright.sync_api import Dialog, Locator, Page, Route, WebSocketRoute

    from tests.browser.conftest import Lab

SAMPLES = Path(__file__).parents[1] / "wire"
TEXTS = [hostile.text for hostile in hostile_texts(5000)]
A_REPORT = 500
KILL = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"
# What the front end decides by, and no person writes.
_FIXED = {"id", "type", "kernel_id", "cause", "confidence", "crashed_at", "source", "kind", "state",
          "language", "columns", "written_at"}  # fmt: skip
# Every element below a root, in order, with the names of its attributes.
_SKELETON = """root => [...root.querySelectorAll('*')].map(
  e => e.tagName + '[' + e.getAttributeNames().sort().join() + ']')"""
# What a text could bring about if it were taken for more: things that load, run, ask or lead away.
_ALIVE = """root => [...root.querySelectorAll('*')].filter(e =>
    /^(img|script|iframe|object|embed|link|style|base|meta|form|input|textarea|video|audio|source|picture|image|use|math|marquee|template|plaintext|frame|applet)$/i
      .test(e.tagName)
    || e.matches('details:not(.jp-TfGuard-Folded)')
    || e.getAttributeNames().some(n => /^on|^srcdoc$|^formaction$|^xlink/i.test(n))
    || ['href', 'src', 'action', 'data', 'name'].some(n => e.hasAttribute(n))
    || /url\\(/i.test(e.getAttribute('style') ?? '')
    || /^(cookie|body|forms|__proto__|constructor|attributes|innerHTML|token|baseUrl)$/.test(e.id)
  ).map(e => e.outerHTML.slice(0, 300))"""


class Watched:
    """A page whose requests are noted; leaves no trace in those of other tests."""

    def __init__(self, page: Page, local: str) -> None:
        self.page = page
        self.foreign: list[str] = []
        self.opened: list[str] = []
        self._local = local
        page.context.on("request", lambda request: self._look(request.url))
        page.on("websocket", lambda socket: self._look(socket.url))
        page.on("dialog", self._answer)
        page.context.on("page", lambda other: self.opened.append(other.url))

    def _answer(self, dialog: Dialog) -> None:
        if dialog.type != "beforeunload":  # JupyterLab's own, when the test loads the page again
            self.opened.append(dialog.message)
        dialog.accept()

    def _look(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob") and parts.netloc != self._local:
            self.foreign.append(url)

    def check(self) -> None:
        """Nothing ran, nothing was asked of anybody else, nothing opened."""
        assert self.page.evaluate("window.pwned") is None
        assert self.foreign == []
        assert self.opened == []


def filled(value: Any, text: Callable[[], str], key: str = "") -> Any:
    """The same shape with every text in it replaced."""
    if isinstance(value, str):
        return value if key in _FIXED else text()
    if isinstance(value, dict):
        if key == "versions":
            return {text() or "x": text() for _ in value}
        return {name: filled(item, text, name) for name, item in value.items()}
    if isinstance(value, list):
        return [filled(item, text, key) for item in value]
    return value


def made_report(text: Callable[[], str], bundle_id: str, count: int) -> dict[str, Any]:
    """A report of the shape of the sample, with that many texts in it."""
    sample = json.loads((SAMPLES / "report.json").read_text())
    spent = itertools.count()

    def next_text() -> str:
        next(spent)
        return text()

    for name in ("evidence", "not_checked", "chips", "activity", "because"):
        sample[name] = sample[name] * 4
    sample["against"] = sample["evidence"][:8]
    sample["advice"] = sample["advice"] * 3
    found: dict[str, Any] = filled(sample, next_text)
    found["arrays"] = [{"name": next_text(), "bytes": 10**9 - n} for n in range(10)]
    left = count - next(spent)
    assert left > 100
    found["stderr_tail"] = [text() for _ in range(left // 2)]
    found["python_stack"] = [text() for _ in range(left - left // 2)]
    return found | {"id": bundle_id, "unread": True, "kernel_alive": False}


def keep(store: BundleStore, text: Callable[[], str], number: int) -> str:
    """A report in the store as a forger who gets past our cleaning would have it."""
    bundle_id = new_bundle_id(4711, 1_800_000_000.0 + number)
    report = made_report(text, bundle_id, A_REPORT)
    report["crashed_at"] = f"2027-01-15T08:00:{number:02}.000Z"
    entry_names = (
        "id", "kernel_id", "kernel_name", "pid", "notebook_path", "cause", "confidence", "title", "short_title",
        "because", "where", "crashed_at", "kernel_alive",
    )  # fmt: skip
    entry = {name: report[name] for name in entry_names} | {"next_step": text()}
    store.save({"id": bundle_id, "format": [1, 0]}, report, entry)
    return bundle_id


@pytest.fixture
def store() -> Iterator[BundleStore]:
    found = BundleStore(bundles_folder())
    before = set(found.ids())
    yield found
    for bundle_id in set(found.ids()) - before:
        found.remove(bundle_id)


def watched(lab: Lab, page: Page) -> Watched:
    return Watched(page, urlsplit(lab.server.url).netloc)


def report_skeleton(page: Page, bundle_id: str) -> list[str]:
    """Open a report alone, and look at its elements."""
    command(page, "application:close-all")
    page.locator(".jp-TfGuard-Report").wait_for(state="detached")
    command(page, "tfguard:show-report", {"id": bundle_id})
    report = page.locator(".jp-TfGuard-Report")
    report.wait_for()
    report.get_by_text(re.compile("how we know", re.IGNORECASE)).first.wait_for()
    # The chart is drawn last, and only once it is seen.
    report.locator(".jp-TfGuard-Chart").first.scroll_into_view_if_needed()
    report.locator("canvas").first.wait_for()
    found: list[str] = report.evaluate(_SKELETON)
    assert _alive(report) == []
    return found


def _alive(root: Locator) -> list[str]:
    found: list[str] = root.evaluate(_ALIVE)
    # Our own buttons carry no link; a chart's canvas neither.
    return found


def test_reports_and_list_show_hostile_texts_as_text(lab: Lab, store: BundleStore) -> None:
    words = (f"word {n}" for n in itertools.count())
    plain_id = keep(store, lambda: next(words), 0)
    given = itertools.count()

    def hostile() -> str:
        return TEXTS[next(given) % len(TEXTS)]

    hostile_ids = [keep(store, hostile, n + 1) for n in range(len(TEXTS) // A_REPORT)]
    assert next(given) >= len(TEXTS)
    page = lab.open()
    seen = watched(lab, page)
    plain = report_skeleton(page, plain_id)
    assert len(plain) > 100
    for bundle_id in hostile_ids:
        assert report_skeleton(page, bundle_id) == plain, bundle_id
        seen.check()
    picture(page, "report-hostile")
    command(page, "tfguard:open-panel")
    deaths = page.locator(".jp-TfGuard-Crashes")
    deaths.wait_for()
    rows = deaths.locator(":scope > *")
    assert rows.count() >= 1
    assert _alive(page.locator(".jp-TfGuard-Panel")) == []
    toasts = page.locator(".Toastify")
    assert (
        toasts.evaluate("root => root.querySelectorAll('img, script, iframe, a, form').length") == 0
    )
    seen.check()


def test_no_text_makes_a_page_of_the_server_wider_than_the_window(
    lab: Lab, store: BundleStore
) -> None:
    bundle_id = keep(store, lambda: "x" * 200, 2)
    page = patient(lab.browser.new_page(viewport={"width": 420, "height": 640}))
    for path in ("report", f"report/{bundle_id}", "report/20200101-000000-1-00000000"):
        page.goto(f"{lab.server.url}tfguard/{path}?token={lab.server.token}")
        page.locator("h1").wait_for()
        page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= 420, path


def test_dialog_notification_and_live_panel_show_hostile_texts_as_text(lab: Lab) -> None:
    texts = itertools.cycle(TEXTS)
    shown = itertools.count()

    def text() -> str:
        next(shown)
        return next(texts)

    def hostile_answer(route: Route) -> None:
        response = route.fetch()
        if response.status == 200 and "json" in response.headers.get("content-type", ""):
            # Halves of characters cannot be sent as they are, only escaped.
            route.fulfill(response=response, body=json.dumps(filled(response.json(), text)))
        else:
            route.fulfill(response=response)

    sample = json.loads((SAMPLES / "tick.json").read_text())

    def hostile_socket(socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()

        def to_page(message: str | bytes) -> None:
            told = json.loads(message)
            if told["type"] == "tick":
                told = sample | {"time": told["time"]} | (
                    {"kernel": sample["kernel"] | {"kernel_id": told["kernel"]["kernel_id"]}}
                    if told["kernel"]
                    else {"kernel": None}
                )  # fmt: skip
            socket.send(json.dumps(filled(told, text)))

        server.on_message(to_page)

    page = lab.open(lab.notebook("hostile-live", KILL))
    seen = watched(lab, page)
    page.route("**/tfguard/api/crashes**", hostile_answer)
    page.route_web_socket(re.compile("tfguard/api/stream"), hostile_socket)
    page.reload(wait_until="domcontentloaded")
    page.wait_for_selector(".jp-StatusBar-Widget >> text=/\\| Idle/")
    command(page, "tfguard:open-panel")
    panel = page.locator(".jp-TfGuard-Panel")
    panel.wait_for()
    alive: list[str] = []
    for _ in range(12):
        page.wait_for_timeout(400)
        alive += _alive(panel)
    assert alive == []
    assert panel.locator(".jp-TfGuard-Training").count() == 1
    seen.check()
    page.wait_for_timeout(1000)
    run(page)
    dialog = page.locator(".jp-Dialog", has_text=re.compile("appears to have died"))
    dialog.wait_for()
    line = dialog.locator(".jp-TfGuard-Cause")
    line.wait_for()
    assert _alive(line) == []
    assert line.inner_text().strip()
    toast = page.locator(".Toastify__toast").first
    if toast.count():
        assert toast.evaluate("e => e.querySelectorAll('img, script, iframe, a, form').length") == 0
    picture(page, "dialog-hostile")
    seen.check()
    assert next(shown) > 150
