"""A fit that makes no step while its kernel computes is shown and reported; slow work that goes on is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.hang.conftest import WatchedKernel
from tests.rigs.waiting import wait_until

PREPARE = (
    "import pathlib, time\nimport numpy as np\nimport tensorflow as tf\n"
    "keras = tf.keras\n"
    "x = np.ones((64, 4), 'float32')\n"
    "def spin(seconds):\n"
    "    ends = time.monotonic() + seconds\n"
    "    while time.monotonic() < ends:\n        pass\n"
    "def built(*more):\n"
    "    model = keras.Sequential([keras.layers.Input((4,)), *more, keras.layers.Dense(1)])\n"
    "    model.compile('sgd', 'mse')\n    return model\n"
    "data = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).repeat()"
)
NOTHING_PASSES = (
    "built().fit(data.filter(lambda a, b: tf.reduce_sum(a) < 0).batch(8), steps_per_epoch=4)"
)
SPINS_LATER = (
    "def batches():\n"
    "    for step in range(6):\n"
    "        yield x[:8], x[:8, :1]\n"
    "    while pathlib.Path('spin').exists():\n        pass\n"
    "    while True:\n        yield x[:8], x[:8, :1]\n"
    "pathlib.Path('spin').touch()\n"
    "model = built()\nmodel.fit(x[:8], x[:8, :1], verbose=0)\n"
    "model.fit(batches(), steps_per_epoch=10, verbose=0)"
)
SLOW_BUT_ALIVE = (
    "class Traced(keras.layers.Layer):\n"
    "    def call(self, inputs):\n"
    "        if traces:\n            spin(12)\n"
    "        return inputs\n"
    "class Slow(keras.callbacks.Callback):\n"
    "    def on_epoch_end(self, epoch, logs=None):\n        spin(7)\n"
    "    def on_train_batch_end(self, batch, logs=None):\n"
    "        if batch == 3:\n            spin(7)\n"
    # Fast while the first step of the validation is traced, which takes long on a busy machine.
    "def slowly():\n"
    "    for _ in range(8):\n        yield x[:8], x[:8, :1]\n"
    "    while True:\n        spin(1.2)\n        yield x[:8], x[:8, :1]\n"
    "traces = False\nmodel = built(Traced())\ntraces = True\n"
    "model.fit(data.batch(8), steps_per_epoch=5, verbose=0)\n"
    "built().fit(data.batch(8), steps_per_epoch=5, callbacks=[Slow()],"
    " validation_data=slowly(), validation_steps=13, verbose=0)\n"
    "done = True"
)

Make = Callable[[], WatchedKernel]


def test_a_fit_without_steps_is_shown_until_a_step_comes_and_reported(make_kernel: Make) -> None:
    kernel, alive = make_kernel(), make_kernel()
    for one in (kernel, alive):
        assert one.run(PREPARE, timeout=120)["status"] == "ok"
    alive.start(SLOW_BUT_ALIVE)
    false_alarms: list[dict[str, Any]] = []

    def stall() -> dict[str, Any] | None:
        # A starved machine may first show a hang without CPU time.
        found = hang()
        return found if found and found["computes"] else None

    def hang() -> dict[str, Any] | None:
        seen = alive.state().get("hang")
        # On a starved machine a kernel can go without CPU time for the few seconds that are set here.
        false_alarms.extend([seen] if seen and seen["computes"] else [])
        found: dict[str, Any] | None = kernel.state().get("hang")
        return found

    kernel.start(SPINS_LATER)
    shown = wait_until(stall, "the generator that spins")
    assert (shown["computes"], shown["in_fit"], shown["text"]) == (True, True, None)
    assert shown["line"].endswith("line 4 of the cell, in batches")
    (kernel.server.work / "spin").unlink()
    wait_until(lambda: hang() is None, "the next step")
    wait_until(lambda: kernel.execution_state() == "idle", "the end of the fit")

    kernel.start(NOTHING_PASSES)
    shown = wait_until(stall, "the fit without a first step")
    assert "called from line 1 of the cell" in shown["line"]
    kernel.restart()  # an interrupt would wait for the step
    report = kernel.report()
    assert (report["cause"], report["confidence"]) == ("hang", "possible")
    assert "The fit made no step for" in report["title"]
    assert any("called from line 1 of the cell" in fact["text"] for fact in report["evidence"])

    wait_until(lambda: hang() is None and alive.execution_state() == "idle", "slow work")
    assert alive.run("assert done")["status"] == "ok"
    assert false_alarms == []
