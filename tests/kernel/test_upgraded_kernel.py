"""An upgrade under a running kernel: each magic answers, or says in one sentence that the kernel must be restarted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import jupyter_tfguard
from jupyter_tfguard.installed import changed_since
from jupyter_tfguard.kernel.magics import actions
from tests.kernel.rig import GuardedKernel

Make = Callable[..., GuardedKernel]
UPGRADED = "jupyter-tfguard was upgraded or removed on disk after this kernel started. Restart the kernel to use "


def test_every_magic_answers_after_an_upgrade(new_kernel: Make, tmp_path: Path) -> None:
    copy = tmp_path / "site" / "jupyter_tfguard"
    shutil.copytree(
        Path(jupyter_tfguard.__file__).parent,
        copy,
        ignore=shutil.ignore_patterns("__pycache__", "labextension", "*.pyc"),
    )
    for path in copy.rglob("*.py"):
        os.utime(path, (1e9, 1e9))
    path = os.pathsep.join([str(copy.parent), str(Path(__file__).parents[2])])
    kernel = new_kernel(environment={"PYTHONPATH": path})
    assert str(copy) in kernel.run("import jupyter_tfguard; print(jupyter_tfguard.__file__)").stdout
    assert "upgraded" not in kernel.run("%tfguard status").text

    # What is loaded still answers, with one line more.
    (copy / "units.py").write_text("# The next version has no such names.\n")
    whole = kernel.run("%tfguard status")
    assert "resident memory of this kernel" in whole.stdout
    assert whole.stdout.splitlines()[-1] == f"{UPGRADED}the new version."
    assert whole.error is None

    # What is not loaded yet does not fit any more, or is gone.
    new_names = "from ..units import a_name_of_the_next_version\n"
    for file in (
        "report/text.py",
        "predict/estimate.py",
        "predict/room.py",
        "kernel/panel/widget.py",
    ):
        (copy / file).write_text(new_names)
    (copy / "report" / "announce.py").write_text("not Python of this version !\n")
    shutil.rmtree(copy / "doctor")
    for name in actions():
        argument = " model.fit(x)" if name in ("estimate", "batch") else ""
        ran = kernel.run(f"%tfguard {name}{argument}")
        assert ran.error is None, name
        assert "Error" not in ran.stdout, name
        assert ran.stderr == "", name
        last = ran.stdout.splitlines()[-1]
        assert last.startswith(UPGRADED), name
        failed = name in ("why", "panel", "estimate", "batch")
        assert last.endswith(f"%tfguard {name}." if failed else "the new version."), last
    assert "Traceback" not in kernel.run("6 * 7").text


def test_an_upgrade_is_seen_by_time_version_or_absence(tmp_path: Path) -> None:
    def package(name: str, version: str, written: float) -> Path:
        folder = tmp_path / name
        (folder / "room").mkdir(parents=True)
        (folder / "_version.py").write_text(f'__version__ = "{version}"\n')
        (folder / "room" / "part.py").write_text("")
        for path in folder.rglob("*.py"):
            os.utime(path, (written, written))
        return folder

    version = jupyter_tfguard.__version__
    assert not changed_since(1000.0, package("same", version, 900.0))
    assert changed_since(1000.0, package("written later", version, 1100.0))
    assert not changed_since(1000.0, package("a clock that was wrong", version, 4e9))
    assert changed_since(1000.0, package("linked older files", "99.0", 900.0))
    assert changed_since(1000.0, tmp_path / "gone")
