"""Tells when a module has been imported by the user's own code, without importing anything.

A finder at the head of ``sys.meta_path`` answers only for the names it was given. It lets the other finders find the
module, stands in for its loader, and puts the true loader back before the module runs, so that the module never sees us.
Lazy loaders work: the callback comes at the first access. A reload calls back again: callbacks are idempotent.
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

from ..shield import shielded
from .header import is_being_imported

Callback = Callable[[ModuleType], None]


class ImportHook(MetaPathFinder):
    """Calls a function per module name after that module was imported.

    Args:
        callbacks: Function per full module name; given the module, in the thread that imports.
    """

    def __init__(self, callbacks: Mapping[str, Callback]) -> None:
        self._callbacks = dict(callbacks)
        self._searching = threading.local()

    def install(self) -> None:
        """Listen; modules that are there already are called back now."""
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)
        for name in self._callbacks:
            module = sys.modules.get(name)
            if module is not None and not is_being_imported(module):
                self._call(name, module)

    def uninstall(self) -> None:
        """Listen no more."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        self._callbacks.clear()

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """The true spec with a stand-in loader, for one of our names; None for any other."""
        if fullname not in self._callbacks or getattr(self._searching, "name", None) == fullname:
            return None
        self._searching.name = fullname  # the other finders are asked through us again
        try:
            spec = _find_among_others(self, fullname, path, target)
        finally:
            self._searching.name = None
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _StandIn(self, spec.loader)
        return spec

    def _call(self, name: str, module: ModuleType) -> None:
        callback = self._callbacks.get(name)
        if callback is not None:
            with shielded(f"after the import of {name}"):
                callback(module)


def _find_among_others(
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


class _StandIn(Loader):
    """Loads as the true loader does, then calls back."""

    def __init__(self, hook: ImportHook, true_loader: Any) -> None:
        self._hook = hook
        self._true = true_loader

    def __getattr__(self, name: str) -> Any:
        # is_package, get_data, get_source, ...: whatever is used between finding and loading
        if name == "_true":  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self._true, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the true loader."""
        create = getattr(self._true, "create_module", None)
        module: ModuleType | None = create(spec) if create is not None else None
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Put the true loader back, run the module, call back."""
        spec = module.__spec__
        assert spec is not None
        spec.loader = self._true
        if getattr(module, "__loader__", None) is self:
            module.__loader__ = self._true
        self._true.exec_module(module)
        if isinstance(self._true, importlib.util.LazyLoader):
            # Nothing has run yet, and asking the module for anything would load it: wait for its first use.
            spec.loader = _StandIn(self._hook, spec.loader)
        else:
            self._hook._call(spec.name, module)
