"""Training in a real kernel with a real memory limit: stopped, saved, resumed; refused when it cannot fit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.kernel.rig import GuardedKernel

if TYPE_CHECKING:
    from tests.guard.conftest import Make

LIMIT_MIB = 1400
STOPPED = "HostMemoryLimitReached"
SETUP = """\
import time
import numpy as np, keras, tensorflow as tf
def new_model():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.layers.Input((100,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(4)])
    model.compile("adam", "mse")
    return model
model = new_model()
x, y = np.ones((3200, 100), "f4"), np.ones((3200, 4), "f4")
class Leak(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.kept = []
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.005)  # what fills a gigabyte a second is for the benchmark
        self.kept.append(np.ones(250_000))
"""


@pytest.fixture(scope="module")
def kernel(limited_kernel: Make) -> GuardedKernel:
    shared = limited_kernel(LIMIT_MIB)
    ran = shared.run(SETUP)
    assert ran.error is None, ran
    return shared


def test_a_fit_that_cannot_fit_is_refused_before_its_first_step(kernel: GuardedKernel) -> None:
    ran = kernel.run(
        "wide = keras.Sequential([keras.layers.Input((100,)), keras.layers.Dense(200_000), keras.layers.Dense(1)])\n"
        "wide.compile('sgd', 'mse')\n"
        "wide.fit(x, y[:, :1], batch_size=3200, verbose=0)"
    )
    assert ran.error == STOPPED, ran
    assert "fit() with batch_size=3200 needs at least" in ran.traceback
    assert "%tfguard pause" in ran.traceback
    assert "Model and optimizer are saved" not in ran.traceback
    assert kernel.wait_for_event("memory_stop")[-1]["what"] == "not_started"
    status = kernel.run("%tfguard status").stdout
    assert "was not started: fit() with batch_size=3200 needs at least" in status
    assert "a run was not started: it needs more memory" in status
    # The estimate names the same batch, and it is not larger than the data.
    (named,) = re.findall(
        r"With model\.fit\(\.\.\., batch_size=(\d+)\) it should fit", ran.traceback
    )
    shown = kernel.run("%tfguard estimate wide.fit(x, y[:, :1], batch_size=3200)\nnext_line = 1")
    assert f"The largest batch size that should fit is {named}." in shown.displayed[0], shown
    assert int(named) < 3200
    # Where the data come in batches, the advice is for the pipeline.
    ran = kernel.run(
        "batches = tf.data.Dataset.from_tensor_slices((x, y[:, :1])).batch(3200)\nwide.fit(batches)"
    )
    assert re.search(r"With \.batch\(\d+\) in the pipeline it should fit", ran.traceback), ran


def test_a_training_loop_is_stopped_with_its_step_and_its_model_is_saved(
    kernel: GuardedKernel,
) -> None:
    ran = kernel.run(
        "import tfguard\n"
        "def new_net():\n"
        "    net = keras.Sequential([keras.layers.Input((100,)), keras.layers.Dense(4)])\n"
        "    return net, keras.optimizers.Adam()\n"
        "@tf.function\n"
        "def step():\n"
        "    with tf.GradientTape() as tape:\n"
        "        loss = tf.reduce_mean((net(x[:32]) - y[:32]) ** 2)\n"
        "    optimizer.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))\n"
        "net, optimizer = new_net()\n"
        "tfguard.checkpoint(net, optimizer)\n"
        "losses = []\n"
        "while True:\n"
        "    step()\n"
        "    time.sleep(0.01)\n"
        "    losses.append(np.ones(200_000))"
    )
    assert ran.error == STOPPED, ran
    assert re.search(r"Its training loop had reached step \d", ran.traceback), ran.traceback
    assert re.search(r"losses \(list\)|losses", ran.traceback), ran.traceback
    (path,) = re.findall(
        r'step = tfguard\.resume\(model, "(.+?\.npz)", optimizer=optimizer\)', ran.traceback
    )
    (at,) = re.findall(r"at step (\d+)\)", ran.traceback)
    ran = kernel.run(
        "losses.clear()\n"
        "made, values = int(optimizer.iterations.numpy()), [v.numpy() for v in optimizer.variables]\n"
        "trained, (net, optimizer) = net, new_net()\n"
        f"done = tfguard.resume(net, {path!r}, optimizer=optimizer)\n"
        "same = all(np.array_equal(a, b) for a, b in zip(net.get_weights(), trained.get_weights()))\n"
        "slots = all(np.array_equal(a, b.numpy()) for a, b in zip(values, optimizer.variables))\n"
        "done - made, done, same, slots"
    )
    assert ran.result == f"(0, {at}, True, True)", ran


def test_a_leak_in_a_callback_is_stopped_and_the_model_is_saved(kernel: GuardedKernel) -> None:
    ran = kernel.run("leak = Leak()\nmodel.fit(x, y, verbose=0, epochs=9, callbacks=[leak])")
    assert ran.error == STOPPED, ran
    assert "model.fit(..., epochs=9, initial_epoch=epoch)" in ran.traceback
    (path,) = re.findall(r'tfguard\.resume\(model, "(.+?\.npz)"\)', ran.traceback)
    (epoch,) = re.findall(r"at epoch (\d) of 9", ran.traceback)
    event = kernel.wait_for_event("checkpoint")[-1]
    assert (event["path"], event["by"]) == (path, "tfguard")
    ran = kernel.run(
        "leak.kept.clear()\nimport jupyter_tfguard\nagain = new_model()\n"
        f"epoch = jupyter_tfguard.resume(again, {path!r})\n"
        "same = all(np.array_equal(a, b) for a, b in zip(again.get_weights(), model.get_weights()))\n"
        "history = again.fit(x, y, verbose=0, epochs=9, initial_epoch=epoch)\n"
        "same, epoch, history.epoch[-1]"
    )
    assert ran.error is None, ran
    found = re.fullmatch(r"\(True, (\d), 8\)", ran.result or "")
    assert found, ran
    assert int(found[1]) in (int(epoch) - 1, int(epoch))


def test_a_fit_that_ends_with_a_refused_array_saves_its_model(kernel: GuardedKernel) -> None:
    kernel.run(
        "class Big(keras.callbacks.Callback):\n"
        "    def on_epoch_end(self, epoch, logs=None):\n"
        "        if epoch == 1:\n            self.all = np.ones(1 << 28)\n"
        "def rows():\n"
        "    for n in range(9999):\n"
        "        if n == 40:\n            np.ones(1 << 28)\n"
        "        yield x[:32], y[:32]\n"
    )
    in_callback = "model.fit(x, y, verbose=0, epochs=9, callbacks=[Big()])"
    in_generator = "model.fit(rows(), verbose=0, steps_per_epoch=60)"
    for code, place in (
        (in_callback, "at epoch 2 of 9, step 100)"),
        (in_generator, "at epoch 1 of 1, step 40)"),
    ):
        ran = kernel.run(code)
        assert ran.error in ("MemoryError", "ResourceExhaustedError"), ran
        assert ran.stderr.count("tfguard refused 2.00 GiB") == 1, ran
        assert place in ran.stderr, ran
        (path,) = re.findall(r'tfguard\.resume\(model, "(.+?\.npz)"\)', ran.stderr)
        assert kernel.wait_for_event("checkpoint")[-1]["path"] == path
    # One file at most, and nothing is printed if the cell goes on.
    count = "\nimport glob\nlen(glob.glob('tfguard-stop-*'))"
    before = int(kernel.run(count).result or 0)
    caught = f"for _ in range(3):\n    try:\n        {in_callback}\n    except MemoryError:\n        pass"
    ran = kernel.run(caught + count)
    assert (ran.error, ran.result, ran.stderr) == (None, str(before + 1), ""), ran


def test_nothing_of_the_data_of_a_stopped_run_is_held(kernel: GuardedKernel) -> None:
    kernel.run(
        "import weakref\n"
        "class Kept(list):\n    pass\n"
        "def fill(kept):\n    seen.add(kept)\n    kept.append(np.ones(250_000))\n    time.sleep(0.005)\n"
        "def rows():\n    kept = Kept()\n"
        "    while True:\n        fill(kept)\n        yield x[:32], y[:32]\n"
        "class Rows(keras.utils.PyDataset):\n"
        "    def __init__(self, **how):\n        super().__init__(**how)\n        self.kept = Kept()\n"
        "    def __len__(self):\n        return 10**6\n"
        "    def __getitem__(self, number):\n        fill(self.kept)\n        return x[:32], y[:32]\n"
        "ballast = np.ones(700 << 20, 'u1')\n"
        "Kept.__hash__, seen, mine = object.__hash__, weakref.WeakSet(), rows()\n"
    )
    for code in (
        "model.fit(Rows(workers=2), verbose=0, shuffle=False)",
        "model.fit(x, y, verbose=0, validation_data=rows(), validation_steps=10**6)",
    ):
        ran = kernel.run(code)
        assert ran.error == STOPPED, ran
        # Threads of a PyDataset may need a moment to end.
        freed = "for _ in range(200):\n    if not len(seen): break\n    time.sleep(0.05)\nlen(seen)"
        assert kernel.run(freed).result == "0", code
    # What a variable of the notebook holds stays as it is, and so do functions of TensorFlow that are in use.
    ran = kernel.run(
        "numbers = tf.data.Dataset.from_generator(lambda: iter(range(4)), output_signature=tf.TensorSpec((), 'int64'))\n"
        "model.fit(mine, verbose=0, steps_per_epoch=10**6)"
    )
    assert ran.error == STOPPED, ran
    ran = kernel.run("a, b = next(mine)\nlen(seen), a.shape, [int(one) for one in numbers]")
    assert ran.result == "(1, (32, 100), [0, 1, 2, 3])", ran
    assert kernel.run("del mine, ballast\nlen(seen)").result == "0"


def test_a_shuffle_buffer_is_stopped_while_it_fills(kernel: GuardedKernel) -> None:
    ran = kernel.run(
        "rows = tf.data.Dataset.from_tensors((np.ones(100, 'f4'), np.ones(4, 'f4'))).repeat()\n"
        "def slow(a):\n    time.sleep(0.001)\n    return np.tile(a, 2000)\n"
        "wide = rows.map(lambda a, b: (tf.ensure_shape(tf.numpy_function(slow, [a], 'float32'), [200_000]), b))\n"
        "shuffled = wide.shuffle(10**6).map(lambda a, b: (a[:100], b)).batch(8)\n"
        "model.fit(shuffled, steps_per_epoch=4, verbose=0)"
    )
    assert ran.error == STOPPED, ran
    assert "shuffle(1000000) holds" in ran.traceback
    assert kernel.run("model.fit(x, y, verbose=0).epoch").result == "[0]"


def test_a_loop_over_a_data_set_is_stopped_while_its_shuffle_buffer_fills(
    kernel: GuardedKernel,
) -> None:
    kernel.run(
        "def slow(n):\n    time.sleep(0.001)\n    return np.full(200_000, n, 'float32')\n"
        "def make(n):\n    return tf.ensure_shape(tf.numpy_function(slow, [n], 'float32'), [200_000])\n"
        "wide = tf.data.Dataset.range(10**6).map(make)"
    )
    ran = kernel.run("for batch in wide.shuffle(10**6).batch(8):\n    pass")
    assert ran.error == STOPPED, ran
    ran = kernel.run("[int(row[0]) for row in wide.take(3)]")
    assert ran.result == "[0, 1, 2]", ran


def test_a_fit_in_a_thread_of_an_earlier_cell_is_stopped_while_its_shuffle_buffer_fills(
    kernel: GuardedKernel,
) -> None:
    kernel.run(
        "import threading\n"
        "def slowly(a):\n    return a + tf.reduce_max(tf.sort(a[:10_000]))\n"
        "filled = tf.data.Dataset.range(10**6).map(lambda n: (slowly(tf.random.uniform([200_000])), 0.0))\n"
        "shuffled = filled.shuffle(10**6).map(lambda a, b: (a[:100], tf.fill([4], b))).batch(8)\n"
        "apart = new_model()\n"
        "trainer = threading.Thread(target=lambda: apart.fit(shuffled, verbose=0), name='trainer', daemon=True)\n"
        "trainer.start()"
    )
    ran = kernel.run("while trainer.is_alive(): time.sleep(0.05)\n'goes on'")
    assert (ran.error, ran.result) == (None, "'goes on'"), ran
    assert "tfguard stopped what an earlier cell had left running (trainer)" in ran.stderr
    assert "ThreadStopped" in ran.stderr
    assert kernel.run("apart.fit(x, y, verbose=0).epoch").result == "[0]"


def test_errors_of_a_data_set_are_as_without_the_guard(kernel: GuardedKernel) -> None:
    kernel.run(
        "failing = tf.data.Dataset.range(3).map(lambda n: tf.debugging.check_numerics(1 / (1 - n), 'odd'))\n"
        "def message():\n    try:\n        return str(list(failing))\n"
        "    except tf.errors.InvalidArgumentError as error:\n        return error.message\n"
    )
    with_guard = kernel.run("message()").result
    without = kernel.run("%tfguard pause\nmessage()").result
    kernel.run("%tfguard resume")
    assert without is not None
    assert "odd" in without
    assert with_guard == without


def test_an_eager_loop_is_stopped(kernel: GuardedKernel) -> None:
    ran = kernel.run(
        "weights, kept = tf.Variable(tf.ones((500, 500))), []\n"
        "while True:\n"
        "    time.sleep(0.003)\n"
        "    with tf.GradientTape() as tape:\n        loss = tf.reduce_sum(weights * weights)\n"
        "    kept.append(tape.gradient(loss, weights))"
    )
    assert ran.error == STOPPED, ran
    ran = kernel.run(
        "kept.clear()\nwith tf.GradientTape() as tape:\n    loss = tf.reduce_sum(weights * weights)\n"
        "float(tape.gradient(loss, weights)[0, 0])"
    )
    assert ran.result == "2.0", ran
    # The tensors are free now, and NumPy can use their memory.
    ran = kernel.run("free = np.ones(500 << 20, 'u1')\nfree.nbytes")
    assert ran.result == str(500 << 20), ran
    kernel.run("del free")


def test_a_function_that_fails_cancels_no_other(kernel: GuardedKernel) -> None:
    ran = kernel.run(
        "import threading\n"
        "@tf.function\ndef fails(a):\n    tf.debugging.assert_equal(a, a + 1)\n    return a\n"
        "@tf.function\ndef counts(n):\n    total = 0\n    for i in tf.range(n):\n        total += i % 2\n    return total\n"
        "counts(tf.constant(1))\nfound = []\n"
        "beside = threading.Thread(target=lambda: found.append(int(counts(tf.constant(300_000)))))\n"
        "beside.start()\n"
        "while beside.is_alive():\n"
        "    try:\n        fails(tf.constant(1))\n"
        "    except tf.errors.InvalidArgumentError:\n        pass\n"
        "int(counts(tf.constant(10))), found"
    )
    assert (ran.error, ran.result) == (None, "(5, [150000])"), ran


def test_a_predict_whose_outputs_cannot_fit_is_refused(kernel: GuardedKernel) -> None:
    wide = "wide = keras.Sequential([keras.Input((8,)), keras.layers.RepeatVector(65536)])\n"
    ran = kernel.run(wide + "wide.predict(np.zeros((1000, 8), 'f4'))")
    assert ran.error == STOPPED, ran
    assert (
        "predict() keeps all its outputs: 1,000 rows × 65536×8 float32 = 1.95 GiB" in ran.traceback
    )
    assert "rows and write each to a file" in ran.traceback
    ran = kernel.run("wide.predict(np.zeros((20, 8), 'f4'), verbose=0).shape")
    assert ran.result == "(20, 65536, 8)"


def test_a_weight_that_cannot_fit_is_refused_when_it_is_asked_for(kernel: GuardedKernel) -> None:
    ran = kernel.run(
        "wide = keras.Sequential([keras.layers.Input((15000,)), keras.layers.Dense(15000, name='wide')])"
    )
    assert ran.error == STOPPED, ran
    assert "refused the weight kernel of layer wide (Dense)" in ran.traceback
    assert "(15000, 15000) of float32 is 858 MiB" in ran.traceback
    ran = kernel.run(
        "keras.Sequential([keras.layers.Input((3000,)), keras.layers.Dense(3000)]).count_params()"
    )
    assert ran.result == "9003000", ran


def test_a_fit_is_refused_after_a_tensor_that_was_never_written(kernel: GuardedKernel) -> None:
    # It makes TensorFlow's peak as large as itself, but takes no memory.
    ran = kernel.run(
        "vast = tf.raw_ops.Empty(shape=[6 << 28], dtype=tf.float32)\n"
        "size = vast.shape[0]\n"
        "del vast\n"
        "wide = keras.Sequential([keras.layers.Input((100,)), keras.layers.Dense(200_000), keras.layers.Dense(1)])\n"
        "wide.compile('sgd', 'mse')\n"
        "size, tf.config.experimental.get_memory_info('CPU:0')['peak'] >> 30"
    )
    assert ran.result == f"({6 << 28}, 6)", ran
    ran = kernel.run("wide.fit(x, y[:, :1], batch_size=3200, verbose=0)")
    assert ran.error == STOPPED, ran
    assert "fit() with batch_size=3200 needs at least" in ran.traceback


def test_one_long_text_is_named_when_an_array_of_texts_fills_the_memory(
    kernel: GuardedKernel,
) -> None:
    kernel.run("rows = ['a short text'] * 150_000 + ['word ' * 700]")
    ran = kernel.run("texts = np.array(rows)")
    assert ran.error == STOPPED, ran
    assert "each of its 150,001 texts as wide as the longest, which has 3,500 char" in ran.traceback
    ran = kernel.run("np.array([row[:60] for row in rows]).shape")
    assert ran.result == "(150001,)", ran


def test_without_a_fault_of_ours(kernel: GuardedKernel) -> None:
    assert kernel.problems() == ""
