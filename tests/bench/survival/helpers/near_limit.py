"""How full the memory group of this kernel is: healthy programs fill it up to a chosen part of the limit."""

import os
import time

MIB = 1 << 20


def _folder():
    with open("/proc/self/cgroup") as file:
        for line in file:
            number, controllers, path = line.strip().split(":", 2)
            if "memory" in controllers.split(","):
                return "/sys/fs/cgroup/memory" + path, 1
            if number == "0" and not controllers:
                unified = "/sys/fs/cgroup" + path
    return unified, 2


_FOLDER, _VERSION = _folder()


def _read(name):
    with open(os.path.join(_FOLDER, name)) as file:
        return file.read()


def limit():
    """The limit in bytes."""
    return int(_read("memory.limit_in_bytes" if _VERSION == 1 else "memory.max"))


def used():
    """Bytes in use without file cache."""
    total = int(_read("memory.usage_in_bytes" if _VERSION == 1 else "memory.current"))
    prefix = "total_" if _VERSION == 1 else ""
    stat = dict(line.split() for line in _read("memory.stat").splitlines())
    return total - sum(int(stat[f"{prefix}{name}_file"]) for name in ("active", "inactive"))


def room(fraction):
    """Bytes that may still be filled until this part of the limit is in use."""
    return max(0, int(limit() * fraction) - used())


def fill(fraction, spare=0, step=4 * MIB):
    """Touched blocks of memory, as a list, up to this part of the limit less the spare bytes."""
    import numpy as np

    blocks = []
    while (left := room(fraction) - spare) > step:
        blocks.append(np.ones(min(left, 64 * MIB) // step * step // 8))
    return blocks


def hold(seconds=0.5):
    """Stay at this level for a moment, as a computation would."""
    time.sleep(seconds)
