"""Children of a kernel, however they are made, hold nothing of its recording and write nothing to it."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from jupyter_tfguard.postmortem.detect import each_orphan
from jupyter_tfguard.record.alive import lock_is_held
from tests.kernel.rig import GuardedKernel, guarded_kernel
from tests.rigs.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="procfs shows descriptors")

ROOT = Path(__file__).parents[2]

# What every child does: tells which of our descriptors it has, and writes what it can. What atexit knows is run by the
# rig: in a forked ipykernel that hangs for ever, with and without us.
CHILD = r"""
import json, os, sys
def look(way):
    found = []
    for number in os.listdir('/proc/self/fd'):
        try:
            target = os.readlink(f'/proc/self/fd/{number}')
        except OSError:
            continue
        # Those are open only while another thread of the kernel writes to them, which a fork may hit.
        momentary = target.endswith(('.ring', '.json'))
        if number != '2' and 'recordings/' in target and not momentary:
            found.append(target)
    guard = sys.modules.get('jupyter_tfguard.kernel.current')
    if guard is not None:
        assert guard.current() is None
        if guard.of_parent() is not None:
            from jupyter_tfguard.record.events import Import
            guard.of_parent().emit(Import(module='of-a-child', version=way))
            guard.of_parent()._at_exit('of-a-child')
    with open('seen.jsonl', 'a') as file:
        file.write(json.dumps({'way': way, 'pid': os.getpid(), 'found': found}) + '\n')
"""
WAYS = {
    "fork": "pid = os.fork()\nif pid == 0:\n    look('fork')\n    os._exit(0)\nprint(os.waitpid(pid, 0)[1])",
    "double": """
pid = os.fork()
if pid == 0:
    if os.fork() == 0:
        look('double')
    os._exit(0)
print(os.waitpid(pid, 0)[1])
""",
    "subprocess": "print(subprocess.run([sys.executable, 'child.py', 'subprocess']).returncode)",
    "no close_fds": "print(subprocess.run([sys.executable, 'child.py', 'no close_fds'], close_fds=False).returncode)",
    "preexec": "print(subprocess.run([sys.executable, 'child.py', 'preexec'], preexec_fn=os.getpid).returncode)",
    "posix_spawn": """
pid = os.posix_spawn(sys.executable, [sys.executable, 'child.py', 'posix_spawn'], os.environ)
print(os.waitpid(pid, 0)[1])
""",
    "system": "print(os.system(f'{sys.executable} child.py system'))",
    **{
        method: f"""
import multiprocessing
process = multiprocessing.get_context('{method}').Process(target=exec, args=(source + "look('{method}')", {{}}))
process.start(); process.join(); print(process.exitcode)
"""
        for method in ("spawn", "forkserver")
    },
    "multiprocessing fork": """
process = multiprocessing.get_context('fork').Process(target=look, args=('multiprocessing fork',))
process.start(); process.join(); print(process.exitcode)
""",
    "pool": """
with multiprocessing.get_context('fork').Pool(2) as pool:
    pool.map(look, ['pool'])
print(0)
""",
}


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> GuardedKernel:
    with guarded_kernel(tmp_path_factory.mktemp("forks")) as made:
        (made.folder / "work" / "child.py").write_text(f"{CHILD}\nlook(sys.argv[1])")
        ran = made.run(f"{CHILD}\nimport multiprocessing, subprocess\nsource = {CHILD!r}")
        assert ran.error is None
        yield made


@pytest.mark.parametrize("way", WAYS)
def test_a_child_leaves_the_recording_alone(kernel: GuardedKernel, way: str) -> None:
    ran = kernel.run(WAYS[way])
    assert (ran.error, ran.stdout) == (None, "0\n"), ran

    def told() -> list[dict[str, object]] | None:
        path = kernel.folder / "work" / "seen.jsonl"
        seen = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [entry for entry in seen if entry["way"] == way] or None

    (entry,) = wait_until(told, f"the child of {way}")
    assert entry["found"] == []
    assert entry["pid"] != kernel.pid
    contents = kernel.recording()
    assert contents.end is None
    assert "of-a-child" not in json.dumps([contents.events, contents.header])
    cells = [event for event in contents.events if event["kind"] == "cell_start"]
    assert contents.events[-1]["kind"] == "cell_end"
    assert WAYS[way].strip()[:20] in str(cells[-1]["head"])
    assert contents.samples == sorted(contents.samples, key=lambda sample: sample.sequence)
    assert lock_is_held(contents.path)
    assert kernel.problems() == ""


def test_a_grandchild_that_outlives_the_kernel_hides_no_death(tmp_path: Path) -> None:
    with guarded_kernel(tmp_path) as kernel:
        ran = kernel.run(
            "import os, time\npid = os.fork()\nif pid == 0:\n    inner = os.fork()\n    if inner == 0:\n"
            "        time.sleep(60)\n    os.write(1, b'%d' % inner)\n    os._exit(0)\nos.waitpid(pid, 0)[1]"
        )
        inner = int(ran.stdout)
        kernel.die("import signal; os.kill(os.getpid(), signal.SIGKILL)")
        os.kill(inner, 0)  # it lives
        try:
            assert len(list(each_orphan(kernel.data / "recordings"))) == 1
        finally:
            os.kill(inner, signal.SIGKILL)
