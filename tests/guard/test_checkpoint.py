"""The checkpoint of a stopped fit: what is in it, that it is restored to the last bit, and what it costs."""

from __future__ import annotations

import os
import stat
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_tfguard.guard import checkpoint
from jupyter_tfguard.guard.checkpoint import CheckpointNotSaved, Position, Saved
from jupyter_tfguard.training.progress import FitProgress
from tests.kernel.rig import GuardedKernel, guarded_kernel, works

SETUP = """
import os, pathlib
import keras, numpy as np
import tfguard
from keras import layers
from jupyter_tfguard.guard.checkpoint import CheckpointNotSaved, Position, save
from jupyter_tfguard.guard.model_state import ModelNotSupported, ModelState, host_array
from jupyter_tfguard.guard.resume import CheckpointUnusable
folder = pathlib.Path("saved")
folder.mkdir()
x, y = np.random.rand(32, 8).astype("float32"), np.random.rand(32, 1).astype("float32")

class OwnModel(keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.last = layers.Dense(8, activation="relu"), layers.Dense(1)
    def call(self, x):
        return self.last(self.first(x))

def dense(*names):
    return keras.Sequential([keras.Input((8,)), layers.Dense(8), layers.Dense(1)])

def shared(policy="float32"):
    given, same = keras.Input((8,)), layers.Dense(8)
    h = layers.BatchNormalization()(same(same(given)))
    return keras.Model(given, layers.Dense(1, dtype="float32")(layers.Dropout(0.5)(h)))

def own():
    model = OwnModel()
    model(x)
    return model

def content(model):
    return [(name, host_array(one).tobytes()) for name, one in ModelState.of(model).named()]

def trained(make, optimizer, policy="float32", fits=True):
    keras.mixed_precision.set_global_policy(policy)
    model = make()
    if optimizer is not None:
        model.compile(optimizer, "mse")
    if fits:
        model.fit(x, y, verbose=0)
    return model

def refused(kind, call, *words):
    try:
        call()
    except kind as error:
        assert all(word in str(error) for word in words), str(error)
    else:
        raise AssertionError("not refused")
"""


@pytest.fixture(scope="module")
def keras_kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKernel]:
    """A kernel with Keras and the functions above."""
    with guarded_kernel(tmp_path_factory.mktemp("checkpoint"), startup_file=False) as kernel:
        works(kernel, SETUP)
        yield kernel


@pytest.mark.parametrize(
    "how",
    [
        "dense, 'adam'",
        "shared, 'rmsprop'",
        "own, 'adamw'",
        "shared, 'adam', 'mixed_float16'",  # with a LossScaleOptimizer
        "shared, 'sgd', 'bfloat16'",
        "dense, 'adam', 'float32', False",  # the optimizer has no slots yet
        "dense, None, 'float32', False",
    ],
)
def test_everything_is_restored_to_the_last_bit(keras_kernel: GuardedKernel, how: str) -> None:
    works(
        keras_kernel,
        f"""
        old, new = trained({how}), trained({how})
        before = content(old)
        file = save(old, Position(epoch=3, epochs=9), folder)
        assert content(old) == before != content(new)
        assert tfguard.resume(new, file.path) == 2
        assert content(new) == before
        """,
    )


def test_the_restored_training_goes_on_like_the_one_that_was_not_stopped(
    keras_kernel: GuardedKernel,
) -> None:
    works(
        keras_kernel,
        """
        old, new = trained(shared, "adam"), trained(shared, "adam", fits=False)
        tfguard.resume(new, str(save(old, Position(epoch=1), folder).path))
        one, other = (m.fit(x, y, epochs=3, shuffle=False, verbose=0).history["loss"] for m in (old, new))
        np.testing.assert_allclose(one, other, rtol=1e-5)  # dropout included
        assert int(old.optimizer.iterations) == int(new.optimizer.iterations) > 1
        """,
    )


