"""Accessibility: axe finds nothing serious in panel, report, options and mark, in every theme of JupyterLab."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import command, picture
from tests.browser.faked import fake

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import Lab

AXE = Path(__file__).parents[2] / "labextension" / "node_modules" / "axe-core" / "axe.min.js"
THEMES = ("Light", "Dark", "Dark High Contrast")
CELL = "import time\ntime.sleep(0)"


def violations(page: Page, selector: str) -> list[dict[str, Any]]:
    """What axe finds in a part of the page, as rule, weight and the elements."""
    if not page.evaluate("'axe' in window"):
        page.add_script_tag(path=AXE)
    found: list[dict[str, Any]] = page.evaluate(
        """async selector => {
            const { violations } = await axe.run(selector, { resultTypes: ['violations'] });
            return violations.map(({ id, impact, nodes }) => ({
                id, impact, nodes: nodes.map(node => node.html + ' ' + node.failureSummary)
            }));
        }""",
        selector,
    )
    return found


def faint(page: Page, selector: str) -> list[str]:
    """Texts below a contrast of 4.5 : 1; axe passes over some places. Signs that are not read out count as drawings."""
    found: list[str] = page.evaluate(
        """selector => {
            const rgb = text => {
                const parts = text.match(/[\\d.]+/g).map(Number);
                const scale = text.startsWith('color(') ? 255 : 1;
                return [...parts.slice(0, 3).map(part => part * scale), parts[3] ?? 1];
            };
            const over = (top, below) => below.map((b, i) => top[i] * top[3] + b * (1 - top[3]));
            const light = colour => {
                const [r, g, b] = colour.map(part => (part / 255) ** 2.2);
                return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
            };
            const backgrounds = node =>
                node === null
                    ? [255, 255, 255]
                    : over(rgb(getComputedStyle(node).backgroundColor), backgrounds(node.parentElement));
            const hasText = node =>
                [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim());
            return [...document.querySelectorAll(`${selector} *`)]
                .filter(node => hasText(node) && node.getClientRects().length > 0)
                .filter(node => node.closest('[aria-hidden=true]') === null)
                .map(node => {
                    const below = backgrounds(node);
                    const text = over(rgb(getComputedStyle(node).color), below);
                    const [a, b] = [light(text), light(below)];
                    return [Math.max(a, b) / Math.min(a, b), node.textContent.slice(0, 60)];
                })
                .filter(([contrast]) => contrast < 4.5)
                .map(([contrast, text]) => `${contrast.toFixed(2)} ${text}`);
        }""",
        selector,
    )
    return found


def open_everything(lab: Lab, name: str) -> Page:
    """A notebook with a mark, the panel near the limit with GPUs and a fit, and a report."""
    notebook = lab.notebook(name, CELL, "x = 1")
    page = lab.open()
    fake(page, notebook.name, "cell-0")
    page.goto(f"{lab.server.url}lab/tree/{notebook.name}?token={lab.server.token}&reset")
    page.locator(".jp-TfGuard-CellMark").wait_for()
    command(page, "tfguard:open-panel")
    page.locator(".jp-TfGuard-Gpus, .jp-TfGuard-Gpu").first.wait_for()
    command(page, "tfguard:show-report", {"id": "20261121-021407-4711-k3f9"})
    page.locator(".jp-TfGuard-Report").wait_for()
    return page


def change_theme(page: Page, theme: str) -> None:
    command(page, "apputils:change-theme", {"theme": f"JupyterLab {theme}"})
    page.wait_for_selector(f"body[data-jp-theme-name='JupyterLab {theme}']", state="attached")
    page.wait_for_timeout(800)


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious(lab: Lab, theme: str) -> None:
    name = theme.lower().replace(" ", "-")
    page = open_everything(lab, f"axe-{name}")
    change_theme(page, theme)
    picture(page, f"axe-{name}")
    found = {
        part: violations(page, part)
        for part in (
            ".jp-TfGuard-Panel",
            ".jp-TfGuard-Report",
            ".jp-TfGuard-CellMark",
            ".jp-TfGuard-StatusItem",
        )
    }
    pale = {part: faint(page, part) for part in found}
    command(page, "tfguard:show-options")
    page.locator(".jp-TfGuard-Options").wait_for()
    page.get_by_role("button", name="How to change busy_hertz").click()
    page.wait_for_timeout(500)
    picture(page, f"options-{name}")
    found[".jp-TfGuard-Options"] = violations(page, ".jp-TfGuard-Options")
    if theme == "Light":
        page.keyboard.press("Escape")
        page.locator(".jp-TfGuard-Options").wait_for(state="detached")
        page.emulate_media(forced_colors="active")
        page.wait_for_timeout(800)
        picture(page, "forced-colors")
    change_theme(page, "Light")
    assert found == {part: [] for part in found}
    assert pale == {part: [] for part in pale}
