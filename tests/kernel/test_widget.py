"""``%tfguard panel`` in real kernels: messages come while a cell runs, rest when it does, and nothing is left behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.kernel.panel.panel_state import _name
from tests.kernel.rig import GuardedKernel

WIRE = Path(__file__).parents[1] / "wire" / "widget.json"
VIEW = "application/vnd.jupyter.widget-view+json"
# More than the half second after the cell, in which a last sample is shown, at any speed of the machine.
REST_SECONDS = 3.0
HEAVY = (
    "('anywidget', 'ipywidgets', 'jupyter_tfguard.kernel.panel.widget', 'jupyter_tfguard.watch')"
)


Messages = list[dict[str, Any]]


@pytest.fixture
def panel(kernel: GuardedKernel) -> Callable[..., Messages]:
    """Runs code below a new panel: what the kernel published meanwhile."""

    def run(code: str, **how: float) -> Messages:
        kernel.run("%unload_ext tfguard")
        kernel.run("%load_ext tfguard")
        return kernel.published(kernel.send(f"%tfguard panel\n{code}"), **how)

    return run


def news(found: Messages, kind: str = "state") -> Messages:
    """Messages of one type that a panel sent, among what was published."""
    said = [m["content"]["data"] for m in found if m["msg_type"] == "comm_msg"]
    sent = [data["content"] for data in said if data.get("method") == "custom"]
    return [content for content in sent if content["type"] == kind]


def comms(found: Messages) -> Messages:
    """The comms of panels that were opened, among what was published."""
    opened = [m["content"] for m in found if m["msg_type"] == "comm_open"]
    return [one for one in opened if "history" in one["data"]["state"]]


def shape(value: Any) -> Any:
    """Keys and kinds of JSON, without its values."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


def test_kernel_start_pays_nothing_for_it(new_kernel: Callable[..., GuardedKernel]) -> None:
    imported = f"import sys; print([m for m in {HEAVY} if m in sys.modules])"
    assert new_kernel().run(imported).stdout == "[]\n"


def test_it_moves_while_a_cell_runs(panel: Callable[..., Messages]) -> None:
    found = panel("import time\nend = time.time() + 3\nwhile time.time() < end: pass")
    display = next(m["content"]["data"] for m in found if m["msg_type"] == "display_data")
    assert VIEW in display
    assert display["text/plain"].startswith("tfguard ")
    assert "Memory: " in display["text/plain"]
    states = [one["state"] for one in news(found)]
    assert len([state for state in states if state["busy"]]) >= 5
    times = [state["host"]["time"] for state in states]
    assert times == sorted(times)
    assert len(set(times)) >= 5


def test_what_it_reports_has_the_shape_that_the_page_reads(panel: Callable[..., Messages]) -> None:
    found = panel("import time; time.sleep(1.5)")
    sample = json.loads(WIRE.read_text())
    told = comms(found)[0]["data"]["state"]
    assert set(told["state"]) == set(sample["state"])
    assert shape(told["state"]["host"]) == shape(sample["state"]["host"])
    assert shape(told["state"]["marks"]) == shape(sample["state"]["marks"])
    assert set(told["state"]["guard"]) == set(sample["state"]["guard"])
    assert shape(told["history"]) == shape([[1.0, 1]])
    assert len(json.dumps(news(found)[-1])) < 8_000


def test_a_fit_is_shown_while_it_runs(
    kernel: GuardedKernel, panel: Callable[..., Messages]
) -> None:
    sample = json.loads(WIRE.read_text())["state"]["training"]
    assert kernel.run("import keras, numpy as np", timeout=120).error is None
    found = panel(
        "model = keras.Sequential([keras.Input((10,)), keras.layers.Dense(1)])\n"
        "model.compile('sgd', 'mse')\n"
        "x = np.zeros((64, 10)); y = np.zeros((64, 1))\n"
        "import time\n"
        "class Slow(keras.callbacks.Callback):\n"
        "    def on_epoch_end(self, epoch, logs=None): time.sleep(0.3)\n"
        "model.fit(x, y, epochs=12, verbose=0, callbacks=[Slow()])"
    )
    fits = [one["state"]["training"] for one in news(found) if one["state"]["training"]]
    assert len({fit["epoch"] for fit in fits}) >= 4
    assert set(fits[-1]) == set(sample)
    assert fits[-1]["epochs"] == 12


