"""The installed TensorFlow and what it was built for, from its package metadata and its build information.

Not here: the driver (:mod:`driver`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import SourceUnavailable
from ..procfs import read_text
from .packages import Package, find_packages


@dataclass(frozen=True)
class InstalledTensorFlow:
    """The TensorFlow that an import finds.

    Attributes:
        folder: Its folder, or a file ``tensorflow.py`` that is found first.
        packages: Every package that provides it, the effective one first; empty if the folder has no metadata.
        hidden: The packages that are not found because of such a file or folder.
        is_cuda: Whether it was built with CUDA; None = unknown.
        cuda_build_version: CUDA version it was built for: ``12.5.1``.
        cudnn_build_version: cuDNN version it was built for, usually only the major version: ``9``.
        compute_capabilities: Architectures of its GPU code: ``sm_80``, ``compute_90``.
    """

    folder: Path
    packages: tuple[Package, ...]
    hidden: tuple[Package, ...] = ()
    is_cuda: bool | None = None
    cuda_build_version: str | None = None
    cudnn_build_version: str | None = None
    compute_capabilities: tuple[str, ...] = ()

    @property
    def package(self) -> Package | None:
        """The effective package."""
        return self.packages[0] if self.packages else None


def installed_tensorflow(
    folders: Sequence[Path], names: Iterable[str]
) -> InstalledTensorFlow | None:
    """The TensorFlow that an import finds in these folders; None if there is none.

    Args:
        folders: As in ``sys.path``.
        names: The packages that install a folder ``tensorflow``.
    """
    packages = [p for name in names for p in find_packages(name, folders)]
    order = {folder: place for place, folder in reversed(list(enumerate(folders)))}
    packages.sort(key=lambda p: order.get(p.folder, len(folders)))
    folder = next(_importable(folders, files=bool(packages)), None)
    if folder is None and packages:
        folder = packages[0].folder / "tensorflow"
    if folder is None:
        return None
    reached = bool(packages) and folder == packages[0].folder / "tensorflow"
    info = build_info(folder)
    return InstalledTensorFlow(
        folder=folder,
        packages=tuple(packages) if reached else (),
        hidden=() if reached else tuple(packages),
        is_cuda=_flag(info.get("is_cuda_build")),
        cuda_build_version=_text(info.get("cuda_version")),
        cudnn_build_version=_text(info.get("cudnn_version")),
        compute_capabilities=tuple(map(str, info.get("cuda_compute_capabilities") or ())),
    )


def _importable(folders: Sequence[Path], *, files: bool) -> Iterator[Path]:
    """What an import finds, in import order; a file ``tensorflow.py`` of the user only if it may hide a package."""
    for folder in folders:
        if (folder / "tensorflow" / "__init__.py").is_file():
            yield folder / "tensorflow"
        elif files and (folder / "tensorflow.py").is_file():
            yield folder / "tensorflow.py"


def build_info(folder: Path) -> Mapping[str, Any]:
    """The build information of TensorFlow; empty if it cannot be read.

    Source: ``tensorflow/python/platform/build_info.py``, read as text. Sample:
    ``build_info = collections.OrderedDict([('cuda_version', '12.5.1'), ('is_cuda_build', True)])``
    """
    try:
        tree = ast.parse(read_text(str(folder / "python" / "platform" / "build_info.py")))
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                (argument,) = node.value.args
                return dict(ast.literal_eval(argument))
    except (SourceUnavailable, SyntaxError, ValueError, TypeError, RecursionError):
        pass
    return {}


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
