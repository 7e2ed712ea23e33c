"""Ordinary work with the stop at its strongest: ``python -m tests.soak.ordinary_work [--minutes 60] [--pictures FOLDER]``.

Three notebooks are open in JupyterLab, each in a memory group of 4 GiB, with ``TfGuard.stop = "full"``: one trains for long, one
works with data and plots, one is debugged, interrupted and runs tests. They are run again and again. Nothing of the guard may be
seen: no text in an output, no error, no kernel that ended, no stop. A line a round; the exit status is 1 if there was something.

The notebooks use matplotlib and SciPy where they are installed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from jupyter_tfguard.record.contents import read_recording
from jupyter_tfguard.units import GIB
from tests.bench.bench import machine
from tests.browser.conftest import Lab, command, lab_server, launch, run
from tests.browser.gpus import pid_behind
from tests.conftest import write_options
from tests.crash.settings import memory_limit
from tests.rigs.waiting import wait_until

TRAIN = (
    "import numpy as np, keras\nkeras.utils.set_random_seed(1)\n"
    "x = np.random.default_rng(0).random((20_000, 32, 32, 3), dtype='float32')\ny = np.arange(20_000) % 10",
    "model = keras.Sequential([keras.layers.Input((32, 32, 3)), keras.layers.Conv2D(16, 3, activation='relu'),\n"
    "    keras.layers.MaxPooling2D(), keras.layers.Flatten(), keras.layers.Dense(10, activation='softmax')])\n"
    "model.compile('adam', 'sparse_categorical_crossentropy', metrics=['accuracy'])",
    "class UntilTime(keras.callbacks.Callback):\n"
    "    def on_train_begin(self, logs=None):\n        import time; self.end = time.time() + SECONDS\n"
    "    def on_epoch_end(self, epoch, logs=None):\n        import time; self.model.stop_training = time.time() > self.end\n"
    "history = model.fit(x, y, batch_size=128, epochs=100_000, validation_split=0.1, verbose=0, callbacks=[UntilTime()])",
    "print(len(history.history['loss']) > 1, model.evaluate(x[:500], y[:500], verbose=0)[0] < 5, model.predict(x[:64], verbose=0).shape)",
    "model.save('model.keras'); again = keras.models.load_model('model.keras')\n"
    "print(bool(np.allclose(again.predict(x[:8], verbose=0), model.predict(x[:8], verbose=0))))",
)
DATA = (
    "import numpy as np, pandas as pd, io, json\nrng = np.random.default_rng(2)\n"
    "frame = pd.DataFrame({'group': rng.integers(0, 50, 1_000_000), 'value': rng.random(1_000_000)})\n"
    "print(round(float(frame.groupby('group').value.mean().sum()), 3))",
    "frame.to_csv('rows.csv', index=False); back = pd.read_csv('rows.csv'); print(back.shape, bool(np.isclose(back.value.sum(), frame.value.sum())))",
    "print(round(float(np.abs(np.fft.rfft(frame.value.to_numpy())).sum()), 1), round(float(np.sort(rng.random(3_000_000))[1_500_000]), 3) > 0)",
    "huge = np.zeros((200_000, 10_000)); huge[::10_000, 0] = 1; print(huge[:, 0].sum(), huge.nbytes > 15e9); del huge",
    "try:\n    import matplotlib.pyplot as plt\n    plt.plot(frame.groupby('group').value.sum()); plt.show()\nexcept ImportError: pass",
    "import multiprocessing as mp\nwith mp.get_context('fork').Pool(2) as pool: print(sum(pool.map(abs, range(-1000, 0))))",
    "import threading\nfound = []\nthreads = [threading.Thread(target=lambda n=n: found.append(np.ones(n * 100_000).sum())) for n in range(1, 6)]\n"
    "[t.start() for t in threads]; [t.join() for t in threads]; print(sum(found))",
    "try:\n    np.ones((1 << 45,), 'u1')\nexcept MemoryError as error: print(type(error).__name__)",
    "import asyncio\nawait asyncio.gather(*(asyncio.sleep(0.01) for _ in range(100)))\nprint('awaited')",
    "%timeit -n 3 -r 2 np.linalg.svd(rng.random((200, 200)))",
    "import ipywidgets; ipywidgets.IntSlider(3)",
)
CODE = (
    "%%writefile test_own.py\nimport numpy as np\ndef test_sum():\n    assert np.ones(10_000_000).sum() == 10_000_000\n",
    "!python -m pytest -q -p no:cacheprovider --noconftest --rootdir=. test_own.py 2>&1 | tail -1 | cut -d' ' -f1,2",
    "import pickle, json\nrows = [{'n': n, 'text': 'x' * 100} for n in range(200_000)]\nprint(len(json.loads(json.dumps(rows))), len(pickle.loads(pickle.dumps(rows))))",
    "def depth(n):\n    return 0 if n == 0 else 1 + depth(n - 1)\nprint(depth(800))",
    "import traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    traceback.print_exc(limit=0)",
    # Not a Python program: its start never returns in a kernel with the debugger on, with or without the guard.
    "import subprocess\nprint(subprocess.run(['echo', '42'], capture_output=True, text=True).stdout.strip())",
    "import time\nprint('to be interrupted', time.time())\nfor second in range(6000): time.sleep(0.1)",
)
# The last cell prints when it began.
_LAST_CELL_RUNS = """began => {
  const cell = jupyterapp.shell.currentWidget.content.model.toJSON().cells.at(-1);
  const text = [].concat(cell.outputs[0]?.text ?? '').join('');
  return Number(text.split(' ').at(-1)) > began;
}"""
_OWN_ERROR = "KeyboardInterrupt"  # of the cell that is interrupted
_VARIES = (
    "per loop",
    "slowest run",
    "pydevd",
    "riting test_own.py",
    "to be interrupted",
    "tf.function retracing",
)  # in a printed line


class Work:
    """One notebook that is run again and again.

    Args:
        lab: Where it is open.
        name: Of the notebook.
        cells: What it runs.
    """

    def __init__(self, lab: Lab, name: str, cells: tuple[str, ...]) -> None:
        self.name = name
        self.page: Page = lab.open(lab.notebook(name, *cells))
        self.pid = pid_behind(lab.server, name)
        self._lab = lab
        self._printed: list[str] | None = None
        command(self.page, "tfguard:open-panel")

    @property
    def is_idle(self) -> bool:
        """True when no cell runs or waits."""
        text = self.page.locator(".jp-Notebook:visible").first.inner_text()
        status = self.page.locator(".jp-StatusBar-Widget").first.inner_text()
        return "[*]" not in text and "| Idle" in status

    def problems(self) -> list[str]:
        """What an ordinary kernel would not show."""
        model = self.page.evaluate("window.jupyterapp.shell.currentWidget.content.model.toJSON()")
        found, printed = [], []
        for number, cell in enumerate(model["cells"]):
            for output in cell.get("outputs", []):
                error = output.get("ename")
                if "tfguard" in json.dumps(output).lower() or error not in (None, _OWN_ERROR):
                    found.append(f"cell {number}: {json.dumps(output)[:300]}")
                if output.get("name") == "stdout":
                    lines = "".join(output["text"]).splitlines()
                    printed += [line for line in lines if not any(map(line.__contains__, _VARIES))]
        if self.pid != pid_behind(self._lab.server, self.name):
            found.append("another kernel")
        if self._printed not in (None, printed):
            found.append(f"other output: {printed} after {self._printed}")
        self._printed = printed
        return found


def main() -> int:
    """Run the rounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--fit-seconds", type=int, default=700, help="of one fit (default: 700)")
    parser.add_argument("--pictures", type=Path, help="keep a screenshot of each notebook here")
    chosen = parser.parse_args()
    problems: list[str] = []
    with contextlib.ExitStack() as open_:
        folder = Path(open_.enter_context(tempfile.TemporaryDirectory()))
        server = open_.enter_context(lab_server(folder))
        write_options(folder / "home" / "config", "full")
        lab = Lab(server, launch(open_.enter_context(sync_playwright())))
        train = tuple(cell.replace("SECONDS", str(chosen.fit_seconds)) for cell in TRAIN)
        works = [Work(lab, name, cells) for name, cells in (("train", train), ("data", DATA), ("code", CODE))]  # fmt: skip
        for work in works:
            open_.enter_context(memory_limit(4 * GIB)).add(work.pid)
        code = works[2].page
        code.locator(".jp-DebuggerBugButton").first.click()
        ends, rounds = time.monotonic() + 60 * chosen.minutes, {work.name: 0 for work in works}
        while time.monotonic() < ends:
            for work in works:
                if rounds[work.name] and not work.is_idle:
                    continue
                new = work.problems() if rounds[work.name] else []
                problems += [f"{work.name}: {one}" for one in new]
                print(json.dumps({"notebook": work.name, "round": rounds[work.name], "problems": new}), flush=True)  # fmt: skip
                rounds[work.name] += 1
                began = time.time()
                run(work.page)
                if work.name == "code":
                    code.wait_for_function(
                        _LAST_CELL_RUNS, arg=began, polling=1000, timeout=600_000
                    )
                    command(code, "notebook:interrupt-kernel")
                    wait_until(lambda: works[2].is_idle, "the interrupted cell")
            time.sleep(5)
        if chosen.pictures:
            chosen.pictures.mkdir(parents=True, exist_ok=True)
            for work in works:
                work.page.screenshot(path=chosen.pictures / f"{work.name}.png")
        crashes = server.get("tfguard/api/crashes")["crashes"]
        problems += [f"report: {crash['title']}" for crash in crashes]
        for recording in (folder / "home" / "tfguard" / "recordings").glob("*-*"):
            contents = read_recording(recording)
            problems += [f"event: {event}" for event in contents.events if event["kind"].startswith("memory_")]  # fmt: skip
            problems += [f"guard: {text}" for text in contents.header["guard"]["problems"]]
            print(json.dumps({"stop": contents.header["guard"]["stop"]}))
    print(json.dumps({"rig": "ordinary_work", "rounds": rounds, "problems": problems} | machine()))
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