def test_numpy_alone_loads_the_weights(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        old, new = trained(dense, "adam"), trained(dense, "adam")
        with np.load(save(old, Position(), folder).path) as file:
            new.set_weights([file[name] for name in file.files if name.startswith("weights/")])
        assert all(map(np.array_equal, old.get_weights(), new.get_weights()))
        """,
    )


def test_a_save_needs_hardly_any_memory(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        def status(name):
            lines = pathlib.Path("/proc/self/status").read_text().splitlines()
            return next(int(line.split()[1]) for line in lines if line.startswith(name + ":")) << 10
        big = keras.Sequential([keras.Input((2048,)), layers.Dense(4096), layers.Dense(2048)])
        big.compile("adam", "mse")
        big.optimizer.build(big.trainable_variables)
        largest = 2048 * 4096 * 4
        before = status("RssAnon")
        pathlib.Path("/proc/self/clear_refs").write_text("5")
        file = save(big, Position(), folder)
        extra = status("VmHWM") - status("RssFile") - status("RssShmem") - before
        assert file.size_bytes > 5 * largest and extra <= 2 * largest + (16 << 20), extra
        """,
    )


def test_models_that_cannot_be_saved_are_named(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        pair = dense()
        pair.compile("adam", "mse")
        pair.second = keras.optimizers.SGD()
        refused(CheckpointNotSaved, lambda: save(pair, Position(), folder), "2 optimizers", "SGD")
        refused(CheckpointNotSaved, lambda: save(OwnModel(), Position(), folder), "no weights yet")
        few = lambda: 1 << 20
        full = lambda: save(dense(), Position(), folder, available_bytes=few)
        refused(CheckpointNotSaved, full, "1 MiB of memory")
        """,
    )


def test_a_file_that_does_not_belong_here_changes_nothing(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        saved = save(trained(dense, "adam"), Position(), folder).path
        other = keras.Sequential([keras.Input((8,)), layers.Dense(9), layers.Dense(1)])
        other.compile("adam", "mse")
        longer = keras.Sequential([dense(), layers.Dense(1)])
        longer.compile("adam", "mse")
        damaged = folder / "damaged.npz"
        data = bytearray(saved.read_bytes())
        data[len(data) // 2] ^= 255
        damaged.write_bytes(data)
        text = folder / "text.npz"
        text.write_text("no archive")
        np.savez(folder / "plain.npz", x=x)
        for model, path, words in [
            (other, saved, ["(8, 8) in the file", "(8, 9) in the model"]),
            (longer, saved, ["has 4 variables of weights", "has 6"]),
            (trained(dense, "sgd"), saved, ["state of Adam", "SGD"]),
            (trained(dense, "adam"), damaged, ["damaged"]),
            (trained(dense, "adam"), text, ["damaged"]),
            (trained(dense, "adam"), folder / "plain.npz", ["not a checkpoint"]),
        ]:
            before = model.get_weights()
            refused(CheckpointUnusable, lambda: tfguard.resume(model, path), *words)
            assert all(map(np.array_equal, before, model.get_weights()))
        refused(ModelNotSupported, lambda: tfguard.resume(OwnModel(), saved), "no weights yet")
        """,
    )


