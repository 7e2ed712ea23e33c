"""The state of memory growth, held against what TensorFlow itself would start its GPUs with."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.training.pretended_gpus import PretendedGpus

VARIABLE = "TF_FORCE_GPU_ALLOW_GROWTH"
ASYNC = "TF_GPU_ALLOCATOR='cuda_malloc_async'"
OFF = "wanted=False"
LONGEST_TEXT = 300  # the wire cuts it there


@pytest.fixture(scope="module")
def tensorflow() -> Iterator[PretendedGpus]:
    child = PretendedGpus()
    yield child
    child.close()


def state(tensorflow: PretendedGpus, begin: str, *calls: str) -> tuple[str, str]:
    code = "\n".join([f"guard = begin({begin})", *calls, "out = told(guard)"])
    found, text = tensorflow.ask(code)
    assert len(text) <= LONGEST_TEXT, text
    return found, text


def test_in_every_combination_the_state_is_what_tensorflow_would_do(
    tensorflow: PretendedGpus,
) -> None:
    """Variable, calls per GPU and logical devices in all combinations.

    What TensorFlow's Python would hand to its native part is asked from it. The native part lets the variable win, if it
    says "true" or "false"; that much is taken from its source.
    """
    seen: dict[str, int] = {}
    for variable, first, second, logical in itertools.product(
        (None, "true", "false", "1"),
        (None, True, False),
        (None, True, False),
        ("", "split_cpu()", "split(b, 1024)", "split(a, 1024, 1024); split(b, 2048)"),
    ):
        begin = f"begin({OFF}{'' if variable is None else f', {VARIABLE}={variable!r}'})"
        calls = [f"grow({gpu}, {v})" for gpu, v in (("a", first), ("b", second)) if v is not None]
        code = (
            f"guard = {begin}; a, b = gpus()\n" + "\n".join([*calls, logical]) + "\n"
            "found = told(guard)\n"
            "try: out = [found, options()]\n"
            "except ValueError as refused: out = [found, str(refused)]"
        )
        (found, text), would = tensorflow.ask(code)
        case = (variable, first, second, logical, found, text)
        assert len(text) <= LONGEST_TEXT, case
        seen[found] = seen.get(found, 0) + 1
        if isinstance(would, str):
            assert would == "Memory growth cannot differ between GPU devices", case
            assert found == "mixed", case
            continue
        grows = {"true": True, "false": False}.get(variable or "", would["growth"])
        if any(would["limits"]):
            assert found == "capped", case
            assert ("memory growth on up to there" in text) == grows, case
        elif grows:
            assert found == "on", case
        else:
            assert found in ("off_by_user", "not_in_force"), case
        if found == "not_in_force":
            assert first or second, case
            assert logical == "split_cpu()", case
        if found == "on" and variable == "true":
            contrary = {first, second} - {None} == {False}
            assert ("wins over your set_memory_growth(False)" in text) == contrary, case
    assert set(seen) == {"on", "off_by_user", "mixed", "capped", "not_in_force"}


class TestMixed:
    def test_it_is_said_before_tensorflow_refuses(self, tensorflow: PretendedGpus) -> None:
        found, text = state(tensorflow, "", "grow(gpus()[0], True)")
        assert found == "mixed"
        assert "TensorFlow will not start" in text
        assert "(GPU:0 True, GPU:1 not set)" in text
        assert "call set_memory_growth(gpu, True) for every GPU" in text
        with pytest.raises(RuntimeError, match="Memory growth cannot differ"):
            tensorflow.ask("start()")

    def test_the_fix_that_is_told_mends_it(self, tensorflow: PretendedGpus) -> None:
        every = "for gpu in gpus(): grow(gpu, True)"
        assert state(tensorflow, "", "grow(gpus()[0], True)", every)[0] == "on"
        assert state(tensorflow, OFF, "grow(gpus()[0], True)", every, "start()")[0] == "on"

    def test_a_gpu_that_is_not_visible_does_not_count(self, tensorflow: PretendedGpus) -> None:
        hide = "tf.config.set_visible_devices(gpus()[:1], 'GPU')"
        assert state(tensorflow, OFF, "grow(gpus()[0], True)", hide)[0] == "on"
        assert tensorflow.ask("out = options()")["growth"] is True


class TestAnotherAllocator:
    def test_it_is_told_with_what_it_means_and_needs(self, tensorflow: PretendedGpus) -> None:
        found, text = state(tensorflow, ASYNC)
        assert found == "async"
        assert "memory growth has no effect on it" in text
        assert "compute capability 6.0" in text
        assert "TensorFlow aborts" in text

    def test_once_it_runs_the_warning_is_gone(self, tensorflow: PretendedGpus) -> None:
        found, text = state(tensorflow, ASYNC, "gpus(); start()")
        assert found == "async"
        assert "aborts" not in text

    def test_it_does_not_keep_to_a_cap(self, tensorflow: PretendedGpus) -> None:
        found, text = state(tensorflow, ASYNC, "for gpu in gpus(): split(gpu, 1024)")
        assert found == "async"
        assert "does not keep to a cap" in text

    def test_settings_that_differ_stop_tensorflow_all_the_same(
        self, tensorflow: PretendedGpus
    ) -> None:
        assert state(tensorflow, ASYNC, "grow(gpus()[0], True)")[0] == "mixed"

    def test_one_for_debugging_is_told_as_such(self, tensorflow: PretendedGpus) -> None:
        found, text = state(tensorflow, "TF_GPU_ALLOCATOR='cuda_malloc'")
        assert (found, "for debugging" in text) == ("async", True)

    @pytest.mark.parametrize("value", ["memory_guard", "something", ""])
    def test_any_other_value_leaves_growth_in_force(
        self, tensorflow: PretendedGpus, value: str
    ) -> None:
        assert state(tensorflow, f"TF_GPU_ALLOCATOR={value!r}")[0] == "on"


class TestLogicalDevices:
    def test_each_gpu_is_told_with_its_cap(self, tensorflow: PretendedGpus) -> None:
        found, text = state(tensorflow, OFF, "split(gpus()[0], 4096, 1024)")
        assert found == "capped"
        assert "(GPU:0 at 5.00 GiB, GPU:1 not)" in text
        assert f"{VARIABLE}=true turns it on" in text
        assert tensorflow.ask("out = options()")["growth"] is False

    def test_those_of_the_processor_drop_what_was_asked_of_the_gpus(
        self, tensorflow: PretendedGpus
    ) -> None:
        grow = "for gpu in gpus(): grow(gpu, True)"
        found, text = state(tensorflow, OFF, grow, "split_cpu()")
        assert found == "not_in_force"
        assert "drops your set_memory_growth(True)" in text
        assert tensorflow.ask("out = options()")["growth"] is False
        assert (
            state(tensorflow, "", grow, "split_cpu()")[0] == "on"
        )  # the variable does not ask them


class TestNoGpu:
    def test_tensorflow_that_found_none_says_so(self, tensorflow: PretendedGpus) -> None:
        assert state(tensorflow, "gpus=0", "gpus()") == (
            "no_gpu",
            "TensorFlow found no GPU, though this machine has one",
        )

    def test_all_made_invisible_is_the_users_will(self, tensorflow: PretendedGpus) -> None:
        found, text = state(tensorflow, "", "tf.config.set_visible_devices([], 'GPU')")
        assert found == "no_gpu"
        assert "set_visible_devices" in text


def test_a_contrary_call_is_told_with_the_way_out(tensorflow: PretendedGpus) -> None:
    found, text = state(tensorflow, "", "for gpu in gpus(): grow(gpu, False)", "start()")
    assert found == "on"
    assert "tfguard's variable wins over your set_memory_growth(False)" in text
    assert "TfGuard.set_memory_growth = False switches it off" in text
    found, text = state(tensorflow, f"{VARIABLE}='true'", "for gpu in gpus(): grow(gpu, False)")
    assert "tfguard" not in text  # the variable is the user's own


def test_a_call_of_the_users_counts_where_the_guard_came_late(tensorflow: PretendedGpus) -> None:
    code = (
        "begin(wanted=False)\nfor gpu in gpus(): grow(gpu, {value})\nstart()\n"
        "late = growth.GrowthSetting({{}}, wanted=True); late.set(); out = told(late)"
    )
    assert tensorflow.ask(code.format(value=True)) == ["on", "memory growth on, by your own call"]
    assert tensorflow.ask(code.format(value=False))[0] == "too_late"


def test_asking_for_the_state_calls_nothing_of_tensorflow(tensorflow: PretendedGpus) -> None:
    assert tensorflow.ask("guard = begin(); told(guard); out = CALLS") == []
    assert tensorflow.ask(
        "guard = begin(); told(guard); out = [contexts._context._physical_devices, contexts._context._context_handle]"
    ) == [None, None]


def test_gpus_that_tensorflow_found_are_there_whatever_device_files_say(
    tensorflow: PretendedGpus,
) -> None:
    absent, present = (
        "growth.gpu_present = lambda root='/': False",
        "growth.gpu_present = lambda root='/': True",
    )
    try:
        assert state(tensorflow, "", absent)[0] == "no_gpu"
        assert state(tensorflow, "", absent, "gpus()")[0] == "on"
    finally:
        tensorflow.ask(f"{present}; out = None")
