"""``%tfguard panel`` in real kernels: messages come while a cell runs, rest when it does, and nothing is left behind."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.kernel.panel_state import _name
from tests.kernel.rig import GuardedKernel
from tests.kernel.widget_rig import messages, news, opened, until_idle

pytestmark = pytest.mark.usefixtures("reloaded")
WIRE = Path(__file__).parents[1] / "wire" / "widget.json"
VIEW = "application/vnd.jupyter.widget-view+json"
HEAVY = "('anywidget', 'ipywidgets', 'jupyter_tfguard.kernel.widget', 'jupyter_tfguard.watch')"


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


def test_it_moves_while_a_cell_runs(panel: Callable[..., Any]) -> None:
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


def test_what_it_tells_has_the_shape_that_the_page_reads(panel: Callable[..., Any]) -> None:
    found = panel("import time; time.sleep(1.5)")
    sample = json.loads(WIRE.read_text())
    told = opened(found)["data"]["state"]
    assert set(told["state"]) == set(sample["state"])
    assert shape(told["state"]["host"]) == shape(sample["state"]["host"])
    assert shape(told["state"]["marks"]) == shape(sample["state"]["marks"])
    assert set(told["state"]["guard"]) == set(sample["state"]["guard"])
    assert shape(told["history"]) == shape([[1.0, 1]])
    assert len(json.dumps(news(found)[-1])) < 8_000


def test_a_fit_is_told_while_it_runs(kernel: GuardedKernel, panel: Callable[..., Any]) -> None:
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
        "held = [mmap.mmap(-1, 4 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)]\n"
        "try:\n"
        "    while True: held.append(mmap.mmap(-1, 10 << 20)); time.sleep(0.25)\n"
        "except KeyboardInterrupt: pass"
    )
    sample = json.loads((WIRE.parent / "tick.json").read_text())["kernel"]["host"]["forecast"]
    end, found = time.monotonic() + 75, None
    while found is None and time.monotonic() < end:
        hosts = [one["state"]["host"] for one in news(messages(kernel, 0.5))]
        found = next((host for host in hosts if host["forecast"] is not None), None)
    assert found is not None, "nothing was foreseen"
    assert set(found["forecast"]) == set(sample)
    assert found["limit"]["kind"] == "ulimit"
    room = found["limit"]["bytes"] - found["used_bytes"]
    rate = found["forecast"]["bytes_per_second"]
    assert found["forecast"]["seconds_left"] == pytest.approx(room / rate, rel=0.25)
    kernel.manager.interrupt_kernel()
    idle = news(until_idle(kernel, request) + messages(kernel, 2.0))[-1]["state"]
    assert (idle["busy"], idle["host"]["forecast"]) == (False, None)


def test_an_idle_kernel_is_left_in_peace(kernel: GuardedKernel, panel: Callable[..., Any]) -> None:
    panel("pass")
    messages(kernel, 2.5)  # the end of the cell is told
    assert news(messages(kernel, 3.0)) == []


def test_the_rate_is_an_argument(kernel: GuardedKernel, panel: Callable[..., Any]) -> None:
    slow = news(panel("import time; time.sleep(2)", "--hertz 0.5"))
    fast = news(panel("import time; time.sleep(2)", "--hertz 10"))
    assert 1 <= len(slow) < len(fast)
    assert kernel.run("%tfguard panel --hertz nan").text == "The rate must be finite.\n"


def test_without_widgets_it_is_text(new_kernel: Callable[..., GuardedKernel]) -> None:
    kernel = new_kernel(before="import sys; sys.modules['anywidget'] = None; del sys")
    ran = kernel.run("%tfguard panel")
    assert ran.error is None
    assert ran.stdout.startswith("tfguard ")
    assert "Memory: " in ran.stdout


def test_a_client_without_widgets_prints_it(tmp_path: Path) -> None:
    kernel = GuardedKernel(tmp_path)
    (tmp_path / "cells.py").write_text("%load_ext tfguard\n%tfguard panel\n")
    command = [sys.executable, "-m", "jupyter", "run", "cells.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env=kernel.full_environment(), capture_output=True, text=True
    )
    assert done.stdout.count("guarding this kernel") == 2, done.stderr
    assert "Memory: " in done.stdout


def test_a_child_of_the_kernel_sends_nothing(
    kernel: GuardedKernel, panel: Callable[..., Any]
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


def test_in_colab_the_fit_itself_sends(new_kernel: Callable[..., GuardedKernel]) -> None:
    # Messages from threads are reported not to arrive there.
    colab = "import sys, types; sys.modules['google.colab'] = types.ModuleType('google.colab'); del sys, types"
    kernel = new_kernel()
    kernel.run(colab)
    assert kernel.run("import keras, numpy as np", timeout=120).error is None
    found = until_idle(
        kernel,
        kernel.send(
            "%tfguard panel\n"
            "model = keras.Sequential([keras.Input((10,)), keras.layers.Dense(1)])\n"
            "model.compile('sgd', 'mse')\n"
            "import time\n"
            "class Slow(keras.callbacks.Callback):\n"
            "    def on_epoch_end(self, epoch, logs=None): time.sleep(0.2)\n"
            "model.fit(np.zeros((64, 10)), np.zeros((64, 1)), epochs=15, verbose=0, callbacks=[Slow()])\n"
            "import threading; print([t.name for t in threading.enumerate()].count('tfguard-widget'))"
        ),
    )
    printed = "".join(m["content"]["text"] for m in found if m["msg_type"] == "stream")
    assert printed.strip().endswith("0")
    epochs = {one["state"]["training"]["epoch"] for one in news(found) if one["state"]["training"]}
    assert len(epochs) >= 4


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/home/ann/work/train.ipynb", "train.ipynb"),
        ("C:\\work\\train.ipynb", "train.ipynb"),
        ("/home/ann/work/", None),
        ("3f0c2a1e-7d55-4b0a-9d0e-5a8f6c1b2d34", None),
        ("", None),
    ],
)
def test_a_notebook_is_called_as_on_its_tab(path: str, name: str | None) -> None:
    assert _name(path) == name
