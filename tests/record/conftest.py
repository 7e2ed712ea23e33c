"""What tests of the record share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_tfguard import shield
from jupyter_tfguard.record.recording import Recording
from tests.record.alive_rig import Writer
from tests.record.recording_rig import make


@pytest.fixture
def recording(tmp_path: Path, data_folder: Path) -> Iterator[Recording]:
    """A recording of this process, empty."""
    shield._noted.clear()
    found = make(tmp_path)
    yield found
    found.close()


@pytest.fixture
def root(data_folder: Path) -> Path:
    """Folder of all recordings."""
    return data_folder / "recordings"


@pytest.fixture
def writers() -> Iterator[list[Writer]]:
    """Where a test puts the writers that it starts; they are ended after it."""
    made: list[Writer] = []
    yield made
    for writer in made:
        writer.close()
