"""`jupyter tfguard enable`: the kernel of another environment gets the guard, and is given back byte for byte."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.cli import main
from tests.conftest import private_jupyter
from tests.crash.conftest import Kernel, RecordingServer
from tests.rigs.environments import (
    CannotInstall,
    installed_environment,
    linked_environment,
    write_kernel,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="virtual environments of POSIX")
CONFIG_FILE = "jupyter_tfguard/kernel/enabled_config.py"


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment without tfguard."""
    return linked_environment(tmp_path_factory.mktemp("linked") / "env")


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with an ipykernel that is older than ours, from the package index if there is one."""
    try:
        home = tmp_path_factory.mktemp("older") / "env"
        return installed_environment(home, ["ipykernel==6.29.*"])
    except CannotInstall as bad:
        pytest.skip(f"no older ipykernel can be installed here: {bad}")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    with private_jupyter(tmp_path):
        yield tmp_path


@pytest.fixture
def kernels(home: Path) -> Path:
    """The user's own folder of kernels."""
    return home / "data" / "kernels"


def enable(name: str, *options: str, **more: str) -> dict[str, Any]:
    code, out, told = command(name, *options, "--json", **more)
    assert code == 0, told
    found: dict[str, Any] = json.loads(out)
    return found


def refusal(name: str, *options: str, **more: str) -> str:
    code, out, told = command(name, *options, **more)
    assert (code, out) == (2, "")
    assert told.startswith("jupyter tfguard: ")
    assert told.count("\n") == 1
    return told


def command(name: str, *options: str, **more: str) -> tuple[int, str, str]:
    """Exit code and what is printed, to stdout and stderr."""
    out, told = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(told),
    ):
        for variable, value in more.items():
            patch.setenv(variable, value)
        code = main(["enable", "--kernel", name, *options])
    return code, out.getvalue(), told.getvalue()


# --- the file


def test_one_word_is_added_and_off_gives_the_same_bytes_back(kernels: Path, linked: Path) -> None:
    before = write_kernel(kernels / "other", linked)
    change = enable("other")
    assert change["done"] == "enabled"
    assert change["versions"]["ipykernel"]
    assert change["versions"]["tensorflow"] is None
    old, new = json.loads(before), json.loads((kernels / "other/kernel.json").read_text())
    assert new["argv"][:-1] == old["argv"]
    assert new["argv"][-1].startswith("--config=")
    assert new["argv"][-1].endswith(CONFIG_FILE)
    assert new["metadata"].pop("tfguard")["before"] == before
    assert new | {"argv": None} == old | {"argv": None}
    assert enable("other", "--off")["done"] == "disabled"
    assert (kernels / "other/kernel.json").read_bytes() == before.encode()
    assert [path.name for path in (kernels / "other").iterdir()] == ["kernel.json"]


