"""Options as people see them: value, origin, and how each is changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from traitlets.config import Config

from jupyter_tfguard.config import TfGuard, load_settings
from jupyter_tfguard.options import Option, Origin, options, options_json
from jupyter_tfguard.places import user_settings_file

pytestmark = pytest.mark.quick

SAMPLE = Path(__file__).parent / "wire" / "options.json"


@pytest.fixture(autouse=True)
def private_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path))
    for name in ("TFGUARD_DISABLE", "TF_FORCE_GPU_ALLOW_GROWTH", "TFGUARD_SET_GROWTH"):
        monkeypatch.delenv(name, raising=False)


def write(**values: object) -> None:
    user_settings_file().write_text(json.dumps({"TfGuard": values}))


def named(name: str, settings: TfGuard | None = None, config: Config | None = None) -> Option:
    found = options(settings or load_settings(), config)
    return next(option for option in found if option.name == name)


def test_every_option_is_there_and_says_who_reads_it() -> None:
    traits = TfGuard.class_own_traits(config=True)
    found = options(load_settings())
    assert sorted(option.name for option in found) == sorted(traits)
    assert found[0].name == "enabled"
    assert {trait.metadata.get("read_by") for trait in traits.values()} == {
        "both",
        "kernel",
        "server",
    }
    assert all(o.help and o.origin is Origin.DEFAULT and not o.is_changed for o in found)


def test_a_value_of_the_users_file_names_the_file() -> None:
    write(hang_seconds=15.0, busy_hertz=10.0)
    option = named("hang_seconds")
    assert (option.value, option.default, option.is_changed) == (15.0, 300.0, True)
    assert (option.origin, option.where) == (Origin.USER_FILE, str(user_settings_file()))
    assert named("busy_hertz").origin is Origin.USER_FILE
    assert named("idle_hertz").origin is Origin.DEFAULT


def test_what_is_to_be_written_keeps_the_rest_of_the_file() -> None:
    write(hang_seconds=15.0)
    option = named("record_cell_text")
    assert json.loads(option.code) == {"TfGuard": {"hang_seconds": 15.0, "record_cell_text": False}}
    assert str(user_settings_file()) in option.change
    assert option.change.endswith("Then restart the kernel.")
    user_settings_file().write_text(option.code)
    assert load_settings().record_cell_text is False
    assert named("record_cell_text").origin is Origin.USER_FILE


def test_every_text_to_be_written_can_be_read_back() -> None:
    for option in options(load_settings()):
        user_settings_file().write_text(option.code)
        load_settings()


def test_the_servers_configuration_wins_over_the_file() -> None:
    write(busy_hertz=2.0)
    config = Config({"TfGuard": {"busy_hertz": 5.0}})
    option = named("busy_hertz", TfGuard(busy_hertz=5.0), config)
    assert option.origin is Origin.SERVER
    assert option.note is None
    assert option.code == "c.TfGuard.busy_hertz = 5.0"
    assert "jupyter_server_config.py" in option.change


def test_a_file_that_was_changed_since_the_start_is_reported() -> None:
    settings = load_settings()
    write(hang_seconds=15.0)
    option = named("hang_seconds", settings)
    assert option.value == 300.0
    assert option.note is not None
    assert "now says 15.0, which takes effect after a restart" in option.note


def test_a_variable_that_wins_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFGUARD_DISABLE", "1")
    monkeypatch.setenv("TF_FORCE_GPU_ALLOW_GROWTH", "false")
    for name, variable in (
        ("enabled", "TFGUARD_DISABLE"),
        ("set_memory_growth", "TF_FORCE_GPU_ALLOW_GROWTH"),
    ):
        option = named(name)
        assert (option.origin, option.where) == (Origin.ENVIRONMENT, variable)
        assert option.code == f"unset {variable}"
        assert option.note is not None
        assert "overrides this option" in option.note


def test_growth_that_the_guard_set_itself_is_no_choice_of_the_users(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    monkeypatch.setenv("TFGUARD_SET_GROWTH", "1")
    assert named("set_memory_growth").origin is Origin.DEFAULT


def test_a_file_that_cannot_be_read_is_said() -> None:
    settings = load_settings()
    user_settings_file().write_text("{")
    found = options(settings)
    assert all(option.note and "Could not read" in option.note for option in found)


def test_the_json_has_the_shape_that_the_front_end_is_tested_with() -> None:
    sample = json.loads(SAMPLE.read_text())["options"]
    made = options_json(load_settings())
    assert {tuple(option) for option in made} == {tuple(option) for option in sample}
    assert {option["origin"] for option in sample} == {origin.value for origin in Origin}
