"""Calls a function after user code has imported a given module, without importing anything itself.

A finder at the front of ``sys.meta_path`` handles only the given names. It lets the other finders find the module,
wraps its loader, and restores the original loader before the module runs, so the module never sees the wrapper. Lazy
loaders work: the callback runs at the first access. A reload runs the callback again: callbacks are idempotent.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from ...shield import shielded
from ..header import is_being_imported

Callback = Callable[[ModuleType], None]


class ImportHook(MetaPathFinder):
    """Calls a function after the module it is registered for was imported.

    Args:
        callbacks: Function by full module name; called with the module, in the importing thread.
    """

    def __init__(self, callbacks: Mapping[str, Callback]) -> None:
        self._callbacks = dict(callbacks)
        self._searching = threading.local()

    def install(self) -> None:
        """Install the finder, and run the callbacks of modules that are already imported."""
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)
        for name in self._callbacks:
            module = sys.modules.get(name)
            if module is not None and not is_being_imported(module):
                self._call(name, module)

    def uninstall(self) -> None:
        """Remove the finder and the callbacks."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        self._callbacks.clear()

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """The original spec with a wrapped loader for one of the registered names; None for any other name."""
        if fullname not in self._callbacks or getattr(self._searching, "name", None) == fullname:
            return None
        self._searching.name = fullname  # the other finders may call this method again
        try:
            spec = _find_with_others(self, fullname, path, target)
        finally:
            self._searching.name = None
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _WrappedLoader(self, spec.loader)
        return spec

    def _call(self, name: str, module: ModuleType) -> None:
        callback = self._callbacks.get(name)
        if callback is not None:
            with shielded(f"after the import of {name}"):
                callback(module)


def _find_with_others(
    ours: ImportHook, fullname: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    for finder in list(sys.meta_path):
        find = getattr(finder, "find_spec", None)
        if finder is ours or find is None:
            continue
        spec: ModuleSpec | None = find(fullname, path, target)
        if spec is not None:
            return spec
    return None


class _WrappedLoader(Loader):
    """Loads the module with the original loader, then runs the callback."""

    def __init__(self, hook: ImportHook, original: Any) -> None:
        self._hook = hook
        self._original = original

    def __getattr__(self, name: str) -> Any:
        # is_package, get_data, get_source, ...: may be used between finding and loading
        if name == "_original":  # while this object is being copied
            raise AttributeError(name)
        return getattr(self._original, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Delegate to the original loader."""
        create = getattr(self._original, "create_module", None)
        module: ModuleType | None = create(spec) if create is not None else None
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the original loader, run the module, and run the callback."""
        spec = module.__spec__
        assert spec is not None
        spec.loader = self._original
        if getattr(module, "__loader__", None) is self:
            module.__loader__ = self._original
        self._original.exec_module(module)
        if isinstance(self._original, importlib.util.LazyLoader):
            # The module has not run yet, and reading any attribute would load it: wait for its first use.
            spec.loader = _WrappedLoader(self._hook, spec.loader)
        else:
            self._hook._call(spec.name, module)
