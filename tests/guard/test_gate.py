"""The gate on real allocations, in processes with a real memory limit: what is refused, what is placed on disk, what is restored."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jupyter_tfguard.errors import SourceUnavailable
from jupyter_tfguard.guard.native import NativeGuard
from jupyter_tfguard.units import GIB, MIB
from tests.crash.conftest import needed_limit
from tests.rigs.waiting import DEADLINE_SECONDS

ROOT = Path(__file__).parents[2]
ET_EXEC = 2  # in the header of an ELF file: not position-independent
PYTHON = sys.executable  # tests/soak/gate_versions.py sets others
try:
    NativeGuard.load()
except SourceUnavailable as absent:
    pytest.skip(str(absent), allow_module_level=True)


def run(name: str, limit_mib: int = 512, python: str | None = None, **environment: str) -> Any:
    """What a program of gate_programs.py, gate_threads.py or gate_packages.py found."""
    with (
        needed_limit(limit_mib * MIB) as limit,
        subprocess.Popen(
            [python or PYTHON, "-m", "tests.guard.gate_programs", name],
            cwd=ROOT,
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as child,
    ):
        limit.add(child.pid)
        out, errors = child.communicate("\n", timeout=2 * DEADLINE_SECONDS)
        assert child.returncode == 0, errors[-2000:]
    return json.loads(out)


def test_numpy_gets_a_memory_error_and_the_process_goes_on() -> None:
    found = run("numpy_is_refused")
    assert found["parts"]["numpy"] is None
    assert found["ones"]["error"] == "MemoryError"
    assert "Unable to allocate 2.00 GiB" in found["ones"]["text"]
    assert found["ones"]["refused_count"]["numpy"] == 1
    assert found["ones"]["last_refused_bytes"] == 2 * GIB
    assert 0 < found["ones"]["last_refused_available_bytes"] <= 512 * MIB
    assert found["grown"]["error"] == "MemoryError"
    assert found["small"]["error"] is None
    assert found["sum"] == 4 * MIB
    assert found["whole"]


def test_the_python_of_debian_and_ubuntu_is_guarded_too() -> None:
    # It is not position-independent, so `malloc` has a second address in it.
    python = Path("/usr/bin/python3")
    if not python.exists() or python.read_bytes()[16] != ET_EXEC:
        pytest.skip(f"{python} is missing, or position-independent")
    packages = os.pathsep.join((str(ROOT), *(path for path in sys.path if "site-packages" in path)))
    version = subprocess.run(
        [python, "-c", "import sys; print(*sys.version_info[:2])"],
        capture_output=True,
        check=True,
        text=True,
    )
    if version.stdout.split() != [str(part) for part in sys.version_info[:2]]:
        pytest.skip(f"NumPy is not made for {python}")
    found = run("numpy_is_refused", python=str(python), PYTHONPATH=packages)
    assert found["parts"]["numpy"] is None
    assert found["parts"]["python"] is None
    assert found["ones"]["error"] == "MemoryError"
    assert found["ones"]["refused_count"]["numpy"] == 1
    tensors = run("tensorflow", limit_mib=1536, python=str(python), PYTHONPATH=packages)
    check_tensorflow(tensors)


def test_a_fourier_transform_gets_a_memory_error() -> None:
    found = run("fourier_transform")
    assert found["part"] is None
    assert found["seen"]["error"] == "MemoryError"
    assert found["seen"]["refused_count"]["numpy"] == 1
    assert found["small"]["error"] is None
    assert found["small"]["same"]


def test_a_huge_sparse_array_is_kept_on_disk() -> None:
    found = run("huge_sparse_array")
    assert found["error"] is None
    assert found["sum"] == 3 * 64
    assert found["spilled_bytes"] == 3 * GIB
    assert not found["trip_count"]


def test_an_empty_array_of_the_user_may_be_larger_than_memory_and_a_filled_one_may_not() -> None:
    found = run("empty_of_the_user")
    for level in ("full", "soft"):
        assert found[level]["seen"]["error"] is None
        assert found[level]["seen"]["sum"] == 3 * 16
        assert found[level]["seen"]["after"] == 8 * MIB
        assert found[level]["filled"]["error"] == "MemoryError"
        assert found[level]["computed"]["error"] == "MemoryError"
    assert found["full"]["seen"]["spilled_bytes"] == 3 * GIB
    assert found["soft"]["seen"]["spilled_bytes"] == 0


def test_packages_in_a_folder_of_another_name_are_no_user_code(tmp_path: Path) -> None:
    # As after `pip install --target`.
    core = Path(np.__file__).parents[1]
    for name in ("numpy", "numpy.libs"):
        if (core / name).exists():
            (tmp_path / name).symlink_to(core / name)
    found = run("numpy_is_refused", PYTHONPATH=os.pathsep.join((str(tmp_path), str(ROOT))))
    assert found["folder"] == str(tmp_path)
    assert found["ones"]["error"] == "MemoryError"
    assert found["ones"]["spilled_bytes"] == 0


def test_an_array_of_zeros_that_waits_for_its_use_makes_the_next_one_fail_no_sooner() -> None:
    found = run("zeros_before_ones")
    for level in ("full", "soft"):
        assert found[level]["seen"]["error"] is None, found[level]["seen"]
        assert found[level]["seen"]["sums"] == [5, 300]
        assert found[level]["empty"]["error"] is None
        assert found[level]["resized"]["error"] is None
        # Two threads that fill their arrays at the same moment: one has to wait or fail.
        assert found[level]["threads"]["ended"][0] == "300"
    assert found["full"]["seen"]["spilled_bytes"] == 300 * MIB
    assert found["soft"]["seen"]["spilled_bytes"] == 0


def test_a_result_that_will_be_filled_counts_when_its_work_arrays_are_requested() -> None:
    for seen in run("result_that_will_be_filled").values():
        assert seen["error"] == "MemoryError", seen
        assert seen["spilled_bytes"] == 0


def test_a_block_that_is_filled_slowly_counts_for_a_while() -> None:
    found = run("slowly_filled")
    assert found["soon"]["error"] == "MemoryError"
    assert found["late"]["error"] is None


def test_a_refusal_is_no_second_stop_of_code_that_ignored_the_first() -> None:
    found = run("refused_after_it_went_on")
    assert found["refused"]
    assert found["error"] == "Stopped", found


def test_memory_that_malloc_only_keeps_is_given_back_instead_of_a_stop() -> None:
    found = run("freed_between_blocks")
    assert found["held_bytes"] > 200 * MIB
    assert (found["first"]["error"], found["first"]["trip_count"]) == (None, 0)
    assert found["count"] == 325
    assert found["all"]["error"] in ("Stopped", "MemoryError")
    assert found["all"]["trip_count"] == 1


def test_a_result_that_cannot_be_received_stops_the_cell_and_not_its_pool() -> None:
    found = run("result_of_a_pool")
    assert found["error"] == "Stopped"
    assert found["refused_count"]["python"] == 0
    assert found["rest"] == [4 * MIB, 1]


def test_what_a_pool_runs_is_refused() -> None:
    found = run("work_of_a_pool")
    assert {name: seen["error"] for name, seen in found.items()} == {
        "executor": "MemoryError",
        "pool": "MemoryError",
    }


def test_threads_do_not_fill_the_rest_before_the_main_thread_gets_its_turn() -> None:
    for seen in run("threads_fill_before_the_stop").values():
        assert (seen["thread"], seen["error"]) == ("MemoryError", "Stopped"), seen


def test_a_long_call_in_a_thread_ends_before_it_has_filled_the_rest() -> None:
    found = run("long_call_in_a_thread")
    assert found["cell"]["error"] == "Stopped", found
    assert found["cell"]["refused_count"]["python"] >= 1


def test_the_event_loop_gets_no_memory_error_and_the_code_of_the_cell_does() -> None:
    found = run("loop_outside_the_cell")
    assert found == {"of_the_loop": 0, "tripped": True, "error": "MemoryError"}


def test_native_threads_of_the_cell_fill_slowly_until_it_is_stopped() -> None:
    found = run("native_thread_fills")
    assert (found["kept"], found["results"]) == (0, 1), "stopped in time, and the call has ended"


def test_a_block_on_disk_grows_and_shrinks_with_realloc() -> None:
    found = run("disk_block_grows")
    assert found["error"] is None
    assert found["sums"] == [7, 9]
    assert found["first"] == 0


def test_a_long_call_into_c_gets_a_memory_error() -> None:
    found = run("long_call_is_interrupted")
    assert found["at_once"]["error"] == "MemoryError"
    assert found["bit_by_bit"]["error"] == "MemoryError"
    assert found["bit_by_bit"]["refused_count"]["python"] == 1
    assert found["after"]["error"] is None
    assert found["after"]["length"] == 1000


def test_a_signal_that_is_handled_late_still_reports_why() -> None:
    found = run("signal_is_handled_late")
    assert found["error"] == "Stopped"
    assert found["refused_count"]["python"] == 0


def test_stop_restores_every_pointer_while_a_block_is_on_disk() -> None:
    found = run("stop_restores")
    assert found["changed"]
    assert found["same"]
    assert found["seen"]["spilled_bytes"] == 2 * GIB
    assert found["sum"] == 3 * 2048
    assert found["second"]["error"] == "MemoryError"


def test_a_forked_child_is_not_refused_and_does_not_write_to_its_parent() -> None:
    found = run("forked_child")
    assert found["status"] == 0
    assert found["kept"] == 1
    assert found["error"] == "MemoryError"


def test_without_a_disk_a_sparse_array_is_as_without_the_gate() -> None:
    found = run("without_disk")
    assert "in memory" in found["memory"]["part"]
    assert "cannot be read" in found["absent"]["part"]
    for seen in found.values():
        assert seen["error"] is None
        assert seen["sum"] == seen["spilled_bytes"] == 0


def test_a_limit_of_the_file_size_is_not_hit() -> None:
    found = run("file_size_limit")
    assert found["error"] is None
    assert found["spilled_bytes"] == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Any:
    """A file system of 1 GiB in a sparse file."""
    image, folder = tmp_path / "image", tmp_path / "disk"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(GIB)
    tools = shutil.which("mkfs.ext4"), shutil.which("mount")
    made = all(tools) and not subprocess.run(["mkfs.ext4", "-q", image], check=False).returncode
    mount = ["mount", "-o", "loop", image, folder]
    if not made or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_is_a_refusal_and_never_a_bus_error(small_disk: Path) -> None:
    found = run("full_disk", SMALL_DISK=str(small_disk))
    assert found["part"] is None
    assert found["filled"] == 600 * MIB
    assert found["spilled_bytes"] == 600 * MIB
    assert found["error"] == "MemoryError"


ALLOCATOR = """
#include <stddef.h>
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void __libc_free(void *);
void *malloc(size_t size) { return __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return __libc_calloc(count, size); }
void *realloc(void *block, size_t size) { return __libc_realloc(block, size); }
void free(void *block) { __libc_free(block); }
"""


def test_another_allocator_is_left_alone(tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler here")
    source, library = tmp_path / "allocator.c", tmp_path / "allocator.so"
    source.write_text(ALLOCATOR)
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", library, source], check=True)
    found = run("another_allocator", LD_PRELOAD=str(library))
    assert "Another memory allocator" in found["disk"]
    assert found["numpy"] is not None
    assert found["python"] is not None


def test_traced_memory_is_left_alone() -> None:
    assert "traced" in run("traced_python")["python"]


def test_pandas_parser_reports_that_memory_is_short() -> None:
    pytest.importorskip("pandas")
    # The buffers of pandas 2 and 3 grow by different steps: with this limit one of them is refused in both.
    found = run("pandas_parser", limit_mib=384)
    assert found["part"] is None
    assert found["seen"]["error"] == "ParserError"
    assert "out of memory" in found["seen"]["text"]
    assert found["seen"]["refused_count"]["pandas"] == 1
    assert found["small"]["rows"] == 100


def test_hash_tables_of_pandas_are_not_refused_because_it_does_not_check() -> None:
    pytest.importorskip("pandas")
    errors = run("pandas_hash_tables")
    assert errors[0] == "MemoryError"
    assert errors[-1] is None


def test_the_trees_of_scikit_learn_get_a_memory_error() -> None:
    pytest.importorskip("sklearn")
    found = run("trees_are_refused", limit_mib=1024)
    assert found["part"] is None
    assert found["refused"]["error"] == "MemoryError"
    assert found["refused"]["refused_count"]["sklearn"] >= 1
    assert found["fits"]["trees"] == 2


def test_tensorflow_is_armed_refused_and_restored() -> None:
    found = run("tensorflow", limit_mib=1536)
    check_tensorflow(found)
    assert found["released"] >= 90 * MIB
    assert (found["constant"]["error"], found["constant"]["means"]) == (None, [1.0])
    assert [found["constant"][name] for name in ("on_disk", "refused")] == [1, 1]


def test_at_soft_the_pool_gives_its_free_memory_back_and_does_not_grow_meanwhile() -> None:
    found = run("release_beside_a_thread", limit_mib=1536)
    assert found["part"] is None
    assert found["first"] >= 220 * MIB  # of 256, of which 32 are in use again
    assert found["returned"] >= 220 * MIB
    assert found["whole"] == 8 * MIB - 1
    assert found["noise"] == ""
    assert found["seen"]["refused_count"]["tensorflow"] == 0
    assert found["released"]
    assert found["grown_bytes"] < 16 * MIB


def check_tensorflow(found: Any) -> None:
    """What holds for each TensorFlow. How much its pool keeps differs."""
    assert found["parts"]["tensorflow"] is None, "a new TensorFlow is built in another way"
    for name in ("op", "matrix", "again"):
        assert found[name]["error"] == "ResourceExhaustedError", name
        assert found[name]["refused_count"]["tensorflow"] == 1
    assert found["fits"]["error"] is None
    assert found["constant"]["error"] in (None, "MemoryError")
    assert found["constant"]["means"] in ([], [1.0])
    assert found["after"] == 1e6
    assert found["armed_again"] is None