def test_people_read_a_line_for_each_thought(kernels: Path, linked: Path) -> None:
    write_kernel(kernels / "other", linked)
    done = subprocess.run(
        [sys.executable, "-m", "jupyter_tfguard", "enable", "--kernel", "other"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.startswith("Kernel other (Python 3.")
    assert done.stdout.splitlines()[-1] == "Undo: jupyter tfguard enable --kernel other --off"


def test_doing_it_twice_changes_nothing(kernels: Path, linked: Path) -> None:
    before = write_kernel(kernels / "other", linked)
    enable("other")
    text = (kernels / "other/kernel.json").read_bytes()
    assert enable("OTHER")["done"] == "enabled before"
    assert (kernels / "other/kernel.json").read_bytes() == text
    enable("other", "--off")
    assert enable("other", "--off")["done"] == "was not enabled"
    assert (kernels / "other/kernel.json").read_bytes() == before.encode()


def test_what_somebody_edited_meanwhile_stays(kernels: Path, linked: Path) -> None:
    write_kernel(kernels / "other", linked)
    enable("other")
    file = kernels / "other/kernel.json"
    content = json.loads(file.read_text())
    content["display_name"] = "Renamed"
    file.write_text(json.dumps(content))
    enable("other", "--off")
    found = json.loads(file.read_text())
    assert found["display_name"] == "Renamed"
    assert found["metadata"] == {"debugger": True}
    assert CONFIG_FILE not in file.read_text()


@pytest.mark.parametrize("before", ["{", "[]", '{"argv": ["--config=x"]}', 5, None])
def test_a_note_that_somebody_damaged_does_not_keep_the_guard_in(
    kernels: Path, linked: Path, before: object
) -> None:
    write_kernel(kernels / "other", linked)
    enable("other")
    file = kernels / "other/kernel.json"
    content = json.loads(file.read_text())
    content["metadata"]["tfguard"] = {"before": before}
    file.write_text(json.dumps(content))
    enable("other", "--off")
    assert "tfguard" not in file.read_text()
    assert json.loads(file.read_text())["metadata"] == {"debugger": True}


def test_a_word_of_a_tfguard_that_moved_is_replaced(kernels: Path, linked: Path) -> None:
    before = write_kernel(kernels / "other", linked)
    enable("other")
    file = kernels / "other/kernel.json"
    old = next(word for word in json.loads(file.read_text())["argv"] if "tfguard" in word)
    file.write_text(file.read_text().replace(old, f"--config=/gone/{CONFIG_FILE}"))
    assert enable("other")["done"] == "enabled"
    assert old in json.loads(file.read_text())["argv"]
    assert "/gone" not in file.read_text()
    enable("other", "--off")
    assert file.read_bytes() == before.encode()


@pytest.mark.skipif(os.name != "posix", reason="file rights")
@pytest.mark.parametrize("why", ["link", "folder"])
def test_a_file_that_must_not_be_changed_is_overridden(
    home: Path, kernels: Path, linked: Path, why: str
) -> None:
    shared = home / "shared" / "kernels" / "other"
    before = write_kernel(shared, linked)
    (shared / "logo-32x32.png").write_bytes(b"png")
    if why == "link":
        (shared / "kernel.json").rename(home / "store.json")
        (shared / "kernel.json").symlink_to(home / "store.json")
    else:
        if os.geteuid() == 0:
            pytest.skip("root may write everywhere")
        shared.chmod(0o500)
    shared_path = str(home / "shared")
    # The shared folder comes after the user's own.
    more = {"JUPYTER_PATH": f"{home / 'data'}{os.pathsep}{shared_path}"}
    change = enable("other", **more)
    assert change["file"] == str(kernels / "other/kernel.json")
    assert (kernels / "other/logo-32x32.png").read_bytes() == b"png"
    assert (shared / "kernel.json").read_bytes() == before.encode()
    assert enable("other", **more)["done"] == "enabled before"
    change = enable("other", "--off", **more)
    assert change["file"] == str(shared / "kernel.json")
    assert not (kernels / "other").exists()


def test_a_stand_in_follows_the_file_it_stands_for(home: Path, kernels: Path, linked: Path) -> None:
    shared = home / "shared" / "kernels" / "other"
    write_kernel(shared, linked)
    (shared / "kernel.json").rename(home / "store.json")
    (shared / "kernel.json").symlink_to(home / "store.json")
    more = {"JUPYTER_PATH": f"{home / 'data'}{os.pathsep}{home / 'shared'}"}
    enable("other", **more)
    write_kernel(home, linked, display_name="New")
    (home / "kernel.json").rename(home / "store.json")
    assert enable("other", **more)["done"] == "enabled"
    assert json.loads((kernels / "other/kernel.json").read_text())["display_name"] == "New"


# --- refusals


def test_an_unknown_name_is_answered_with_the_known_ones(kernels: Path, linked: Path) -> None:
    write_kernel(kernels / "other", linked)
    told = refusal("nix")
    assert "'nix'" in told
    assert "other" in told
    assert "python3" in told


def test_a_kernel_with_its_own_guard_needs_nothing(home: Path) -> None:
    change = enable("python3")
    assert change["done"] == "has its own"
    assert sys.prefix in change["text"]


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        (["ir", "{connection_file}"], "not started by"),
        (["/nowhere/bin/python", "-m", "ipykernel_launcher"], "does not exist"),
        (["/bin/false", "-m", "ipykernel_launcher"], "does not start"),
        (["/bin/echo", "-m", "ipykernel_launcher"], "cannot be asked"),
    ],
    ids=["other-language", "gone", "broken", "no-python"],
)
def test_a_kernel_that_cannot_have_it_is_left_as_it_is(
    kernels: Path, linked: Path, argv: list[str], word: str
) -> None:
    before = write_kernel(kernels / "other", linked, argv=argv)
    assert word in refusal("other")
    assert (kernels / "other/kernel.json").read_bytes() == before.encode()


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"{", "no JSON"),
        (b"[]", "no kernel specification"),
        (b'{"argv": "python"}', "no kernel specification"),
        (b'{"argv": [], "metadata": "x"}', "no kernel specification"),
        (b"\xff\xfe", "cannot be read"),
    ],
)
def test_a_damaged_file_is_one_sentence(kernels: Path, content: bytes, word: str) -> None:
    (kernels / "broken").mkdir(parents=True)
    (kernels / "broken/kernel.json").write_bytes(content)
    for options in ((), ("--off",)):
        told = refusal("broken", *options)
        assert word in told
        assert "broken/kernel.json" in told


