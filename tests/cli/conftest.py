"""An environment with an ipykernel of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rigs.environments import CannotInstall, installed_environment


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with an ipykernel that is older than ours, from the package index if there is one."""
    try:
        home = tmp_path_factory.mktemp("older") / "env"
        return installed_environment(home, ["ipykernel==6.29.*"])
    except CannotInstall as bad:
        pytest.skip(f"no older ipykernel can be installed here: {bad}")
