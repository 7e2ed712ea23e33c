"""Programs that use file descriptor 2 do the same in a guarded kernel as in a bare one."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kernel.rig import GuardedKernel, Ran, guarded_kernel
from tests.rigs.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="fd 2 is left alone on Windows")

SHELL = """
import subprocess
def sh(script, **how):
    print(subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, **how))
"""
PROGRAMS = {
    "a script that opens /dev/stderr": (
        "for n in range(10):\n    sh('echo line 1 >&2; echo line 2 >&2; echo line 3 > /dev/stderr')"
    ),
    "lines by both ways": (
        "sh('for n in $(seq 50); do echo $n a >&2; echo $n b > /dev/stderr; done')"
    ),
    "twenty children in a row": "for n in range(20):\n    sh(f'echo child {n} | tee /dev/stderr')",
    "dd": "sh('seq 20000 | dd of=/dev/stderr status=none')",
    "os.open": (
        "import os\nfd = os.open('/dev/stderr', os.O_WRONLY)\nfor n in range(100):\n"
        "    os.write(2, b'by number\\n')\n    os.write(fd, b'by name\\n')\nos.close(fd)"
    ),
    "logging": (
        "import logging\nhandler = logging.FileHandler('/dev/stderr')\nlogger = logging.Logger('test')\n"
        "logger.addHandler(handler)\nfor n in range(100):\n    logger.error('record %d', n)\nhandler.close()"
    ),
    "a child that reads it": "sh('cat <&2; echo status $? >&2; echo after >&2')",
    "lseek": (
        "import os\ntry:\n    os.lseek(2, 0, 0)\nexcept OSError as bad:\n    print(bad)\n"
        "os.write(2, b'after\\n');"
    ),
    "epoll": (
        "import os, select\nwith select.epoll() as poll:\n    poll.register(2, select.EPOLLOUT)\n"
        "    print(poll.poll(5))\nos.write(2, b'after\\n');"
    ),
    "asyncio": (
        "child = '''\nimport asyncio, sys\nasync def main():\n"
        "    loop = asyncio.get_running_loop()\n"
        "    transport, _ = await loop.connect_write_pipe(asyncio.Protocol, sys.stderr)\n"
        "    transport.write(b'by asyncio\\\\n')\n    transport.close()\nasyncio.run(main())\n'''\n"
        "import sys\nprint(subprocess.run([sys.executable, '-c', child]).returncode)\n"
        "import os; os.set_blocking(2, True)"
    ),
    "a limit on file sizes": "sh('ulimit -f 8; seq 20000 >&2; echo status $? >&2')",
    "a forked child": (
        "import os\npid = os.fork()\nif not pid:\n    os.write(2, b'of the child\\n')\n    os._exit(0)\n"
        "print(os.waitpid(pid, 0)[1])"
    ),
    "a redirection of its own": (
        "import os, tempfile\nsaved = os.dup(2)\nwith tempfile.TemporaryFile() as file:\n"
        "    os.dup2(file.fileno(), 2)\n    os.write(2, b'hidden\\n')\n    os.dup2(saved, 2)\n"
        "    file.seek(0)\n    print(file.read())\nos.close(saved)\nos.write(2, b'shown\\n');"
    ),
    "NUL bytes and broken UTF-8": "import os\nos.write(2, b'a\\0b\\xff\\xc3\\xa9\\n');",
}
# Ignores SIGPIPE, so that the write itself fails.
OUTLIVES = """
import subprocess
script = "trap '' PIPE; until [ -e go ]; do sleep 0.05; done; while echo more >&2; do sleep 0.05; done; echo > result"
print(subprocess.Popen(["sh", "-c", script], cwd={folder!r}, stdin=subprocess.DEVNULL).pid)
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[GuardedKernel, ...]]:
    """A guarded and a bare one."""
    guarded, bare = tmp_path_factory.mktemp("guarded"), tmp_path_factory.mktemp("bare")
    with (
        guarded_kernel(guarded) as first,
        guarded_kernel(bare, environment={"TFGUARD_DISABLE": "1"}) as second,
    ):
        for kernel in (first, second):
            kernel.run(SHELL)
        yield first, second


def both(kernels: tuple[GuardedKernel, ...], code: str) -> tuple[Ran, ...]:
    return tuple(kernel.run(code) for kernel in kernels)


@pytest.mark.parametrize("code", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_a_program_does_the_same(kernels: tuple[GuardedKernel, ...], code: str) -> None:
    guarded, bare = both(kernels, code)
    assert guarded == bare
    assert guarded.error is None
    assert guarded.text


def test_native_text_that_ends_a_cell_comes_before_its_idle(
    kernels: tuple[GuardedKernel, ...],
) -> None:
    """nbclient keeps nothing that comes later. A bare kernel gives no such promise, but nearly always does so."""
    guarded, _ = kernels
    texts = []
    for number in range(40):
        request = guarded.send(f"import os; os.write(2, b'cell {number}\\n');")
        texts.append(guarded.finish(request, quiet_seconds=0).stderr)
    assert texts == [f"cell {number}\n" for number in range(40)]


@pytest.mark.parametrize("environment", [{}, {"TFGUARD_DISABLE": "1"}], ids=["guarded", "bare"])
def test_the_writes_of_a_child_that_outlives_the_kernel_fail(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    result = tmp_path / "result"
    with guarded_kernel(tmp_path, environment=environment) as kernel:
        child = int(kernel.run(OUTLIVES.format(folder=str(tmp_path))).stdout)
        try:
            kernel.die("import os; os.kill(os.getpid(), 9)")
            (tmp_path / "go").touch()
            wait_until(result.exists, "a write of the child that fails")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