def test_a_configuration_file_of_the_users_own_is_not_pushed_aside(
    kernels: Path, linked: Path
) -> None:
    argv = [str(linked), "-m", "ipykernel_launcher", "--config=/my/own.py", "-f", "{x}"]
    write_kernel(kernels / "other", linked, argv=argv)
    assert "/my/own.py" in refusal("other")


def test_a_python_that_is_too_old_is_named(kernels: Path, home: Path) -> None:
    python = home / "python"
    python.write_text("#!/bin/sh\necho '[[3, 9, 18], \"/usr\", [], true]'\n")
    python.chmod(0o700)
    write_kernel(kernels / "other", python)
    assert "Python 3.9.18" in refusal("other")


def test_a_kernel_that_cannot_see_our_files_is_refused(kernels: Path, home: Path) -> None:
    python = home / "python"
    python.write_text("#!/bin/sh\necho '[[3, 12, 1], \"/usr\", [], false]'\n")
    python.chmod(0o700)
    write_kernel(kernels / "other", python)
    assert "container" in refusal("other")


def test_a_wrapper_before_the_interpreter_is_gone_through(kernels: Path, linked: Path) -> None:
    argv = ["env", "A=1", str(linked), "-Xfrozen_modules=off", "-m", "ipykernel_launcher", "-f"]
    write_kernel(kernels / "other", linked, argv=argv)
    assert enable("other")["done"] == "enabled"


# --- the kernel


@pytest.fixture
def server(home: Path, tmp_path: Path) -> Iterator[RecordingServer]:
    found = RecordingServer(tmp_path / "work", home / "tfguard")
    yield found
    found.stop()


LOOK = """
import os, sys
assert os.environ["OWN"] == "1" and os.environ["PYTHONPATH"].endswith("mine"), os.environ
assert not [p for p in sys.path if "tfguard" in p]
assert users_own == 1
found = ("jupyter_tfguard" in sys.modules, sys.modules["ipykernel"].__version__)
import builtins, ctypes; ctypes.CDLL(None).perror(b"last words of %d" % os.getpid())
assert found[0] is GUARDED, found
"""


