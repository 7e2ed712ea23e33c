"""Which library file would be loaded: by made folders and caches, and as this machine's own loader decides."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_tfguard.collectors.elf import run_path
from jupyter_tfguard.collectors.library_cache import cached_libraries
from jupyter_tfguard.collectors.shared_libraries import FoundBy, LibrarySearch
from jupyter_tfguard.errors import SourceUnavailable
from tests.rigs.made_elf import DT_RPATH, DT_RUNPATH, write_cache, write_library

OPENER = "#include <dlfcn.h>\nvoid *open_it(const char *name) { return dlopen(name, RTLD_NOW); }\n"
# Opens a library through the opener and prints which file that was.
ASK = """
import ctypes, sys
opener = ctypes.CDLL(sys.argv[1])
opener.open_it.restype = ctypes.c_void_p
opener.open_it(sys.argv[2].encode())
lines = open("/proc/self/maps").read().splitlines()
print(next((line.split()[-1] for line in lines if line.endswith(sys.argv[2])), "none"))
"""


def compiler() -> str:
    found = shutil.which("cc") or shutil.which("gcc")
    if found is None or not sys.platform.startswith("linux"):
        pytest.skip("no C compiler for Linux here")
    return found


@pytest.mark.parametrize("kind", ["--enable-new-dtags", "--disable-new-dtags"])
@pytest.mark.parametrize("variable", [True, False])
@pytest.mark.parametrize("in_run_path", [True, False])
def test_the_first_copy_is_the_one_that_the_loader_of_this_machine_takes(
    tmp_path: Path, kind: str, variable: bool, in_run_path: bool
) -> None:
    cc = compiler()
    (tmp_path / "opener.c").write_text(OPENER)
    (tmp_path / "empty.c").write_text("int tfguard_made;\n")
    linked, given = tmp_path / "linked", tmp_path / "given"
    for folder in (linked, given):
        folder.mkdir()
    copies = [given / "libmade.so.3", *([linked / "libmade.so.3"] if in_run_path else [])]
    for copy in copies:
        subprocess.run([cc, "-shared", "-o", copy, tmp_path / "empty.c"], check=True)
    opener = tmp_path / "libopener.so"
    flags = ["-shared", "-fPIC", f"-Wl,{kind},-rpath,$ORIGIN/linked", "-o", opener]
    subprocess.run([cc, *flags, tmp_path / "opener.c", "-ldl"], check=True)

    environ = {"LD_LIBRARY_PATH": str(given)} if variable else {}
    command = [sys.executable, "-c", ASK, opener, "libmade.so.3"]
    taken = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    search = LibrarySearch(Path("/"), environ, "x86_64", [opener])
    found = [str(copy.path) for copy in search.copies("libmade.so.3")]
    assert (found[0] if found else "none") == taken.stdout.strip()


def test_the_cache_of_this_machine_is_read_as_ldconfig_reads_it() -> None:
    ldconfig = shutil.which("ldconfig") or shutil.which("ldconfig", path="/sbin:/usr/sbin")
    if ldconfig is None or not Path("/etc/ld.so.cache").exists():
        pytest.skip("no loader's cache here")
    done = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=False)
    lines = [line.strip() for line in done.stdout.splitlines() if "(libc6,x86-64" in line]
    if not lines:
        pytest.skip("ldconfig lists nothing for x86-64")
    listed: dict[str, list[str]] = {}
    for line in lines:  # libz.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libz.so.1
        listed.setdefault(line.split(" (")[0], []).append(line.split(" => ")[1])
    assert cached_libraries(Path("/etc/ld.so.cache"), "x86_64") == listed


def test_a_cache_lists_libraries_of_this_processor_only(tmp_path: Path) -> None:
    write_cache(tmp_path / "cache", {"libcuda.so.1": "/usr/lib32/libcuda.so.1"}, flags=0x0003)
    assert cached_libraries(tmp_path / "cache", "x86_64") == {}
    assert cached_libraries(tmp_path / "none", "x86_64") == {}


@pytest.mark.parametrize(("tag", "early"), [(DT_RUNPATH, False), (DT_RPATH, True)])
def test_a_run_path_is_read_with_its_origin_filled_in_and_each_folder_once(
    tmp_path: Path, tag: int, early: bool
) -> None:
    library = tmp_path / "a" / "libmade.so"
    write_library(library, "$ORIGIN/../b:/opt/c::relative:${ORIGIN}/../b", tag)
    found = run_path(library)
    assert found.folders == (tmp_path / "a" / ".." / "b", Path("/opt/c"))
    assert found.before_environment is early


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"\x7fELF\x01\x01" + bytes(80), b"text" * 99])
def test_what_is_no_library_is_said_to_be_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.so").write_bytes(content)
    with pytest.raises(SourceUnavailable):
        run_path(tmp_path / "x.so")


def test_damaged_libraries_and_caches_never_stop_the_reader(tmp_path: Path) -> None:
    write_library(tmp_path / "good.so", "$ORIGIN/lib:/opt/lib")
    write_cache(tmp_path / "cache", {"liba.so.1": "/a/liba.so.1", "libb.so.2": "/b/libb.so.2"})
    dice = random.Random(7)
    for name in ("good.so", "cache"):
        whole = (tmp_path / name).read_bytes()
        for _ in range(400):
            damaged = bytearray(whole)
            for _ in range(dice.randint(1, 6)):
                damaged[dice.randrange(len(damaged))] = dice.choice(
                    (0, 1, 127, 255, dice.randrange(256))
                )
            (tmp_path / "damaged").write_bytes(damaged[: dice.randint(1, len(damaged))])
            cached_libraries(tmp_path / "damaged", "x86_64")
            try:
                run_path(tmp_path / "damaged")
            except SourceUnavailable:
                continue


def test_a_link_to_nowhere_and_a_folder_are_no_copies(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    (tmp_path / "a" / "libx.so.1").symlink_to("libx.so.1.2")
    (tmp_path / "b" / "libx.so.1").mkdir()
    (tmp_path / "c" / "libx.so.1.4").touch()
    (tmp_path / "c" / "libx.so.1").symlink_to("libx.so.1.4")
    environ = {"LD_LIBRARY_PATH": ":".join(str(tmp_path / name) for name in "abc") + ":relative:"}
    (copy,) = LibrarySearch(tmp_path, environ, "x86_64", ()).copies("libx.so.1")
    assert copy.path == tmp_path / "c" / "libx.so.1"
    assert (copy.found_by, copy.version) == (FoundBy.VARIABLE, "1.4")


def test_a_soname_with_no_longer_name_behind_it_tells_no_version(tmp_path: Path) -> None:
    (tmp_path / "libcudart.so.11.0").touch()
    environ = {"LD_LIBRARY_PATH": str(tmp_path)}
    (copy,) = LibrarySearch(tmp_path, environ, "x86_64", ()).copies("libcudart.so.11.0")
    assert copy.version is None


def test_what_this_process_has_loaded_comes_first(tmp_path: Path) -> None:
    (tmp_path / "proc" / "self").mkdir(parents=True)
    line = "7f0-7f1 r-xp 00000000 08:01 1312                       /opt/x/libcudnn.so.9.1.0\n"
    (tmp_path / "proc" / "self" / "maps").write_text(line * 3 + "7f2-7f3 rw-p 00000000 00:00 0\n")
    copies = LibrarySearch(tmp_path, {}, "x86_64", ()).copies("libcudnn.so.9")
    assert [(str(c.path), c.found_by) for c in copies] == [
        ("/opt/x/libcudnn.so.9.1.0", FoundBy.LOADED)
    ]
    assert copies[0].version == "9.1.0"
