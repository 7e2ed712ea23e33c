"""The doctor before environments with settings that do not do what they say, of GPU memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_tfguard import growth_texts as words
from jupyter_tfguard.doctor.check import Status
from jupyter_tfguard.doctor.checks import memory_growth, memory_stop
from jupyter_tfguard.guard import native
from tests.conftest import private_jupyter, write_options
from tests.rigs.made_machine import MadeMachine

pytestmark = pytest.mark.quick


@pytest.fixture
def made(tmp_path: Path) -> Iterator[MadeMachine]:
    """A machine with TensorFlow, in which nothing is set."""
    with private_jupyter(tmp_path / "jupyter"):
        found = MadeMachine(tmp_path)
        found.tensorflow("2.21.0")
        yield found


def of_growth(made: MadeMachine) -> list[tuple[Status, str, str | None]]:
    found = memory_growth.check(made.environment())
    assert found is not None
    return [(result.status, result.text, result.fix) for result in found]


def test_nothing_set_is_what_the_guard_is_for(made: MadeMachine) -> None:
    assert [status for status, _, _ in of_growth(made)] == [Status.OK]


def test_a_value_that_the_guard_set_is_not_taken_for_the_users(made: MadeMachine) -> None:
    made.environ |= {"TF_FORCE_GPU_ALLOW_GROWTH": "true", "TFGUARD_SET_GROWTH": "1"}
    ((status, text, _),) = of_growth(made)
    assert status is Status.OK
    assert "set by you" not in text


@pytest.mark.parametrize(
    ("value", "status", "word"),
    [
        ("true", Status.OK, "set by you"),
        ("false", Status.WARNING, "takes precedence"),
        ("1", Status.WARNING, "use true or false"),
        ("True", Status.WARNING, "use true or false"),
    ],
)
def test_growth_by_the_users_own_hand(
    made: MadeMachine, value: str, status: Status, word: str
) -> None:
    made.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = value
    ((found, text, fix),) = of_growth(made)
    assert (found, word in text) == (status, True), text
    assert fix == (None if status is Status.OK else "unset TF_FORCE_GPU_ALLOW_GROWTH")


def test_a_value_in_a_kernel_is_reported_with_the_kernel(made: MadeMachine, tmp_path: Path) -> None:
    folder = tmp_path / "jupyter/data/kernels/greedy"
    folder.mkdir(parents=True)
    spec = {"argv": ["python"], "display_name": "x", "language": "python"}
    (folder / "kernel.json").write_text(
        json.dumps({**spec, "env": {"TF_FORCE_GPU_ALLOW_GROWTH": "false"}})
    )
    of_guard, of_kernel = of_growth(made)
    assert of_guard[0] is Status.OK
    assert of_kernel[0] is Status.WARNING
    assert "set for kernel greedy" in of_kernel[1]
    assert str(folder / "kernel.json") in str(of_kernel[2])


@pytest.mark.parametrize(
    ("value", "word"), [("async", "ignored"), ("cuda_malloc", "slow"), ("cuda_malloc_async", None)]
)
def test_an_allocator_that_does_not_do_what_it_says(
    made: MadeMachine, value: str, word: str | None
) -> None:
    made.environ["TF_GPU_ALLOCATOR"] = value
    found = of_growth(made)[1:]
    assert [(status, fix) for status, _, fix in found] == (
        [(Status.WARNING, "unset TF_GPU_ALLOCATOR")] if word else []
    )
    assert not found or str(word) in found[0][1]


def test_a_cap_that_the_allocator_does_not_keep_to(
    made: MadeMachine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "config").mkdir()
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "config"))
    (tmp_path / "config" / "jupyter_tfguard_config.json").write_text(
        '{"TfGuard": {"gpu_memory_limit_mib": 8192}}'
    )
    made.environ["TF_GPU_ALLOCATOR"] = "cuda_malloc_async"
    found, text, fix = of_growth(made)[1]
    assert found is Status.WARNING
    assert text.startswith(words.capped(8192 * 2**20))
    assert text.endswith(words.ASYNC_NO_CAP)
    assert fix == "unset TF_GPU_ALLOCATOR"


def test_without_tensorflow_there_is_nothing_to_say(tmp_path: Path) -> None:
    made = MadeMachine(tmp_path)
    made.environ["TF_GPU_ALLOCATOR"] = "x"
    assert memory_growth.check(made.environment()) is None


def test_the_stop_is_named_with_its_library_and_without(
    made: MadeMachine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path))
    write_options(tmp_path, "off")
    assert memory_stop.check(made.environment()) is None
    write_options(tmp_path, "full")
    monkeypatch.setattr(native, "LIBRARY", Path(__file__))
    absent = memory_stop.check(made.environment())
    assert absent is not None
    assert absent.status is Status.WARNING
    assert "cannot be loaded" in absent.text
    monkeypatch.setattr(native, "LIBRARY", tmp_path / "none.so")
    absent = memory_stop.check(made.environment())
    assert absent is not None
    assert "Install a C compiler" in absent.text
