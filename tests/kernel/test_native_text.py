"""Native text in a real kernel: seen in the notebook as ever, kept besides."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tests.kernel.rig import GuardedKernel

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


def test_much_native_text_while_the_gil_is_held_does_not_hang(kernel: GuardedKernel) -> None:
    ran = kernel.run(
        "import ctypes\n"
        "write = ctypes.PyDLL(None).write\n"
        "for number in range(4000):\n"
        "    _ = write(2, b'%049d\\n' % number, 50)\n"
        "text = b'x' * 299_999 + b'\\n'\n"
        "_ = write(2, text, len(text))\n"  # one call that a pipe would never take
        "print('done')",
        timeout=30,
    )
    assert ran.stdout == "done\n"
    lines = ran.stderr.splitlines()
    assert lines[:4000] == [f"{number:049d}" for number in range(4000)]
    assert lines[4000] == "x" * 299_999


def test_the_kernel_ends_as_quickly_as_ever_after_native_text(new_kernel: Make) -> None:
    kernel = new_kernel()
    kernel.run("import os; os.write(2, b'some text\\n' * 10_000);")
    began = time.monotonic()
    kernel.shutdown()
    assert time.monotonic() - began < 4.0  # after 5 s the manager would have killed it
    assert kernel.recording_paths() == []


def test_an_option_leaves_the_descriptor_alone(new_kernel: Make, tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    settings = tmp_path / "config" / "jupyter_tfguard_config.json"
    settings.write_text('{"TfGuard": {"keep_native_stderr": false}}')
    kernel = new_kernel()
    assert kernel.run("import os; print(os.readlink('/proc/self/fd/2')[:5])").stdout == "pipe:\n"
    assert kernel.recording().header["guard"]["stderr"] is False
