"""The import hook tells of an import and is not seen by the module."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from jupyter_tfguard.kernel.capture.import_hook import ImportHook

pytestmark = pytest.mark.quick


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Two importable modules, and what the hook told of them."""
    (tmp_path / "wanted_module.py").write_text("seen = (__spec__.loader, __loader__)\nvalue = 7\n")
    (tmp_path / "wanted_package").mkdir()
    (tmp_path / "wanted_package" / "__init__.py").write_text("import wanted_module\n")
    (tmp_path / "broken_module.py").write_text("raise ValueError('broken')\n")
    monkeypatch.syspath_prepend(tmp_path)
    told: list[str] = []

    def tell(module: ModuleType) -> None:
        told.append(module.__name__)

    hook = ImportHook({"wanted_module": tell, "wanted_package": tell, "broken_module": tell})
    hook.install()
    yield told
    hook.uninstall()
    assert hook not in sys.meta_path
    for name in ("wanted_module", "wanted_package", "broken_module"):
        sys.modules.pop(name, None)


def load(name: str) -> Any:
    return importlib.import_module(name)


def test_the_callback_comes_once_after_the_import(names: list[str]) -> None:
    assert load("wanted_module").value == 7
    load("wanted_module")
    assert names == ["wanted_module"]


def test_an_inner_import_is_reported_first(names: list[str]) -> None:
    load("wanted_package")
    assert names == ["wanted_module", "wanted_package"]


def test_the_module_sees_its_true_loader(names: list[str]) -> None:
    module = load("wanted_module")
    kind = "SourceFileLoader"
    assert [type(loader).__name__ for loader in module.seen] == [kind, kind]
    assert type(module.__spec__.loader).__name__ == kind
    assert module.__spec__.loader.get_source("wanted_module")


def test_looking_for_a_module_is_no_import(names: list[str]) -> None:
    spec = importlib.util.find_spec("wanted_module")
    assert spec is not None
    assert spec.origin is not None
    assert names == []


def test_a_lazy_loader_reports_at_the_first_use(names: list[str]) -> None:
    spec = importlib.util.find_spec("wanted_module")
    assert spec is not None
    assert spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules["wanted_module"] = module
    spec.loader.exec_module(module)
    assert names == []
    assert module.value == 7
    assert names == ["wanted_module"]


def test_a_lazy_finder_below_us_reports_at_the_first_use(names: list[str]) -> None:
    class LazyFinder:
        @staticmethod
        def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
            if name != "wanted_module":
                return None
            spec = importlib.machinery.PathFinder.find_spec(name, path, target)
            assert spec is not None
            assert spec.loader is not None
            spec.loader = importlib.util.LazyLoader(spec.loader)
            return spec

    sys.meta_path.insert(1, LazyFinder)  # type: ignore[arg-type]
    try:
        module = load("wanted_module")
        assert names == []
        assert module.value == 7
        assert names == ["wanted_module"]
    finally:
        sys.meta_path.remove(LazyFinder)  # type: ignore[arg-type]


def test_a_reload_reports_again(names: list[str]) -> None:
    importlib.reload(load("wanted_module"))
    assert names == ["wanted_module", "wanted_module"]


def test_a_module_that_fails_to_load_fails_as_ever(names: list[str]) -> None:
    with pytest.raises(ValueError, match="broken"):
        load("broken_module")
    with pytest.raises(ModuleNotFoundError):
        load("no_module_of_that_name")
    assert names == []


def test_a_module_that_is_there_already_is_reported_at_once() -> None:
    told: list[str] = []
    hook = ImportHook({"json": lambda module: told.append(module.__name__)})
    hook.install()
    hook.uninstall()
    assert told == ["json"]


def test_a_callback_that_fails_does_not_break_the_import(
    names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFGUARD_DIR", str(tmp_path / "guard"))

    def fail(module: ModuleType) -> None:
        raise RuntimeError("ours")

    hook = ImportHook({"wanted_module": fail})
    hook.install()
    try:
        assert load("wanted_module").value == 7
    finally:
        hook.uninstall()
    assert "RuntimeError: ours" in (tmp_path / "guard" / "problems.jsonl").read_text()
