"""Where the exception may be raised, seen from a signal that interrupts real code there."""

from __future__ import annotations

import contextlib
import importlib
import linecache
import sys
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from jupyter_tfguard.guard.safe_place import in_cell, is_safe

pytestmark = pytest.mark.quick


def here() -> FrameType:
    return sys._getframe(1)


def test_user_code_is_safe() -> None:
    assert is_safe(here())


def test_an_instruction_without_a_line_is_not_safe() -> None:
    def code() -> FrameType:
        return here()

    code.__code__ = code.__code__.replace(co_linetable=b"")
    frame = code()
    assert frame.f_lineno is None
    assert not is_safe(frame)


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


def test_a_condition_that_takes_its_lock_again_is_not_safe() -> None:
    class Lock:
        def __init__(self) -> None:
            self.frames: list[FrameType] = []

        def acquire(self, *_: object) -> bool:
            self.frames.append(here())
            return True

        def release(self) -> None:
            self.frames.append(here())

    lock = Lock()
    condition = threading.Condition(lock)  # type: ignore[arg-type]
    condition._is_owned = lambda: True  # type: ignore[attr-defined]
    condition.wait(0.001)
    assert [is_safe(frame) for frame in lock.frames] == [False, False]


@pytest.mark.parametrize(
    "file",
    [
        "logging/__init__.py",
        "tensorflow/python/eager/core.py",
        "tensorflow/python/framework/errors_impl.py",
        "tensorflow/python/framework/tensor_conversion_registry.py",
    ],
)
def test_files_that_ignore_or_translate_exceptions_are_not_safe(file: str) -> None:
    namespace: dict[str, Callable[[], FrameType]] = {"ask": here}
    exec(compile("def convert(): return ask()", f"/lib/{file}", "exec"), namespace)
    assert not is_safe(namespace["convert"]())


@pytest.mark.parametrize(
    ("file", "safe"),
    [("resource_variable_ops.py", False), ("script_ops.py", True), ("gen_math_ops.py", True)],
)
def test_what_an_operation_calls_is_not_safe_except_code_of_the_user(file: str, safe: bool) -> None:
    namespace: dict[str, Any] = {"ask": here}
    ops = "/lib/tensorflow/python/ops"
    exec(compile("def read(): return ask()", f"{ops}/{file}", "exec"), namespace)
    exec(compile("def mul(): return read()", f"{ops}/gen_math_ops.py", "exec"), namespace)
    assert is_safe(namespace["mul"]()) is safe


@pytest.mark.parametrize(
    ("name", "is_user_code"), [("tf__step", True), ("_call_unconverted", True), ("convert", False)]
)
def test_autograph_is_not_safe_while_it_converts(name: str, is_user_code: bool) -> None:
    namespace: dict[str, Any] = {"ask": here}
    exec(f"def converted_call(): return {name}()\ndef {name}(): return ask()", namespace)
    assert is_safe(namespace["converted_call"]()) is is_user_code


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("_read_csv_chunks", "pandas/io/parsers/readers.py"),
        ("pythonify_logs", "keras/src/utils/python_utils.py"),
        (
            "bind_function_inputs",
            "tensorflow/python/eager/polymorphic_function/function_type_utils.py",
        ),
    ],
)
def test_nothing_within_these_functions_is_safe(name: str, file: str) -> None:
    namespace: dict[str, Any] = {"ask": here}
    exec("def deep(n): return deep(n - 1) if n else ask()", namespace)
    exec(compile(f"def {name}(): return deep(20)", f"/lib/{file}", "exec"), namespace)
    assert not is_safe(namespace[name]())
    assert is_safe(namespace["deep"](20))


def test_linecache_is_not_safe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[bool] = []

    def opens(path: str) -> None:
        found.append(is_safe(here()))
        raise OSError

    monkeypatch.setattr("tokenize.open", opens)
    (tmp_path / "code.py").write_text("1\n")
    assert linecache.getlines(str(tmp_path / "code.py")) == []
    assert found == [False]


def test_a_cell_is_known_by_its_globals() -> None:
    cell = types.ModuleType("cell").__dict__
    cell["ask"] = here
    exec("def run(): return ask()", cell)
    assert in_cell(cell["run"](), cell)
    assert not in_cell(here(), cell)
