"""Memory growth: what is set, what is found, and whose will counts."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from jupyter_tfguard.training import growth as growth_module
from jupyter_tfguard.training.growth import GrowthSetting, GrowthState, gpu_present

pytestmark = pytest.mark.quick

VARIABLE, MARKER = "TF_FORCE_GPU_ALLOW_GROWTH", "TFGUARD_SET_GROWTH"


@pytest.fixture(autouse=True)
def _linux_with_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(growth_module, "gpu_present", lambda root="/": True)
    monkeypatch.setattr(growth_module, "_read_once", None)
    monkeypatch.delitem(sys.modules, "tensorflow.python.eager.context", raising=False)


def tensorflow(monkeypatch: pytest.MonkeyPatch, *, initialised: bool) -> None:
    """TensorFlow's context module before it has looked for devices; `initialised`: it has made them."""
    context = SimpleNamespace(_context_handle=object() if initialised else None)
    module = SimpleNamespace(_context=context)
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager.context", module)  # type: ignore[arg-type]


def test_growth_is_set_and_taken_back() -> None:
    environ = {"OTHER": "1"}
    setting = GrowthSetting(environ, wanted=True)
    setting.set()
    assert environ == {"OTHER": "1", VARIABLE: "true", MARKER: "1"}
    assert setting.state().state == "on"
    setting.undo()
    assert environ == {"OTHER": "1"}


def test_what_the_server_set_stays_when_we_go() -> None:
    environ = {VARIABLE: "true", MARKER: "1"}
    setting = GrowthSetting(environ, wanted=True)
    setting.set()
    assert setting.state().state == "on"
    setting.undo()
    assert environ == {VARIABLE: "true", MARKER: "1"}


def test_a_value_the_user_set_since_stays() -> None:
    environ: dict[str, str] = {}
    setting = GrowthSetting(environ, wanted=True)
    setting.set()
    environ[VARIABLE] = "false"
    setting.undo()
    assert environ == {VARIABLE: "false"}


@pytest.mark.parametrize("value", ["false", "1", "True", ""])
def test_a_value_of_the_users_own_wins(value: str) -> None:
    environ = {VARIABLE: value}
    setting = GrowthSetting(environ, wanted=True)
    setting.set()
    assert environ == {VARIABLE: value}
    assert setting.state().state == "off_by_user"  # TensorFlow knows "true" and "false" only


def test_an_option_leaves_it_alone() -> None:
    environ: dict[str, str] = {}
    setting = GrowthSetting(environ, wanted=False)
    setting.set()
    assert environ == {}
    assert setting.state().state == "off_by_user"
    assert "TfGuard.set_memory_growth" in setting.state().text


def test_too_late_is_said_and_nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    tensorflow(monkeypatch, initialised=True)
    environ: dict[str, str] = {}
    setting = GrowthSetting(environ, wanted=True)
    setting.set()
    assert environ == {}
    assert setting.state().state == "too_late"
    assert "restart the kernel" in setting.state().text
    environ[VARIABLE] = "true"  # does not help any more
    assert setting.state().state == "too_late"


def test_before_its_devices_exist_it_is_not_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    tensorflow(monkeypatch, initialised=False)
    setting = GrowthSetting({}, wanted=True)
    setting.set()
    assert setting.state().state == "on"
    tensorflow(monkeypatch, initialised=True)
    assert setting.state().state == "on"


def test_loaded_again_it_remembers_what_tensorflow_read(monkeypatch: pytest.MonkeyPatch) -> None:
    environ: dict[str, str] = {}
    first = GrowthSetting(environ, wanted=True)
    first.set()
    tensorflow(monkeypatch, initialised=True)
    assert first.state() == GrowthState("on", "memory growth on")
    first.undo()
    second = GrowthSetting(environ, wanted=True)
    second.set()
    assert environ == {}
    assert second.state().state == "on"


class TestAVariableThatIsChanged:
    def test_before_the_first_use_of_the_gpu_it_counts(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        environ: dict[str, str] = {}
        setting = GrowthSetting(environ, wanted=True)
        setting.set()
        tensorflow(monkeypatch, initialised=False)
        environ[VARIABLE] = "false"
        assert setting.state().state == "off_by_user"
        tensorflow(monkeypatch, initialised=True)
        assert setting.state().state == "off_by_user"

    def test_after_it_changes_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        environ: dict[str, str] = {}
        setting = GrowthSetting(environ, wanted=True)
        setting.set()
        tensorflow(monkeypatch, initialised=True)
        assert setting.state().text == "memory growth on"
        environ[VARIABLE] = "false"
        assert setting.state().text == "memory growth on"


@pytest.mark.parametrize("hidden", ["", "-1", " ", "-1,0"])
def test_hidden_gpus_are_no_gpus(hidden: str) -> None:
    setting = GrowthSetting({"CUDA_VISIBLE_DEVICES": hidden}, wanted=True)
    assert setting.state().state == "no_gpu"


def test_no_device_file_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth_module, "gpu_present", lambda root="/": False)
    tensorflow(monkeypatch, initialised=True)
    setting = GrowthSetting({}, wanted=True)
    setting.set()
    assert setting.state().state == "no_gpu"


@pytest.mark.parametrize(
    ("file", "present"),
    [
        ("dev/nvidia0", True),
        ("dev/dxg", True),
        ("proc/driver/nvidia/gpus/0000:01:00.0", True),
        ("dev/nvidiactl", False),  # there without a card, too
        ("dev/null", False),
    ],
)
def test_a_gpu_is_known_by_its_files(tmp_path: Path, file: str, present: bool) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text("")
    assert gpu_present(str(tmp_path)) is present
