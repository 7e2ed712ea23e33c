"""Native text in a real kernel: seen in the notebook as ever, kept besides."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kernel.rig import GuardedKernel
from tests.rigs.waiting import wait_until

Make = Callable[..., GuardedKernel]


def test_native_text_reaches_the_notebook_and_the_file(kernel: GuardedKernel) -> None:
    ran = kernel.run(
        "import os\nos.write(2, b'native\\n')\n!echo from a child >&2\nos.system('echo system >&2');"
    )
    # ipykernel's shell escape reads its child through a terminal of its own.
    assert "native\n" in ran.stderr
    assert "system\n" in ran.stderr
    assert "from a child" in ran.text
    assert {"native", "system"} <= set(kernel.recording().stderr_tail.splitlines())


def test_python_text_is_not_kept_and_not_doubled(kernel: GuardedKernel) -> None:
    ran = kernel.run("import sys; print('python level', file=sys.stderr)")
    assert ran.stderr == "python level\n"
    assert "python level" not in kernel.recording().stderr_tail


def test_more_native_text_than_a_bare_kernel_takes_while_the_gil_is_held(
    kernel: GuardedKernel,
) -> None:
    ran = kernel.run(
        "import ctypes\n"
        "write = ctypes.PyDLL(None).write\n"
        "for number in range(4000):\n"
        "    _ = write(2, b'%049d\\n' % number, 50)\n"
        "print('done')"
    )
    assert ran.stdout == "done\n"
    assert ran.stderr.splitlines() == [f"{number:049d}" for number in range(4000)]


def test_the_kernel_leaves_by_itself_after_native_text(new_kernel: Make) -> None:
    kernel = new_kernel()
    kernel.run("import os; os.write(2, b'some text\\n' * 10_000);")
    process = kernel.manager.provisioner.process
    kernel.shutdown()
    assert process.wait(60) == 0  # not killed by its manager
    assert kernel.recording_paths() == []


def test_an_option_leaves_the_descriptor_alone(new_kernel: Make, tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    settings = tmp_path / "config" / "jupyter_tfguard_config.json"
    settings.write_text('{"TfGuard": {"record_stderr": false}}')
    kernel = new_kernel()
    names = kernel.run("import threading; print([t.name for t in threading.enumerate()])").stdout
    assert "tfguard-stderr" not in names
    assert "tfguard" in names
    assert kernel.recording().header["guard"]["stderr"] is False


# The assertion writes its line and aborts in one call, while the GIL is held.
ASSERTION = """
import ctypes, os
c = ctypes.PyDLL(None)
c.write(2, b"written before\\n", 15)
c.__assert_fail(b"the last line", b"tensor.cc", 607, b"f")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the helper process is for Linux")
@pytest.mark.parametrize("capture", [True, False], ids=["", "capture_fd_output=False"])
def test_the_last_line_of_an_unwatched_kernel_reaches_its_stderr(
    new_kernel: Make, tmp_path: Path, capture: bool
) -> None:
    profile = tmp_path / "ipython" / "profile_default"
    profile.mkdir(parents=True)
    settings = {"IPKernelApp": {"capture_fd_output": capture}}
    (profile / "ipython_kernel_config.json").write_text(json.dumps(settings))
    kernel = new_kernel()
    kernel.run("import os; os.write(2, b'in a cell\\n');")
    kernel.die(ASSERTION)
    log = kernel.folder / "kernel-output.txt"
    wait_until(lambda: "the last line" in log.read_text(), "the last line in the log")
    wait_until(lambda: "the last line" in kernel.recording().stderr_tail, "and in the recording")
    for line in ("in a cell", "written before", "the last line"):
        assert log.read_text().count(line) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="the helper process is for Linux")
def test_the_helper_ends_with_the_guard_and_with_the_kernel(new_kernel: Make) -> None:
    kernel = new_kernel()
    pipe = kernel.recording().header["guard"]["stderr_pipe"]["inode"]
    helpers = wait_until(lambda: holders(pipe) - {kernel.pid}, "the helper")
    assert kernel.run("import psutil; print(psutil.Process().children())").stdout == "[]\n"
    kernel.run("%unload_ext jupyter_tfguard")
    wait_until(lambda: not holders(pipe), "the helper's end")
    kernel.run("%load_ext jupyter_tfguard")
    pipe = kernel.recording().header["guard"]["stderr_pipe"]["inode"]
    assert helpers.isdisjoint(wait_until(lambda: holders(pipe) - {kernel.pid}, "another helper"))
    kernel.shutdown()
    wait_until(lambda: not holders(pipe), "its end")


def holders(pipe: int) -> set[int]:
    """Processes that have this pipe open."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*/fd"):
        with contextlib.suppress(OSError):  # the process ends meanwhile
            for path in folder.iterdir():
                with contextlib.suppress(OSError):  # or closes it
                    if os.readlink(path) == f"pipe:[{pipe}]":
                        found.add(int(folder.parts[2]))
    return found
