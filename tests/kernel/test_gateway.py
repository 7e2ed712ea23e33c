"""A kernel gateway starts kernels without the user's variables; the guard finds them in the gateway's environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jupyter_tfguard.errors import SourceUnavailable
from jupyter_tfguard.kernel import gateway
from jupyter_tfguard.places import data_folder, disabled_by_environment, user_settings_file

pytestmark = pytest.mark.quick

GATEWAY = {"KERNEL_GATEWAY": "1", "PATH": "/bin", "KERNEL_USERNAME": "ann"}


def started(monkeypatch: pytest.MonkeyPatch, own: dict[str, str], gateways: dict[str, str]) -> None:
    """Adopt, in a kernel with this environment whose parent has that one."""
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(gateway, "read_environ", {f"/proc/{os.getppid()}/environ": gateways}.get)
    gateway.adopt_environment()


def test_switch_and_folders_are_those_of_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    named = {"TFGUARD_DISABLE": "1", "TFGUARD_DIR": "/data/t", "JUPYTER_CONFIG_DIR": "/etc/ann"}
    started(monkeypatch, GATEWAY, named | {"SECRET": "x", "HOME": "/nowhere"})
    assert disabled_by_environment()
    assert data_folder() == Path("/data/t")
    assert user_settings_file().parent == Path("/etc/ann")
    assert "SECRET" not in os.environ
    assert "HOME" not in os.environ  # the user's code sees what the gateway gave it
    gateway.release_environment()
    assert dict(os.environ) == GATEWAY


@pytest.mark.parametrize(
    ("named", "folder"),
    [
        ({"HOME": "/h/ann"}, "/h/ann/.local/share/jupyter/tfguard"),
        ({"HOME": "/h/ann", "XDG_DATA_HOME": "/x"}, "/x/jupyter/tfguard"),
        ({"HOME": "/h/ann", "XDG_DATA_HOME": "/x", "JUPYTER_DATA_DIR": "/j"}, "/j/tfguard"),
    ],
)
def test_reports_are_in_the_folder_where_a_terminal_on_that_host_searches(
    monkeypatch: pytest.MonkeyPatch, named: dict[str, str], folder: str
) -> None:
    started(monkeypatch, GATEWAY, named)
    assert data_folder() == Path(folder)
    assert user_settings_file().parent == Path("/h/ann/.jupyter")
    gateway.release_environment()


def test_what_the_kernel_was_given_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    own = GATEWAY | {"TFGUARD_DIR": "/mine", "TFGUARD_DISABLE": "0"}
    started(monkeypatch, own, {"TFGUARD_DIR": "/theirs", "TFGUARD_DISABLE": "1"})
    assert data_folder() == Path("/mine")
    assert not disabled_by_environment()


def test_other_kernels_and_gateways_of_other_users_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started(monkeypatch, {"PATH": "/bin"}, {"TFGUARD_DIR": "/theirs"})
    assert dict(os.environ) == {"PATH": "/bin"}

    def refused(path: str) -> dict[str, str]:
        raise SourceUnavailable(path)

    monkeypatch.setenv("KERNEL_GATEWAY", "1")
    monkeypatch.setattr(gateway, "read_environ", refused)
    gateway.adopt_environment()
    assert "TFGUARD_DIR" not in os.environ