def test_the_file_is_private_and_replaces_no_other(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        import time
        from jupyter_tfguard.guard import checkpoint
        place, model = folder / "place", dense()
        place.mkdir()
        now, checkpoint.time.strftime = time.strftime, lambda *_: "now"
        old = os.umask(0o277)
        try:
            files = [save(model, Position(), place) for _ in range(2)]
        finally:
            os.umask(old)
            checkpoint.time.strftime = now
        names = [file.path.name for file in files]
        assert names[1] == names[0].replace(".npz", "-2.npz") and sorted(os.listdir(place)) == sorted(names)
        assert {file.path.stat().st_mode & 0o777 for file in files} == {0o600}
        """,
    )


@pytest.mark.parametrize(
    ("has_unnamed", "has_links"), [(True, True), (False, True), (False, False)]
)
def test_what_fails_leaves_no_file(
    keras_kernel: GuardedKernel, has_unnamed: bool, has_links: bool
) -> None:
    works(
        keras_kernel,
        f"""
        from jupyter_tfguard.guard import new_file
        place = folder / "failed{has_unnamed}{has_links}"
        place.mkdir()
        unnamed, link = new_file._unnamed, os.link
        def no_link(*_, **__):
            raise PermissionError(1, "no hard links here")
        if not {has_links}:
            os.link = no_link
        if not {has_unnamed}:
            new_file._unnamed = lambda folder: None
        big = keras.Sequential([keras.Input((2048,)), layers.Dense(4096)])
        try:
            refused(CheckpointNotSaved, lambda: save(big, Position(), place, limit_seconds=0.0), "too slow")
            assert os.listdir(place) == []
            saved = save(big, Position(), place)
            assert os.listdir(place) == [saved.path.name] and saved.path.stat().st_mode & 0o777 == 0o600
            tfguard.resume(big, saved.path)
        finally:
            new_file._unnamed, os.link = unnamed, link
        """,
    )


def test_a_full_disk_is_noticed_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = os.statvfs(tmp_path)
    small = types.SimpleNamespace(f_bavail=1000, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda folder: small)
    kept = types.SimpleNamespace(shape=(1 << 20,), dtype="float32", assign=None)
    model = types.SimpleNamespace(built=True, variables=[kept], optimizer=None)
    with pytest.raises(CheckpointNotSaved, match=r"has 4 MiB free; the checkpoint needs 4 MiB"):
        checkpoint.save(model, Position(), tmp_path)
    assert free.f_bavail > 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.quick
def test_a_folder_that_is_not_there_is_a_reason(tmp_path: Path) -> None:
    model = types.SimpleNamespace(built=True, variables=[], optimizer=None)
    with pytest.raises(CheckpointNotSaved, match="No such file"):
        checkpoint.save(model, Position(), tmp_path / "no")


@pytest.mark.quick
def test_errors_of_tensorflow_are_a_reason_too(tmp_path: Path) -> None:
    class Variable:
        """One that cannot be read."""

        shape, dtype = (3,), "float32"

        @property
        def value(self) -> None:
            raise RuntimeError("device lost")

    model = types.SimpleNamespace(built=True, variables=[Variable()], optimizer=None)
    with pytest.raises(CheckpointNotSaved, match="RuntimeError: device lost"):
        checkpoint.save(model, Position(), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.quick
@pytest.mark.parametrize(
    ("epoch", "finished", "steps", "initial"),
    [
        (None, None, None, 0),
        (1, 3, 10, 0),
        (4, 3, 10, 3),
        (4, 10, 10, 4),
        (4, 16, 10, 4),  # with steps_per_execution=8
        (4, 10, None, 3),
    ],
)
def test_the_epoch_that_was_not_complete_is_made_again(
    epoch: int | None, finished: int | None, steps: int | None, initial: int
) -> None:
    progress = FitProgress(1, "fit", epochs=20, steps=steps, batch_size=8)
    progress.epoch, progress.finished_step = epoch, finished
    position = Position.of(progress)
    assert not position.is_loop
    assert position.resume_at == initial
    assert (position.epochs, position.batch_size, position.step) == (
        20,
        8,
        min(finished or 0, steps or 99),
    )


@pytest.mark.quick
def test_the_text_has_lines_to_paste(tmp_path: Path) -> None:
    text = Saved(tmp_path / "a.npz", 5 << 20, 0.1, Position(2, 7, 10, 30, 64)).text()
    assert "5 MiB, at epoch 2 of 30, step 7" in text
    assert f'epoch = tfguard.resume(model, "{tmp_path / "a.npz"}")' in text
    assert "epochs=30, initial_epoch=epoch" in text


@pytest.mark.quick
def test_modes_are_checked_on_files(tmp_path: Path) -> None:
    model = types.SimpleNamespace(built=True, variables=[], optimizer=None, name="../a b")
    saved = checkpoint.save(model, Position(), tmp_path)
    assert saved.path.parent == tmp_path
    assert saved.path.name.startswith("tfguard-stop-..-a-b-")
    assert stat.S_IMODE(saved.path.stat().st_mode) == 0o600
