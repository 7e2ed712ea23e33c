"""Native text in a real kernel: seen in the notebook as ever, kept besides."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

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
        "text = b'x' * ((1 << 20) - 1) + b'\\n'\n"
        "_ = write(2, text, len(text))\n"  # one call that a pipe would never take
        "print('done')",
        timeout=30,
    )
    assert ran.stdout == "done\n"
    lines = ran.stderr.splitlines()
    assert lines[:4000] == [f"{number:049d}" for number in range(4000)]
    assert lines[4000] == "x" * ((1 << 20) - 1)


def test_without_us_the_same_text_hangs_a_kernel_for_ever(new_kernel: Make) -> None:
    # Should this one day fail, ipykernel has mended it, and a reason for the files is gone.
    kernel = new_kernel(environment={"TFGUARD_DISABLE": "1"})
    cell = "import ctypes\nctypes.PyDLL(None).write(2, b'x' * (1 << 20), 1 << 20)\nprint('done')"
    with pytest.raises(AssertionError, match="did not end"):
        kernel.run(cell, timeout=5)


def test_text_that_nobody_could_read_in_time_is_counted_where_it_is_missing(
    kernel: GuardedKernel,
) -> None:
    ran = kernel.run(
        "import ctypes\n"
        "text = b''.join(b'%015d\\n' % n for n in range(1 << 20))\n"  # 16 MiB
        "print(ctypes.PyDLL(None).write(2, text, len(text)))",
        timeout=60,
    )
    assert ran.stdout == f"{1 << 24}\n"
    before, note, after = ran.stderr.partition(
        "\n[tfguard: 8 MiB of native text were not passed on]\n"
    )
    assert note
    assert before.splitlines() == [f"{n:015d}" for n in range(len(before) // 16)]
    assert after.endswith(f"{(1 << 20) - 1:015d}\n")
    recorded = kernel.recording()
    left_out = recorded.header["native_text_dropped_bytes"]
    assert len(before) + left_out + len(after) == 1 << 24
    assert recorded.stderr_tail.endswith(after[-1000:])


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
