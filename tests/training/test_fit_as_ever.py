"""A fit that is followed works as ever: callbacks, errors, signatures, memory; and no failure of ours is the user's."""

from __future__ import annotations

import pytest

from tests.kernel.rig import GuardedKernel
from tests.training.fit_rig import Fitted


@pytest.mark.parametrize(
    ("callbacks", "batches"),
    [
        ("None", 0),
        ("[mine]", 12),
        ("(mine,)", 12),
        ("mine", 12),
        ("[]", 0),
    ],
)
def test_callbacks_in_every_form_work_as_ever(
    keras_kernel: GuardedKernel, callbacks: str, batches: int
) -> None:
    fit = Fitted(
        keras_kernel,
        f"mine = Counts(); given = {callbacks}\n"
        "h = model.fit(x, y, batch_size=16, epochs=2, verbose=0, callbacks=given)\n"
        "inner = getattr(given, 'callbacks', given)\n"
        "names = [type(c).__name__ for c in inner] if isinstance(inner, (list, tuple)) else []\n"
        "print(mine.batches, type(h).__name__, [n for n in names if 'TfGuard' in n])",
    )
    assert fit.ran.stdout == f"{batches} History []\n"
    assert len(fit.all("epoch_end")) == 2
    assert (fit.progress["epoch"], fit.progress["step"]) == (2, 6)


def test_callbacks_given_by_position(keras_kernel: GuardedKernel) -> None:
    fit = Fitted(
        keras_kernel,
        "mine = Counts(); model.fit(x, y, 16, 2, 0, [mine], validation_split=0.5); print(mine.epochs, mine.batches)",
    )
    assert fit.ran.stdout == "2 6\n"
    assert [e["epoch"] for e in fit.all("epoch_end")] == [1, 2]
    assert fit.one("fit_start")["batch_size"] == 16


def test_an_exception_of_the_users_passes_unchanged(keras_kernel: GuardedKernel) -> None:
    code = """
class Mine(Exception): pass
class Fails(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 2: raise error
error = Mine("my own")
try:
    model.fit(x, y, batch_size=16, verbose=0, callbacks=[Fails()])
except Exception as caught:
    print(caught is error, caught.args, caught.__cause__, caught.__context__)
"""
    fit = Fitted(keras_kernel, code)
    assert fit.ran.stdout == "True ('my own',) None None\n"
    end = fit.one("fit_end")
    assert (end["ok"], end["error"]) == (False, "Mine")
    assert fit.progress["step"] == 3
    # The next one is recorded again.
    assert len(Fitted(keras_kernel, "model.fit(x, y, verbose=0);").all("fit_start")) == 1


def test_an_interrupt_passes(keras_kernel: GuardedKernel) -> None:
    code = """
class Interrupts(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None): raise KeyboardInterrupt
model.fit(x, y, verbose=0, callbacks=[Interrupts()])
"""
    fit = Fitted(keras_kernel, code)
    assert fit.ran.error == "KeyboardInterrupt"
    assert fit.one("fit_end")["error"] == "KeyboardInterrupt"


def test_wrong_arguments_are_answered_by_keras(keras_kernel: GuardedKernel) -> None:
    fit = Fitted(keras_kernel, "model.fit(x, y, epoch=3)")
    assert fit.ran.error == "TypeError"
    assert "unexpected keyword argument 'epoch'" in fit.ran.traceback
    assert fit.all("fit_start") == []
    fit = Fitted(keras_kernel, "model.fit(x, y[:3], verbose=0)")
    assert fit.ran.error == "ValueError"
    assert fit.one("fit_end")["error"] == "ValueError"


def test_a_traceback_has_no_line_of_ours(keras_kernel: GuardedKernel) -> None:
    ran = keras_kernel.run("model.fit(x, y[:3], verbose=0)")
    assert "ValueError" in ran.traceback
    assert "attach.py" not in ran.traceback
    assert "skipping hidden" not in ran.traceback


def test_methods_stay_what_they_were(keras_kernel: GuardedKernel) -> None:
    ran = keras_kernel.run(
        "import inspect, pickle\n"
        "from keras.src.utils.traceback_utils import filter_traceback\n"
        "for name in ('fit', 'evaluate', 'predict'):\n"
        "    method = getattr(keras.Model, name)\n"
        "    print(method.__code__ is filter_traceback(len).__code__, inspect.getsource(method).count('def ' + name),\n"
        "          'callbacks' in inspect.signature(method).parameters, pickle.loads(pickle.dumps(method)) is method,\n"
        "          pickle.loads(pickle.dumps(getattr(model, name))).__func__ is method)"
    )
    assert ran.stdout.splitlines() == ["True 1 True True True"] * 3


def test_data_is_not_kept_alive_after_the_fit(keras_kernel: GuardedKernel) -> None:
    ran = keras_kernel.run(
        "import gc, sys, weakref\n"
        "short = make(); data = np.ones((64, 10), 'float32'); targets = np.ones((64, 1))\n"
        "short.fit(data, targets, verbose=0)\n"
        "gone = weakref.ref(short); del short; keras.utils.clear_session(); gc.collect()\n"
        "print(sys.getrefcount(data), gone() is None)"
    )
    assert ran.stdout == "2 True\n"


def test_a_failure_of_ours_leaves_the_fit_alone(keras_kernel: GuardedKernel) -> None:
    broken = """
from jupyter_tfguard.training.watch import FitWatch
def fail(*_): raise RuntimeError("ours, not yours")
kept = {name: getattr(FitWatch, name) for name in ("begins", "poll", "epoch_ends", "ends")}
for name in kept: setattr(FitWatch, name, fail)
h = model.fit(x, y, epochs=2, verbose=0); print(len(h.history["loss"]))
FitWatch.__init__ = (lambda old: (lambda self, *a: fail()))(FitWatch.__init__)
h = model.fit(x, y, epochs=3, verbose=0); print(len(h.history["loss"]))
"""
    ran = keras_kernel.run(broken, timeout=120)
    assert ran.text == "2\n3\n"
    problems = keras_kernel.problems()
    assert "ours, not yours" in problems
    assert len(problems.splitlines()) < 6  # each once, not at each step


def test_unloading_gives_the_methods_back(keras_kernel: GuardedKernel) -> None:
    ran = keras_kernel.run(
        "%unload_ext tfguard\n"
        "from keras.src.utils import traceback_utils\n"
        "methods = [getattr(keras.Model, n) for n in ('fit', 'evaluate', 'predict')]\n"
        "print([m.__closure__[0].cell_contents is m.__wrapped__ for m in methods])\n"
        "print([p for p in traceback_utils._EXCLUDED_PATHS if 'tfguard' in p])\n"
        "h = model.fit(x, y, verbose=0); print(len(h.history['loss']))"
    )
    assert ran.stdout == "[True, True, True]\n[]\n1\n"
