"""The runner of the guides: a kernel dies where the guide says so, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from jupyter_tfguard.demo.limits import NAME_PREFIX, NoLimitPossible, make_limit
from jupyter_tfguard.demo.own_limit import limit_memory, remove_left_groups
from jupyter_tfguard.memory.groups import memory_groups
from notebooks.run_guides import GUIDES, GuideFailed, guide_paths, run_guide
from tests.crash.conftest import no_cgroup

DIES = {"tags": ["dies"]}
# Folders of these names are the same on every machine.
_COMMON_FOLDERS = ("/dev/", "/proc/", "/sys/", "/usr/", "/etc/", "/lib/", "/tmp/ipykernel/")


def _guide(path: Path, *cells: tuple[str, dict[str, list[str]]]) -> Path:
    notebook = nbformat.v4.new_notebook()
    for number, (source, metadata) in enumerate(cells):
        notebook.cells.append(
            nbformat.v4.new_code_cell(source, id=f"cell-{number}", metadata=metadata)
        )
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, path)
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="signals of Linux")
def test_a_guide_goes_on_in_the_next_kernel_and_fails_at_a_cell_that_survives(
    tmp_path: Path,
) -> None:
    kill = "import os; os.kill(os.getpid(), 9)"
    cells = [("a = 1", {}), (kill, DIES), ("assert 'a' not in globals()", {}), ("1", DIES)]
    with pytest.raises(GuideFailed, match="still running after cell cell-3"):
        run_guide(_guide(tmp_path / "survives.ipynb", *cells))


@pytest.mark.skipif(sys.platform != "linux", reason="signals of Linux")
def test_a_guide_fails_at_a_death_without_the_tag(tmp_path: Path) -> None:
    cells = [("import os; os._exit(3)", {})]
    with pytest.raises(GuideFailed, match=r"died in cell cell-0: .*3"):
        run_guide(_guide(tmp_path / "dies.ipynb", *cells))


@pytest.mark.quick
def test_a_second_call_changes_the_limit_and_groups_of_ended_kernels_are_removed() -> None:
    try:
        make_limit(1 << 28).remove()
    except NoLimitPossible as no:
        no_cgroup(str(no))
    script = """
import os
from jupyter_tfguard.memory.groups import memory_groups
from jupyter_tfguard.demo import limit_memory
for gib in (0.25, 0.5):
    limit_memory(gib)
    own = memory_groups(os.getpid())[0]
    assert own.limit_bytes() == int(gib * 2**30), own
print(os.path.basename(own.directory))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True
    )
    *lines, name = done.stdout.splitlines()
    assert [line.partition(".")[0] for line in lines] == [
        "Memory limit of this kernel: 256 MiB",
        "Memory limit of this kernel: 512 MiB",
    ]
    assert name.startswith(NAME_PREFIX)
    remove_left_groups()
    for group in memory_groups(os.getpid()):
        assert not Path(group.directory, name).exists()


@pytest.mark.quick
def test_a_limit_above_the_free_memory_is_refused() -> None:
    with pytest.raises(NoLimitPossible, match=r"less than .*Do not run the next cell"):
        limit_memory(gib=1e6)


@pytest.mark.quick
@pytest.mark.parametrize("path", guide_paths(), ids=lambda path: path.stem)
def test_a_stored_guide_was_run_and_names_no_machine(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell, after in zip(code, [*code[1:], None], strict=True):
        if "dies" in cell.metadata.get("tags", []):
            assert after is not None, cell["id"]
            assert after.source.startswith("%tfguard why"), cell["id"]
            assert after.outputs, after["id"]
    for word in path.read_text(encoding="utf-8").split():
        if word.lstrip("\"'(=`").startswith(("/home/", "/root/", "/tmp/", "/work/", "/var/")):
            assert word.lstrip("\"'(=`").startswith(_COMMON_FOLDERS), word


@pytest.mark.quick
def test_there_are_guides() -> None:
    assert GUIDES.is_dir()
