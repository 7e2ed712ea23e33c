"""Checks process limits whose errors do not name the limit: threads, file size, address space."""

from __future__ import annotations

from ...collectors.ulimits import soft_limits, tasks_of_group
from ...errors import SourceUnavailable
from ...record.stderr_tail import LEAST_FILE_SIZE_LIMIT_BYTES
from ...units import GIB, human_bytes
from ..check import CheckResult, Status
from ..environment import Environment

NAME = "process limits"
# TensorFlow and its math libraries start several threads per core: 9 on 2 cores after a first fit, measured.
_FEW_TASKS_COUNT = 1024
_CROWDED_FRACTION = 0.8


def check(machine: Environment) -> list[CheckResult] | None:
    """The limits of this process. A kernel started from here inherits them."""
    if machine.system != "linux":
        return None
    root = str(machine.root).rstrip("/")
    try:
        limits = soft_limits(root)
    except SourceUnavailable as absent:
        return [CheckResult(NAME, Status.UNKNOWN, str(absent))]
    found = [_tasks(root, limits), _file_size(limits), _address_space(limits)]
    results = [result for result in found if result is not None]
    return results or [CheckResult(NAME, Status.OK, "no limit that a kernel would reach")]


def _tasks(root: str, limits: dict[str, int | None]) -> CheckResult | None:
    group = tasks_of_group(root)
    if group is not None and group.used_count is not None:
        used, limit = group.used_count, group.limit_count
        if used > _CROWDED_FRACTION * limit:
            text = f"This container runs {used} of at most {limit} threads: the next kernel may be unable to start threads."
            return CheckResult(NAME, Status.WARNING, text, "docker run --pids-limit=-1 ...")
    of_group = None if group is None else group.limit_count
    if of_group is not None and of_group < _FEW_TASKS_COUNT:
        text = f"The container allows {of_group} threads; TensorFlow starts several per core."
        return CheckResult(NAME, Status.WARNING, text, "docker run --pids-limit=-1 ...")
    of_user = limits.get("processes")
    if of_user is not None and of_user < _FEW_TASKS_COUNT:
        text = f"`ulimit -u` allows {of_user} threads for all processes of this user; TensorFlow starts several per core."
        return CheckResult(NAME, Status.WARNING, text, "ulimit -u unlimited")
    return None


def _file_size(limits: dict[str, int | None]) -> CheckResult | None:
    limit = limits.get("file size")
    if limit is None or limit >= GIB:
        return None
    if limit < LEAST_FILE_SIZE_LIMIT_BYTES:
        text = (
            f"`ulimit -f` allows files of {human_bytes(limit)}: SIGXFSZ kills a kernel that writes a larger file, "
            "and the guard cannot record the stderr tail."
        )
        return CheckResult(NAME, Status.PROBLEM, text, "ulimit -f unlimited")
    text = f"`ulimit -f` allows files of {human_bytes(limit)}: SIGXFSZ kills a kernel that saves a larger model."
    return CheckResult(NAME, Status.WARNING, text, "ulimit -f unlimited")


def _address_space(limits: dict[str, int | None]) -> CheckResult | None:
    limit = limits.get("address space")
    if limit is None:
        return None
    text = (
        f"`ulimit -v` allows {human_bytes(limit)} of address space. TensorFlow and CUDA reserve far more than they use, "
        "and fail with out-of-memory errors although memory is free."
    )
    return CheckResult(NAME, Status.WARNING, text, "ulimit -v unlimited")
