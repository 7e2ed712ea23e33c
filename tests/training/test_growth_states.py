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
    """Variable, equal calls for both GPUs and logical devices in all combinations.

    What TensorFlow's Python would hand to its native part is asked from it. The native part lets the variable win, if it
    says "true" or "false"; that much is taken from its source.
    """
    seen: dict[str, int] = {}
    for variable, asked, logical in itertools.product(
        (None, "true", "false", "1"),
        (None, True, False),
        ("", "split(b, 1024)", "split(a, 1024, 1024); split(b, 2048)"),
    ):
        begin = f"begin({OFF}{'' if variable is None else f', {VARIABLE}={variable!r}'})"
        calls = [] if asked is None else [f"grow(a, {asked}); grow(b, {asked})"]
        code = f"guard = {begin}; a, b = gpus()\n" + "\n".join([*calls, logical]) + "\n"
        (found, text), would = tensorflow.ask(code + "out = [told(guard), options()]")
        case = (variable, asked, logical, found, text)
        assert len(text) <= LONGEST_TEXT, case
        seen[found] = seen.get(found, 0) + 1
        grows = {"true": True, "false": False}.get(variable or "", would["growth"])
        if any(would["limits"]):
            assert found == "capped", case
            assert ("memory growth on up to that limit" in text) == grows, case
        else:
            assert found == ("on" if grows else "off_by_user"), case
        if found == "on" and variable == "true":
            assert ("overrides your set_memory_growth(False)" in text) == (asked is False), case
    assert set(seen) == {"on", "off_by_user", "capped"}


class TestAnotherAllocator:
    def test_it_is_reported_with_what_it_means_and_needs(self, tensorflow: PretendedGpus) -> None:
        found, text = state(tensorflow, ASYNC)
        assert found == "async"
        assert "memory growth has no effect on it" in text
        assert "compute capability 6.0" in text
        assert "TensorFlow aborts" in text

    def test_once_it_runs_the_warning_is_gone(self, tensorflow: PretendedGpus) -> None:
        found, text = state(tensorflow, ASYNC, "gpus(); start()")
        assert found == "async"
        assert "aborts" not in text

    def test_any_other_value_leaves_growth_in_force(self, tensorflow: PretendedGpus) -> None:
        assert state(tensorflow, "TF_GPU_ALLOCATOR='something'")[0] == "on"


class TestNoGpu:
    def test_tensorflow_that_found_none_says_so(self, tensorflow: PretendedGpus) -> None:
        assert state(tensorflow, "gpus=0", "gpus()") == (
            "no_gpu",
            "TensorFlow uses no GPU, though this machine has one",
        )


def test_a_contrary_call_is_reported_with_the_way_out(tensorflow: PretendedGpus) -> None:
    found, text = state(tensorflow, "", "for gpu in gpus(): grow(gpu, False)", "start()")
    assert found == "on"
    assert "tfguard's variable overrides your set_memory_growth(False)" in text
    assert "set TfGuard.set_memory_growth = False to turn it off" in text
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
