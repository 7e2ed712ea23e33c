"""What all tests share: private folders, an environment without tfguard."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from jupyter_tfguard import shield
from tests.rigs.environments import linked_environment
from tests.rigs.nvml.library import build, empty_cuda

pytest_plugins = ["pytest_jupyter.jupyter_server", "tests.parallel"]


def pytest_configure() -> None:
    """Have the kernels and servers that tests start end by the signals that end a user's."""
    for name in ("SIGINT", "SIGQUIT", "SIGHUP"):
        number = getattr(signal, name, None)
        # In the background of a script a shell ignores these. That would be inherited; a handler is not.
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def without_pytest(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment as users have it: ipykernel leaves fd 1 and 2 alone when it finds pytest's variables."""
    ours = ("PYTEST_", "TFGUARD_", "TF_FORCE_GPU_ALLOW_GROWTH", "JPY_")
    return {name: value for name, value in environment.items() if not name.startswith(ours)}


@contextlib.contextmanager
def private_jupyter(home: Path, **more: Path) -> Iterator[None]:
    """An environment as users have it, with every folder of Jupyter's and ours below `home`."""
    private = {
        "TFGUARD_DIR": home / "tfguard",
        "JUPYTER_CONFIG_DIR": home / "config",
        "JUPYTER_DATA_DIR": home / "data",
        "IPYTHONDIR": home / "ipython",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ.keys() - without_pytest(os.environ).keys():
            patch.delenv(name)
        for name, path in (private | more).items():
            patch.setenv(name, str(path))
        yield


def write_options(folder: Path, stop: str) -> None:
    """A user's file of options, in a folder of Jupyter's configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    content = json.dumps({"TfGuard": {"stop": stop}})
    (folder / "jupyter_tfguard_config.json").write_text(content)


@pytest.fixture(scope="session", autouse=True)
def never_the_users_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a test without a folder of its own writes down, or a thread after its test, does not land in the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TFGUARD_DIR", str(tmp_path_factory.mktemp("unclaimed") / "tfguard"))
        yield


@pytest.fixture(autouse=True)
def nothing_unwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an earlier test could not write is not shown in this one."""
    monkeypatch.setattr(shield, "_unwritten", [])


@pytest.fixture
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private folder for everything tfguard keeps."""
    folder = tmp_path / "tfguard"
    monkeypatch.setenv("TFGUARD_DIR", str(folder))
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """Home of the folders of :func:`private_jupyter`."""
    with private_jupyter(tmp_path):
        yield tmp_path


@pytest.fixture
def kernels(home: Path) -> Path:
    """The user's own folder of kernels."""
    return home / "data" / "kernels"


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment without tfguard."""
    return linked_environment(tmp_path_factory.mktemp("linked") / "env")


@pytest.fixture(scope="session")
def standin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the stand-in for NVIDIA's library."""
    folder = build(tmp_path_factory.mktemp("nvml"))
    if folder is None:
        pytest.skip("no C compiler here")
    return folder


@pytest.fixture(scope="session")
def cuda_library(standin: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that is called as CUDA's."""
    return empty_cuda(tmp_path_factory.mktemp("cuda"))
