"""How the guard comes into a kernel: quietly, once, and only when it is wanted."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_tfguard.record.stderr_tail import PARTS
from tests.kernel.rig import GuardedKernel, run_terminal

Make = Callable[..., GuardedKernel]

THREADS = (
    "import threading; print(sorted(t.name for t in threading.enumerate() if 'tfguard' in t.name))"
)


def test_the_guard_loads_without_a_word(kernel: GuardedKernel) -> None:
    ran = kernel.run("")
    assert ran.text == ""
    assert len(kernel.recording_paths()) == 1
    assert kernel.problems() == ""


def test_it_imports_no_tensorflow_and_leaves_no_name(kernel: GuardedKernel) -> None:
    ran = kernel.run(
        "import sys\n"
        "print([m for m in ('tensorflow', 'keras', 'numpy', 'pynvml') if m in sys.modules])\n"
        "print([n for n in globals() if 'tfguard' in n.lower()])\n"
        "print(__doc__)"
    )
    assert ran.stdout.splitlines() == [
        "[]",
        "[]",
        "Automatically created module for IPython interactive environment",
    ]


def test_growth_is_set_with_our_marker(kernel: GuardedKernel) -> None:
    ran = kernel.run(
        "import os; print(os.environ['TF_FORCE_GPU_ALLOW_GROWTH'], os.environ['TFGUARD_SET_GROWTH'])"
    )
    assert ran.stdout == "true 1\n"


def test_the_header_shows_who_this_is(kernel: GuardedKernel) -> None:
    header = kernel.recording().header
    assert header["kernel_id"] == kernel.kernel_id
    assert header["kernel_name"] == "python3"
    assert header["pid"] == kernel.pid
    assert header["parent_pid"] == os.getpid()
    assert header["watcher_pid"] is None
    assert header["notebook_path"] is None
    assert set(header["versions"]) >= {"python", "ipython", "ipykernel", "jupyter_tfguard"}
    inode = int(kernel.run("import os; print(os.fstat(2).st_ino)").stdout)
    assert header["guard"]["stderr_pipe"]["inode"] == inode
    shared = [header["guard"].pop(f"stderr_{name}") for name in PARTS]
    assert all(set(part) == {"descriptor", "inode"} for part in shared)
    assert header["guard"]["stop"].pop("stop_bytes") > 0
    assert header["guard"] == {
        "growth": None,
        "faulthandler": "ours",
        "stderr": True,
        "stop": {"state": "on", "level": "soft", "notes": [], "patched": ["Python"]},
        "problems": [],
    }


def test_loading_by_hand_prints_one_line_each_time_and_makes_no_second_guard(
    kernel: GuardedKernel,
) -> None:
    before = kernel.run(THREADS).stdout
    for name in ("tfguard", "tfguard", "jupyter_tfguard"):
        line = kernel.run(f"%load_ext {name}").text
        assert line.startswith("tfguard 0.")
        assert "guarding this kernel" in line
        assert line.count("\n") == 1
        assert "growth" not in line  # no TensorFlow here, so nothing speaks of it
    assert kernel.run(THREADS).stdout == before
    assert len(kernel.recording_paths()) == 1


def test_other_extensions_load_as_ever(kernel: GuardedKernel) -> None:
    assert kernel.run("%load_ext autoreload").text == ""
    assert "already loaded" in kernel.run("%load_ext autoreload").text


def test_a_growth_value_of_the_users_own_wins(new_kernel: Make) -> None:
    kernel = new_kernel(environment={"TF_FORCE_GPU_ALLOW_GROWTH": "false"})
    ran = kernel.run(
        "import os; print(os.environ['TF_FORCE_GPU_ALLOW_GROWTH'], 'TFGUARD_SET_GROWTH' in os.environ)"
    )
    assert ran.stdout == "false False\n"


def test_the_environment_switches_it_off(new_kernel: Make) -> None:
    kernel = new_kernel(environment={"TFGUARD_DISABLE": "1"})
    assert kernel.run(THREADS).stdout == "[]\n"
    assert kernel.recording_paths() == []
    # A notebook written with the guard runs to its end: each line prints the same sentence.
    for code in ("%tfguard status", "%tfguard estimate model.fit(x)", "%load_ext tfguard"):
        ran = kernel.run(code)
        assert ran.error is None
        assert "switched off" in ran.text
        assert "TFGUARD_DISABLE" in ran.text
        assert ran.text.count("\n") == 1
    assert kernel.run("%unload_ext tfguard").text == ""
    assert kernel.recording_paths() == []


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config/jupyter_tfguard_config.json", '{"TfGuard": {"enabled": false}}'),
        ("ipython/profile_default/ipython_kernel_config.py", "c.TfGuard.enabled = False\n"),
    ],
)
def test_a_file_switches_it_off(new_kernel: Make, tmp_path: Path, file: str, content: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(content)
    kernel = new_kernel()
    assert kernel.recording_paths() == []
    assert "TfGuard.enabled is false" in kernel.run("%load_ext tfguard").text


def test_a_broken_settings_file_is_noted_and_the_guard_runs(
    new_kernel: Make, tmp_path: Path
) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "jupyter_tfguard_config.json").write_text("{")
    kernel = new_kernel()
    assert len(kernel.recording_paths()) == 1
    assert "Could not read " in kernel.problems()


def test_a_broken_guard_writes_it_down_and_the_kernel_lives(new_kernel: Make) -> None:
    kernel = new_kernel(
        before="import sys; sys.modules['jupyter_tfguard.kernel.session'] = None; del sys"
    )
    assert kernel.run("print(6 * 7)").text == "42\n"
    problem = json.loads(kernel.problems())
    assert problem["place"] == "kernel start"
    assert "jupyter_tfguard.kernel.session" in problem["what"]


def test_a_startup_file_that_was_left_behind_says_nothing(new_kernel: Make) -> None:
    kernel = new_kernel(before="import sys; sys.modules['jupyter_tfguard'] = None; del sys")
    assert kernel.run("print(6 * 7)").text == "42\n"
    assert kernel.problems() == ""


def test_an_unusable_folder_leaves_a_living_kernel_with_growth(
    new_kernel: Make, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    kernel = new_kernel(environment={"TFGUARD_DIR": str(tmp_path / "file" / "below")})
    assert kernel.run("import os; print(os.environ['TF_FORCE_GPU_ALLOW_GROWTH'])").text == "true\n"
    line = kernel.run("%load_ext tfguard").text
    assert "nothing is recorded" in line
    assert "is not usable" in line
    assert "of" in kernel.run("%tfguard status").text.splitlines()[1]


def test_a_server_that_watches_is_distinguished_from_one_that_does_not(new_kernel: Make) -> None:
    watched = new_kernel(environment={"TFGUARD_WATCHER_PID": str(os.getpid())})
    assert "tracked by the Jupyter server" in watched.run("%load_ext tfguard").text
    watched.close()
    unwatched = new_kernel(environment={"JPY_SESSION_NAME": "a/train.ipynb"})
    assert "restart Jupyter, then reload this page" in unwatched.run(
        "%load_ext tfguard"
    ).text.replace("R", "r")
    paths = [
        json.loads((path / "header.json").read_text())["notebook_path"]
        for path in unwatched.recording_paths()
    ]
    assert "a/train.ipynb" in paths


def test_a_terminal_is_left_alone(new_kernel: Make) -> None:
    kernel = new_kernel()
    count = len(kernel.recording_paths())
    ran = run_terminal(kernel, "import os; print('TF_FORCE_GPU_ALLOW_GROWTH' in os.environ)")
    assert ran.stdout.strip() == "False"
    assert len(kernel.recording_paths()) == count
    loaded = run_terminal(kernel, "%load_ext tfguard\n%tfguard status\nprint('next')")
    assert loaded.returncode == 0
    first, second, after = loaded.stdout.splitlines()
    assert first == second
    assert first.endswith("works in Jupyter kernels only; it does nothing here.")
    assert after == "next"


POSIX_NAMES_GONE = """
import os, signal, sys
for name in ("register_at_fork", "pidfd_open", "waitid", "fork", "geteuid", "getuid", "posix_fallocate",
             "sched_getaffinity", "fchmod", "fstatvfs", "statvfs"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGHUP", "SIGXCPU", "SIGQUIT", "SIGUSR1", "sigwait"):
    if hasattr(signal, name):
        delattr(signal, name)
import faulthandler
del faulthandler.register, faulthandler.unregister
sys.modules["fcntl"] = sys.modules["resource"] = sys.modules["pwd"] = sys.modules["grp"] = None
sys.platform = "win32"
del os, signal, sys, faulthandler, name
"""


def test_it_starts_with_every_posix_name_missing(new_kernel: Make) -> None:
    kernel = new_kernel(before=POSIX_NAMES_GONE)
    line = kernel.run("%load_ext tfguard").text
    assert "guarding this kernel" in line
    assert line.count("\n") == 1
    assert kernel.run("%tfguard").text.startswith("tfguard")
    recorded = kernel.recording()
    assert [event["kind"] for event in recorded.events][:2] == ["cell_start", "cell_end"]
    assert recorded.header["guard"]["stderr"] is False
    assert recorded.samples[-1].get("process.rss_bytes")


def test_what_the_startup_file_loaded_can_be_unloaded_and_loaded_again(new_kernel: Make) -> None:
    kernel = new_kernel()
    assert kernel.run("%unload_ext tfguard").text == ""
    assert kernel.run(THREADS).stdout == "[]\n"
    assert kernel.recording_paths() == []
    assert "guarding this kernel" in kernel.run("%load_ext tfguard").text
    assert len(kernel.recording_paths()) == 1
    assert kernel.run("import os; os.write(2, b'kept\\n')").stderr == "kept\n"
    assert kernel.recording().stderr_tail.endswith("kept\n")
    assert "guarding this kernel" in kernel.run("%reload_ext tfguard").text
