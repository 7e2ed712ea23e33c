"""The OS kernel that the guest boots, and the first file system it sees: a static busybox, modules, one script.

Found in ``TFGUARD_VM_OS``, in the user's cache folder (where ``fetch_os_kernel.sh`` puts Debian's), or installed on this
machine; its driver for 9p must lie beside it as a module, or be built in.
"""

from __future__ import annotations

import lzma
import os
import platform
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# In the order they are loaded. What is built in, or joined with another module in a later version, is left out.
MODULES = (
    "virtio_ring",
    "virtio",
    "virtio_pci_modern_dev",
    "virtio_pci_legacy_dev",
    "virtio_pci",
    "netfs",
    "fscache",
    "9pnet",
    "9pnet_virtio",
    "9p",
)
_NEEDED = ("9p", "9pnet_virtio", "virtio_pci")


class NoVirtualMachine(Exception):
    """No guest can be booted here; the text says what is missing."""


@dataclass(frozen=True)
class OsKernel:
    """An OS kernel and its modules.

    Attributes:
        image: The compressed kernel.
        modules: Modules to load, in order.
    """

    image: Path
    modules: tuple[Path, ...]


def find_os_kernel() -> OsKernel:
    """The newest usable OS kernel.

    Raises:
        NoVirtualMachine: There is none, or this is another kind of processor.
    """
    if platform.machine() != "x86_64":
        raise NoVirtualMachine(f"the guest's OS kernel is for x86_64, this is {platform.machine()}")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tfguard-vm"
    chosen = os.environ.get("TFGUARD_VM_OS")
    reasons = []
    for root in (Path(chosen),) if chosen else (cache, Path("/")):
        for image in sorted((root / "boot").glob("vmlinuz-*"), reverse=True):
            release = image.name.removeprefix("vmlinuz-")
            if not os.access(image, os.R_OK):
                reasons.append(f"{image} may not be read")
                continue
            modules, lacking = _modules(root / "lib/modules" / release)
            if not lacking:
                return OsKernel(image, modules)
            reasons.append(f"{image} lacks the module {', '.join(lacking)}")
    reasons = reasons or [
        f"no OS kernel in {chosen or cache}; tests/vm/fetch_os_kernel.sh gets one"
    ]
    raise NoVirtualMachine("; ".join(reasons))


def _modules(folder: Path) -> tuple[tuple[Path, ...], list[str]]:
    """The modules to load, and the names of those that are needed and not there."""
    here = {path.name.partition(".ko")[0]: path for path in (folder / "kernel").rglob("*.ko*")}
    try:
        built_in = {Path(line).stem for line in (folder / "modules.builtin").read_text().split()}
    except OSError:
        built_in = set()
    found = tuple(here[name] for name in MODULES if name in here)
    return found, [name for name in _NEEDED if name not in here and name not in built_in]


def initial_file_system(os_kernel: OsKernel, script: str) -> bytes:
    """An uncompressed initramfs whose first process is `script`, run by a busybox shell.

    Raises:
        NoVirtualMachine: No statically linked busybox is installed.
    """
    busybox = shutil.which("busybox")
    if busybox is None or b"/ld-linux" in (program := Path(busybox).read_bytes()):
        raise NoVirtualMachine("no statically linked busybox is installed (busybox-static)")
    entries: list[tuple[str, int, bytes]] = [
        (name, stat.S_IFDIR | 0o755, b"")
        for name in ("bin", "dev", "proc", "sys", "host", "modules")
    ]
    entries.append(("bin/busybox", stat.S_IFREG | 0o755, program))
    entries.append(("init", stat.S_IFREG | 0o755, script.encode()))
    for number, path in enumerate(os_kernel.modules):
        entries.append((f"modules/{number:02}.ko", stat.S_IFREG | 0o644, _plain(path)))
    return b"".join(_newc(entries))


def _plain(module: Path) -> bytes:
    content = module.read_bytes()
    if module.suffix == ".xz":
        return lzma.decompress(content)
    if module.suffix != ".ko":
        raise NoVirtualMachine(f"{module} is compressed in a way that is not read here")
    return content


def _newc(entries: list[tuple[str, int, bytes]]) -> Iterator[bytes]:
    """The archive that Linux unpacks. Source: Documentation/driver-api/early-userspace/buffer-format.rst of Linux."""
    for number, (name, mode, content) in enumerate([*entries, ("TRAILER!!!", 0, b"")], 1):
        # inode, mode, uid, gid, links, mtime, size, device and special device (major, minor), name's length, checksum
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
        yield head + bytes(-len(head) % 4)
        yield content + bytes(-len(content) % 4)