@pytest.mark.parametrize("environment", ["linked", "older"])
def test_a_kernel_of_another_environment_is_guarded_and_off_ends_it(
    environment: str,
    server: RecordingServer,
    kernels: Path,
    home: Path,
    request: pytest.FixtureRequest,
) -> None:
    """Its recording tells what only the kernel can know, the user's own settings hold, and --off leaves nothing."""
    python: Path = request.getfixturevalue(environment)
    before = write_kernel(kernels / "other", python)
    profile = home / "ipython" / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    own = 'c.InteractiveShellApp.exec_lines = ["users_own = 1"]\nc.InteractiveShellApp.extensions = ["autoreload"]\n'
    (profile / "ipython_kernel_config.py").write_text(own)
    versions = enable("other")["versions"]
    assert (environment == "older") == versions["ipykernel"].startswith("6.29")
    kernel = Kernel(server, "guarded", "other")
    try:
        ran = kernel.run(LOOK.replace("GUARDED", "True"))
        assert ran["status"] == "ok", ran
        report = die(kernel)
    finally:
        kernel.close()
    assert report["cause"] == "sigkill_unattributed"
    assert any("time.sleep(100)" in str(fact) for fact in report["activity"])
    assert "last words of" in json.dumps(report)
    enable("other", "--off")
    assert (kernels / "other/kernel.json").read_bytes() == before.encode()
    kernel = Kernel(server, "bare", "other")
    try:
        ran = kernel.run(LOOK.replace("GUARDED", "False"))
        assert ran["status"] == "ok", ran
        report = die(kernel)
    finally:
        kernel.close()
    assert report["activity"] == []
    assert any("guard was not loaded" in line for line in report["not_checked"])


def die(kernel: Kernel) -> dict[str, Any]:
    kernel.start("import time; time.sleep(100)")
    time.sleep(1.0)
    os.kill(kernel.pid, signal.SIGKILL)
    return kernel.report()


def test_without_a_server_the_kernel_sets_memory_growth_itself(
    kernels: Path, linked: Path, home: Path
) -> None:
    write_kernel(kernels / "other", linked)
    enable("other")
    code = "import os; print(os.environ.get('TF_FORCE_GPU_ALLOW_GROWTH'))"
    assert run_alone(code) == "true\n"
    enable("other", "--off")
    assert run_alone(code) == "None\n"


@pytest.mark.parametrize("environment", ["linked", "older"])
def test_the_doctor_in_such_a_kernel_finds_no_fault_with_it(
    environment: str, kernels: Path, home: Path, request: pytest.FixtureRequest
) -> None:
    """Nothing of ours is installed there, neither a startup file nor a panel: that is as it should be."""
    write_kernel(kernels / "other", request.getfixturevalue(environment))
    enable("other")
    text = run_alone("%tfguard doctor")
    assert "by `jupyter tfguard enable`" in text
    assert "record of a killed process" in text
    assert not [line for line in text.splitlines() if line.startswith(("✕", "?"))], text
    assert "server part" not in text


def test_a_guard_that_vanished_leaves_a_kernel_that_starts(
    kernels: Path, linked: Path, home: Path
) -> None:
    write_kernel(kernels / "other", linked)
    enable("other")
    file = kernels / "other/kernel.json"
    content = json.loads(file.read_text())
    for path in ("/gone", str(broken_package(home))):
        content["argv"][-1] = f"--config={path}/{CONFIG_FILE}"
        file.write_text(json.dumps(content))
        assert run_alone("print(1 + 1)") == "2\n"


def broken_package(home: Path) -> Path:
    """A tfguard of which an uninstall left half."""
    import jupyter_tfguard

    there = home / "half" / "jupyter_tfguard"
    (there / "kernel").mkdir(parents=True)
    package = Path(jupyter_tfguard.__file__).parent
    for name in ("__init__.py", "_version.py", "kernel/enabled_config.py", "kernel/autoload.py"):
        shutil.copy(package / name, there / name)
    return there.parent


_ALONE = """
import sys
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(kernel_name="other", startup_timeout=60)
printed = []
def keep(message):
    if message["msg_type"] in ("stream", "error"):
        printed.append(message["content"].get("text") or str(message["content"]))
client.execute_interactive(sys.argv[1], output_hook=keep, timeout=60)
client.stop_channels(); manager.shutdown_kernel()
print("".join(printed), end="")
"""


def run_alone(code: str) -> str:
    """What a cell prints in the kernel, started without a server."""
    done = subprocess.run(
        [sys.executable, "-c", _ALONE, code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
