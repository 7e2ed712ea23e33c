# IPython reads this as an additional configuration file in kernels enabled by `jupyter tfguard enable`. Those kernels
# run in an environment without tfguard. This file makes only tfguard importable, under its two names, without changing
# sys.path. No exception leaves this file, so a failure never breaks the kernel. The syntax works in any Python 3.
import importlib.util
import os
import sys


def _load(name: str, file: str, folders: "list[str] | None" = None) -> None:
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=folders)
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


def _make_importable() -> None:
    own = importlib.util.find_spec("jupyter_tfguard")
    if own is not None and own.origin is not None:
        return  # installed since; without an origin it is only a folder left by an uninstall
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    _load("jupyter_tfguard", os.path.join(package, "__init__.py"), [package])
    installed_alias = os.path.join(os.path.dirname(package), "tfguard.py")
    alias = os.path.join(package, "alias", "tfguard.py")
    _load("tfguard", installed_alias if os.path.isfile(installed_alias) else alias)


try:
    if sys.version_info >= (3, 10):  # noqa: UP036
        _make_importable()
        c = get_config()  # type: ignore[name-defined]  # noqa: F821
        c.InteractiveShellApp.extensions.append("jupyter_tfguard.kernel.autoload")
except Exception:
    pass