def test_it_foresees_the_limit_as_the_servers_panel_does(
    new_kernel: Callable[..., GuardedKernel],
) -> None:
    # Address space is cheap to take: 4 GiB at once, then 40 MiB a second towards 8 GiB.
    kernel = new_kernel(
        before="import resource; resource.setrlimit(resource.RLIMIT_AS, (8 << 30, -1))"
    )
    request = kernel.send(
        "%tfguard panel\n"
        "import mmap, time\n"
        "from jupyter_tfguard.kernel.current import current\n"
        "held = [mmap.mmap(-1, 4 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)]\n"
        "state, end = current().panel.state, time.time() + 75\n"
        "while state.now()['host']['forecast'] is None and time.time() < end:\n"
        "    held.append(mmap.mmap(-1, 10 << 20)); time.sleep(0.25)\n"
        "time.sleep(1)"
    )
    states = news(kernel.published(request, quiet_seconds=REST_SECONDS))
    hosts = [one["state"]["host"] for one in states]
    found = next(host for host in hosts if host["forecast"] is not None)
    sample = json.loads((WIRE.parent / "tick.json").read_text())["kernel"]["host"]["forecast"]
    assert set(found["forecast"]) == set(sample)
    assert found["limit"]["kind"] == "ulimit"
    room = found["limit"]["bytes"] - found["used_bytes"]
    rate = found["forecast"]["bytes_per_second"]
    assert found["forecast"]["seconds_left"] == pytest.approx(room / rate, rel=0.25)
    assert (states[-1]["state"]["busy"], hosts[-1]["forecast"]) == (False, None)


def test_it_shows_the_end_of_a_cell_and_then_rests(panel: Callable[..., Messages]) -> None:
    # Published until nothing came for so long: the test would run into its deadline if it did not rest.
    found = news(panel("pass", quiet_seconds=REST_SECONDS))
    assert not found[-1]["state"]["busy"]


def test_all_outputs_show_one_widget_and_a_view_gets_what_it_missed(
    kernel: GuardedKernel, panel: Callable[..., Messages]
) -> None:
    first = comms(panel("pass", quiet_seconds=REST_SECONDS))
    assert comms(kernel.published(kernel.send("%tfguard panel"))) == []
    content = {"type": "opened"}
    data = {
        "comm_id": first[0]["comm_id"],
        "data": {"method": "custom", "content": content},
    }
    message = kernel.client.session.msg("comm_msg", data)
    kernel.client.shell_channel.send(message)
    found = kernel.published(message["header"]["msg_id"])
    assert news(found, "history")[0]["rows"]
    assert news(found)
    kernel.run("import ipywidgets; ipywidgets.Widget.close_all()")
    assert len(comms(kernel.published(kernel.send("%tfguard panel")))) == 1


def test_unloading_ends_it(kernel: GuardedKernel, panel: Callable[..., Messages]) -> None:
    panel("pass")
    names = (
        "import threading; print([t.name for t in threading.enumerate()].count('tfguard-widget'))"
    )
    assert kernel.run(names).stdout == "1\n"
    assert len(news(kernel.published(kernel.send("%unload_ext tfguard")), "ended")) == 1
    assert kernel.run(names).stdout == "0\n"


def test_without_widgets_it_is_text(new_kernel: Callable[..., GuardedKernel]) -> None:
    kernel = new_kernel(before="import sys; sys.modules['anywidget'] = None; del sys")
    ran = kernel.run("%tfguard panel")
    assert ran.error is None
    assert ran.stdout.startswith("tfguard ")
    assert "Memory: " in ran.stdout


def test_a_child_of_the_kernel_sends_nothing(
    kernel: GuardedKernel, panel: Callable[..., Messages]
) -> None:
    panel("pass")
    code = (
        "import os, time\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    time.sleep(0.5); os._exit(0)\n"
        "print(os.waitpid(child, 0)[1])"
    )
    assert kernel.run(code).stdout.strip() == "0"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/home/ann/work/train.ipynb", "train.ipynb"),
        ("C:\\work\\train.ipynb", "train.ipynb"),
        ("3f0c2a1e-7d55-4b0a-9d0e-5a8f6c1b2d34", None),
    ],
)
def test_a_notebook_is_called_as_on_its_tab(path: str, name: str | None) -> None:
    assert _name(path) == name
