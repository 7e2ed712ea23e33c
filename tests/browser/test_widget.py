"""``%tfguard panel``: in a page without Jupyter, and in a JupyterLab whose own panel is switched off."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jupyter_tfguard.kernel.panel.widget import STATIC
from tests.browser.conftest import Lab, command, lab_server, patient, picture, pictures, run
from tests.browser.test_panel import FIT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

SAMPLE = json.loads((Path(__file__).parents[1] / "wire" / "widget.json").read_text())
WIDGET = ".jp-TfGuard-Widget"
_ADDRESS = "http://panel.test/"
_TYPES = {".js": "text/javascript", ".css": "text/css"}
# What anywidget gives: a model with its values and messages, and an element to draw in.
_RENDER = """async ([state, history]) => {
  const { default: panel } = await import('/widget.js');
  const listeners = new Set();
  window.sent = [];
  const model = {
    get: name => ({ state, history })[name],
    send: content => window.sent.push(content),
    on: (_, listener) => listeners.add(listener),
    off: (_, listener) => listeners.delete(listener),
  };
  window.tell = content => listeners.forEach(listener => listener(content));
  window.leave = panel.render({ model, el: document.getElementById('output') });
  window.listeners = listeners;
}"""
VSCODE = {
    "--vscode-editor-background": "#1f1f1f",
    "--vscode-editor-foreground": "#cccccc",
    "--vscode-descriptionForeground": "#9d9d9d",
    "--vscode-toolbar-hoverBackground": "#5a5d5e50",
    "--vscode-editorWidget-border": "#454545",
    "--vscode-charts-blue": "#3794ff",
}


@pytest.fixture
def bare(browser: Browser) -> Iterator[Any]:
    """Opens the panel in a page that has nothing of Jupyter's."""
    if not (STATIC / "widget.js").is_file():
        pytest.fail("the widget is not built: jlpm build:static in labextension/")

    def answer(route: Route) -> None:
        name = route.request.url.removeprefix(_ADDRESS)
        if name in ("widget.js", "widget.css"):
            found = STATIC / name
            route.fulfill(body=found.read_text(), content_type=_TYPES[found.suffix])
        elif name:
            route.fulfill(status=404)
        else:
            link = "<link rel=stylesheet href=/widget.css>"
            body = f"<!doctype html>{link}<body style='margin: 20px'><div id=output></div>"
            route.fulfill(body=body, content_type="text/html")

    contexts = []

    def begin(scheme: str = "light", style: dict[str, str] | None = None) -> Page:
        context = browser.new_context(
            viewport={"width": 520, "height": 640}, color_scheme=scheme, timezone_id="UTC"
        )
        contexts.append(context)
        page = patient(context.new_page())
        page.route(f"{_ADDRESS}**", answer)
        page.goto(_ADDRESS)
        for name, value in (style or {}).items():
            page.evaluate(
                "([name, value]) => document.body.style.setProperty(name, value)", [name, value]
            )
        page.evaluate(_RENDER, [SAMPLE["state"], SAMPLE["history"]])
        page.wait_for_function("document.querySelector('.jp-TfGuard-Chart canvas') !== null")
        return page

    yield begin
    for context in contexts:
        context.close()


def colour_of(page: Page, selector: str, name: str) -> str:
    return str(
        page.eval_on_selector(
            selector, "(e, name) => getComputedStyle(e).getPropertyValue(name)", name
        )
    )


@pytest.mark.parametrize(
    ("scheme", "style", "back"),
    [
        ("light", {}, "rgb(255, 255, 255)"),
        ("dark", {}, "rgb(30, 30, 30)"),
        ("light", VSCODE | {"background": "#1f1f1f"}, "rgb(31, 31, 31)"),
    ],
    ids=["light", "dark", "vscode"],
)
def test_a_page_without_jupyter_shows_it_in_its_own_colours(
    bare: Any, scheme: str, style: dict[str, str], back: str, request: pytest.FixtureRequest
) -> None:
    page = bare(scheme, style)
    text = page.inner_text(WIDGET)
    for part in ("6.10 of 8.00 GiB", "container limit", "epoch 3 of 10", "14.9 of 38.0 GiB"):
        assert part in text
    assert "memory growth on" in text
    assert colour_of(page, WIDGET, "background-color") == back
    page.evaluate(
        "state => tell({ type: 'state', state: { ...state, time: Date.now() / 1000 } })",
        SAMPLE["state"],
    )
    picture(page, f"widget-bare-{request.node.callspec.id}", 300)


def test_nothing_of_vscodes_white_frame_is_left_around_it(bare: Any) -> None:
    page = bare("light", VSCODE)
    page.add_style_tag(
        content=".cell-output-ipywidget-background { background: white !important; }"
    )
    page.evaluate("output.className = 'cell-output-ipywidget-background'")
    assert colour_of(page, "#output", "background-color") == "rgba(0, 0, 0, 0)"
    bar = colour_of(page, f"{WIDGET} .jp-TfGuard-bar", "background-color")
    assert bar.startswith("rgba(90, 93, 94")  # its editor and its widgets are of nearly one colour


@pytest.fixture(scope="module")
def without_panel(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Lab]:
    """A JupyterLab in which our labextension is switched off."""
    folder = tmp_path_factory.mktemp("without-panel")
    settings = folder / "more" / "labconfig"
    settings.mkdir(parents=True)
    off = {"disabledExtensions": {"jupyter-tfguard": True}}
    (settings / "page_config.json").write_text(json.dumps(off))
    with lab_server(folder, JUPYTER_CONFIG_PATH=folder / "more") as server:
        yield Lab(server, browser)
        for context in list(browser.contexts):
            context.close()


def run_fit(page: Page) -> None:
    """Run all cells, and wait until the panel below has shown the third epoch."""
    run(page)
    training = page.locator(f"{WIDGET} .jp-TfGuard-Training")
    training.wait_for()
    epochs = set()
    for _ in range(60):
        if found := re.search(r"epoch (\d+) of 400", training.inner_text()):
            epochs.add(found[1])
        if len(epochs) >= 3:
            return
        page.wait_for_timeout(500)
    pytest.fail(f"the panel stood still: {epochs} {page.inner_text(WIDGET)}")


def test_it_moves_while_a_fit_runs_and_shows_the_last_state_afterwards(without_panel: Lab) -> None:
    page = without_panel.open(without_panel.notebook("train", f"%tfguard panel\n{FIT}"))
    assert "tfguard:open-panel" not in page.evaluate("window.jupyterapp.commands.listCommands()")
    run_fit(page)
    pictures(page, "widget-lab")
    assert page.locator(".jp-InputPrompt", has_text="[*]").count() == 1
    command(page, "notebook:interrupt-kernel")
    page.locator(WIDGET).get_by_text("guarding, idle").wait_for()
