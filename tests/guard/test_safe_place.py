"""Where the exception may be raised, seen from a signal that interrupts real code there."""

from __future__ import annotations

import contextlib
import importlib
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

from jupyter_tfguard.guard.safe_place import in_cell, is_safe

pytestmark = pytest.mark.quick


def here() -> FrameType:
    return sys._getframe(1)


def test_user_code_is_safe() -> None:
    assert is_safe(here())


@pytest.mark.parametrize("name", ["__enter__", "__exit__", "__del__"])
def test_context_managers_and_finalizers_are_not_safe(name: str) -> None:
    found: list[bool] = []
    namespace: dict[str, Callable[..., None]] = {"ask": lambda: found.append(is_safe(here()))}
    exec(f"def {name}(): ask()", namespace)
    namespace[name]()
    assert found == [False]


def test_the_body_of_a_context_manager_of_tensorflow_is_not_safe() -> None:
    source = "def scope():\n    yield ask()\n"
    namespace: dict[str, Callable[[], Iterator[FrameType]]] = {"ask": here}  # type: ignore[dict-item]
    exec(compile(source, "/lib/tensorflow/python/scope.py", "exec"), namespace)
    assert not is_safe(next(namespace["scope"]()))


def test_the_body_of_a_with_statement_is_safe() -> None:
    with contextlib.nullcontext():
        assert is_safe(here())


def test_an_import_is_not_safe_unless_it_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "module_that_asks.py").write_text("import sys\nframe = sys._getframe()\n")
    monkeypatch.syspath_prepend(tmp_path)
    stack = importlib.import_module("module_that_asks").frame
    assert not is_safe(stack)
    assert is_safe(stack, in_imports=True)


@pytest.mark.parametrize(
    "file",
    [
        "tensorflow/python/eager/core.py",
        "tensorflow/python/framework/errors_impl.py",
        "tensorflow/python/framework/tensor_conversion_registry.py",
    ],
)
def test_what_tensorflow_calls_from_native_code_is_not_safe(file: str) -> None:
    namespace: dict[str, Callable[[], FrameType]] = {"ask": here}
    exec(compile("def convert(): return ask()", f"/lib/{file}", "exec"), namespace)
    assert not is_safe(namespace["convert"]())


def test_while_threads_of_pandas_read_a_file_is_not_safe() -> None:
    source = "def _read_csv_chunks(): return wait()\ndef wait(): return ask()"
    namespace: dict[str, Callable[[], FrameType]] = {"ask": here}
    exec(compile(source, "/lib/pandas/io/parsers/readers.py", "exec"), namespace)
    assert not is_safe(namespace["_read_csv_chunks"]())


def test_a_cell_is_known_by_its_globals() -> None:
    cell = types.ModuleType("cell").__dict__
    cell["ask"] = here
    exec("def run(): return ask()", cell)
    assert in_cell(cell["run"](), cell)
    assert not in_cell(here(), cell)
