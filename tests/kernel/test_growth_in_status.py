"""Memory growth in the line of ``%load_ext tfguard`` and of ``%tfguard status``: the words of the panel, no others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_tfguard import growth_texts as words
from jupyter_tfguard.kernel import status
from jupyter_tfguard.training.growth import GrowthState

pytestmark = pytest.mark.quick


@pytest.fixture(autouse=True)
def _watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "watcher_alive", lambda: True)


def line(growth: GrowthState | None) -> str:
    libraries = SimpleNamespace(refresh_growth=lambda: None, growth=growth)
    session: Any = SimpleNamespace(libraries=libraries, recording=object(), problems=[])
    return status.state_line(session)


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ("on", words.ON),
        ("capped", words.capped(2**33, grows=True)),
        ("async", words.ASYNC),
        ("off_by_user", words.off_by_variable()),
        ("no_gpu", "no NVIDIA GPU found"),
    ],
)
def test_a_state_to_know_of_is_beside_the_others(state: str, text: str) -> None:
    assert f"guarding this kernel ({text}; tracked by the Jupyter server)." in line(
        GrowthState(state, text)
    )


def test_one_to_be_fixed_is_a_sentence_with_what_to_do() -> None:
    text = words.TOO_LATE
    found = line(GrowthState("too_late", text))
    assert found.endswith(f". {text[0].upper()}{text[1:]}.")
    assert text not in found.split(").")[0]


def test_without_tensorflow_nothing_speaks_of_it() -> None:
    assert "growth" not in line(None)
    assert "GPU" not in line(None)


def test_memory_is_the_number_of_the_panel_with_resident_memory_after_it() -> None:
    gib = 1 << 30
    group = {
        "cgroup.limit_bytes": 4.0 * gib,
        "cgroup.used_bytes": 3.0 * gib,
        "cgroup.reclaimable_bytes": 1.0 * gib,
    }
    memory = SimpleNamespace(process=lambda: {"process.rss_bytes": 2.5 * gib}, ulimits=dict)
    pulse = SimpleNamespace(latest=SimpleNamespace(values=group))
    session: Any = SimpleNamespace(pulse=pulse, memory=memory)
    assert status._memory(session) == (
        "2.00 GiB of 4.00 GiB (container limit), 50 %; resident memory of this kernel 2.50 GiB"
    )
