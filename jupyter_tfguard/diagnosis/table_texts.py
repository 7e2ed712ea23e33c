"""Code for rules of the table: words to fill into their sentences, and causes that are detected without a text line."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

from ..decode import dict_of, number_of, whole_of
from ..units import human_bytes, human_seconds
from .activity import last_cell, last_fit
from .catalog.native_aborts import heap_damage
from .ending import TextEvidence, ending_chips, exit_fact, stack_facts, stderr_end, sure
from .evidence import Evidence
from .finding import Confidence, Fact, Source, quoted
from .framework_texts import build_words, driver_words, forked_words
from .gpu_stack import cudnn_package
from .line_sizes import readable
from .os_log import KILLS, MEMORY, STORAGE, runs_python
from .package_texts import caller_words, misfit_words, package_words
from .python_stacks import endless, own_stacks
from .verdict import native_text_is_old

# module compiled against ABI version 0x1000009 but this version of numpy is 0x2000000
_NUMPY_VERSIONS = re.compile(
    r"compiled against A[BP]I version (?P<built>0x[0-9a-f]{1,8}) but this version of numpy is (?P<here>0x[0-9a-f]{1,8})"
)
_DAMAGE = {
    "overwritten": "Code wrote past the end of a memory block.",
    "freed twice": "A memory block was freed twice.",
    "foreign pointer": "Memory from another allocator was freed. Often one library frees what another library allocated.",
    "foreign allocator": "Two allocators use the same heap.",
}

_LINES = 40
# Python's resource tracker, after its owner's death:
# UserWarning: resource_tracker: There appear to be 1 leaked shared_memory objects to clean up at shutdown
# A mention is not enough: libraries also log shared memory during normal work.
_MEMORY = r"(?:shared[ _]memory|/dev/shm|\bshm)"
_TROUBLE = (
    r"(?:insufficient|not enough|out of|too small|too little|no space|leaked|exhausted|fail|error|unable|cannot|can't|could not|"
    r"couldn't|is full|limit)"
)
_COMPLAINT = re.compile(
    rf"{_TROUBLE}.{{0,120}}?{_MEMORY}|{_MEMORY}.{{0,120}}?{_TROUBLE}", re.IGNORECASE
)
# NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct
_REMARK = re.compile(r"\b(?:INFO|DEBUG|TRACE)\b|^\S+ \S+: I |^I\d{4} ")
_MODULE = "multiprocessing/shared_memory"
# Free: the write that failed may have been large, but pages are written one by one.
_FULL_FRACTION = 0.01
# A server that restarts the kernel at once kills the resource tracker before it can complain.
_USE = re.compile(r"\bshared_memory\b|\bSharedMemory\b|/dev/shm\b")
# CD and floppy drives: the empty drives of virtual machines fail at each access.
_REMOVABLE = re.compile(r"(?:sr|scd|fd)\d")
# OpenBLAS blas_thread_init: RLIMIT_NPROC 4096 current, 8192 max
_NPROC = re.compile(r"RLIMIT_NPROC (\d{1,9}) current")

_MANAGERS = {"Kubernetes": "kubernetes", "Ray": "ray", "Dask": "dask"}
_BATCH_REASONS = {
    "preempt": "it was preempted: another job got its place",
    "node failure": "its node failed",
    "node_fail": "its node failed",
    "taken back": "the platform took the machine back, or the machine was shut down",
    "time limit": "it reached its time limit",
    "walltime": "it reached its time limit",
    "wallclock": "it reached its time limit",
    "runlimit": "it reached its time limit",
    "h_rt": "it reached its time limit",
    "s_rt": "it reached its time limit",
    "duration": "it reached the longest time that the platform allows",
    "h_cpu": "it used up its processor time",
    "cpulimit": "it used up its processor time",
    "cput": "it used up its processor time",
    "proc usage": "it used more processors than it had asked for",
    "ncpus": "it used more processors than it had asked for",
}
_SENDERS = {
    "SIGTERM": (
        "asked to terminate",
        "Batch systems send it at the time limit or to free resources, container runtimes when they stop a container, and "
        "people with `kill`. earlyoom also sends it when memory is low.",
    ),
    "SIGHUP": (
        "terminated when its terminal or login session was closed",
        "A server started in a terminal ends with it. Start it with `nohup`, in `tmux` or as a service to keep it running.",
    ),
    "SIGXCPU": (
        "terminated because it used up its CPU time limit",
        "`ulimit -t` shows the limit of the shell that started Jupyter; batch systems set it too.",
    ),
}

Words = dict[str, str]

# --- words that are not in the line itself, for each cause ---------------------------------------------------------------


def _numpy(seen: Evidence, text: TextEvidence) -> Words:
    found = _NUMPY_VERSIONS.search(text.message)
    if found is None or int(found["here"], 16) >= int(found["built"], 16):
        return misfit_words(seen, text)
    return {"numpy_older": f"Built with {found['built']}, loaded with {found['here']}."}


def _damage(_: Evidence, text: TextEvidence) -> Words:
    damage = _DAMAGE.get(heap_damage(text.message) or "")
    return {"damage": damage} if damage else {}


def _cudnn(seen: Evidence, text: TextEvidence) -> Words:
    package = cudnn_package(text.details.get("built", "").rstrip("."))
    return package_words(seen, text) | ({"cudnn_package": package} if package else {})


def _hang_words(seen: Evidence, _: TextEvidence) -> Words:
    assert seen.hang is not None
    wait = seen.hang.wait if seen.hang.wait in ("stopped", "disk", "other") else "lock"
    words = {"lasted": human_seconds(seen.hang.seconds)}
    words["end"] = "you stopped it" if seen.asked_to_end else "it ended"
    if seen.worker_killed is not None:
        return words | {"worker_killed": f"for {words['lasted']}"}
    if seen.hang.computes:
        return words | {"no_step": f"for {words['lasted']}", "in_fit": "yes"}
    words[f"wait_{wait}"] = "yes"
    if seen.hang.in_fit and wait != "stopped":
        words["in_fit"] = "yes"
    if seen.hang.waits_for is not None:
        words["outside"] = seen.hang.waits_for
    return words


def _memory_daemon(_: Evidence, text: TextEvidence) -> Words:
    words: Words = {
        name: readable(text.details[name])
        for name in ("used", "total", "own", "available", "request")
        if name in text.details
    }
    threshold = text.details.get("threshold", "")
    if threshold.startswith("0."):  # of Ray
        words["threshold"] = f"{100 * float(threshold):.0f} %"
    daemon = text.details.get("daemon", "")
    of = next((word for name, word in _MANAGERS.items() if name in daemon), "machine")
    return words | {f"of_{of}": "yes"}


def _storage(_: Evidence, text: TextEvidence) -> Words:
    sizes = ("limit", "own_limit", "volume_limit", "used")
    return {name: readable(text.details[name]) for name in sizes if name in text.details}


def _senders(seen: Evidence, text: TextEvidence) -> Words:
    signal = seen.exit_signal or ""
    if (reason := _batch_reason(text)) is not None:
        return {"batch_reason": reason}
    how, senders = _SENDERS.get(signal, _SENDERS["SIGTERM"])
    words = {"senders": senders}
    return words | ({"how": f"{how} ({signal})", "signal": signal} if signal in _SENDERS else {})


def _batch_reason(text: TextEvidence) -> str | None:
    """Why a batch system or platform ended the program, if its line says so."""
    given = " ".join(text.details.get(name, "") for name in ("reason", "term", "pbs")).lower()
    words = given + (text.message.lower() if not given.strip() else "")
    return next((why for word, why in _BATCH_REASONS.items() if word in words), None)


def _crash_words(seen: Evidence, _: TextEvidence) -> Words:
    if seen.pasted is not None:
        return caller_words(seen)
    name, what = "Segmentation fault", "accessed invalid memory"
    if seen.first_signal == "SIGBUS":
        name, what = "Bus error", "accessed memory that does not exist"
    words = {"name": name, "signal_name": name.lower(), "what": what}
    if frame := seen.last_cell_frame or seen.last_python_frame:
        words["frame"] = frame
    if package := seen.importing_package:
        words["importing"] = package
    return words | ({"in_fit": "yes"} if last_fit(seen) is not None else {})


def _overflow_words(seen: Evidence, _: TextEvidence) -> Words:
    return {"in_thread": ""} if _left_no_stack(seen) else {"repeated": "yes"}


def _thread_words(seen: Evidence, _: TextEvidence) -> Words:
    had = [value for _, value in seen.series("process.thread_count")[-20:] if value > 0]
    limits = dict_of(seen.bundle.get("thread_limits"))
    group, user = whole_of(limits.get("group_count")), whole_of(limits.get("user_count"))
    if named := next((hit for line in seen.story.lines if (hit := _NPROC.search(line.text))), None):
        user = int(named[1])
    allowed = []
    if group is not None and group > 0:
        allowed.append(f"The container or service allows {group:,} threads in all its processes.")
    if user is not None and user > 0:
        allowed.append(f"`ulimit -u` allows this user {user:,}.")
    words = {"threads": f"{int(max(had)):,}"} if had else {}
    return words | ({"allowed": " ".join(allowed)} if allowed else {})


WORDS: dict[str, Callable[[Evidence, TextEvidence], Words]] = {
    "abi_mismatch": _numpy,
    "cuda_driver_mismatch": driver_words,
    "cuda_library_missing": package_words,
    "cudnn_version_mismatch": _cudnn,
    "fork_or_thread_deadlock": forked_words,
    "glibc_abort_heap_corruption": _damage,
    "gpu_arch_unsupported": build_words,
    "hang": _hang_words,
    "memory_daemon": _memory_daemon,
    "storage_limit": _storage,
    "segfault_native": _crash_words,
    "stack_overflow": _overflow_words,
    "terminated_by_user_or_manager": _senders,
    "thread_limit": _thread_words,
}

# --- causes that are detected without a line of text ---------------------------------------------------------------------


def _seen(seen: Evidence, confidence: Confidence, *facts: Fact) -> TextEvidence | None:
    return TextEvidence(confidence, facts, ending_chips(seen), message="", details={})


def _illegal_instruction(seen: Evidence) -> TextEvidence | None:
    if seen.kernel_alive or seen.first_signal != "SIGILL":
        return None
    return _seen(seen, sure(seen), exit_fact(seen), *stack_facts(seen), *stderr_end(seen))


def _shared_memory(seen: Evidence) -> TextEvidence | None:
    if seen.kernel_alive or seen.first_signal != "SIGBUS":
        return None
    words, full = _shared_memory_words(seen), _full_shared_memory(seen)
    found = [full] if full is not None else []
    found += [Fact(Source.KERNEL, words.strip()[:400])] if words is not None else []
    if not found:
        return None
    return _seen(seen, Confidence.LIKELY, exit_fact(seen), *found, *stack_facts(seen))


def _full_shared_memory(seen: Evidence) -> Fact | None:
    read = dict_of((seen.server or {}).get("shared_memory"))
    size, free = number_of(read.get("size_bytes")), number_of(read.get("free_bytes"))
    if size is None or free is None or not 0 <= free <= _FULL_FRACTION * size:
        return None
    text = f"/dev/shm was full: {human_bytes(size - free)} of {human_bytes(size)} was in use after the crash"
    return Fact(Source.SERVER, text)


def _shared_memory_words(seen: Evidence) -> str | None:
    """The complaint, the Python frame at the signal, or the line of the running cell about shared memory; else None."""
    if native_text_is_old(seen):
        return None
    for line in reversed(seen.stderr_lines[-_LINES:]):
        if _COMPLAINT.search(line[:1000]) and not _REMARK.search(line[:1000]):
            return line
    if at_signal := next((line for line in seen.own_frames if _MODULE in line), None):
        return at_signal
    cell = last_cell(seen)
    code = (cell.head or "").split("\n") if cell is not None and cell.running else []
    return next(
        (f"The cell uses shared memory: {line}" for line in code if _USE.search(line)), None
    )


def _start_failed(seen: Evidence) -> TextEvidence | None:
    if not (seen.never_answered and seen.exit_code):
        return None
    silent = Fact(
        Source.SERVER, "The server received no message from it between its start and its end"
    )
    return _seen(seen, Confidence.LIKELY, exit_fact(seen), silent)


def _endless_recursion(seen: Evidence) -> TextEvidence | None:
    """Detects recursion of Python functions, and the missing stack of a thread that has used up its own.

    Native recursion of the main thread leaves no trace in the Python stack.
    """
    crashed = seen.first_signal in ("SIGSEGV", "SIGBUS") and not seen.kernel_alive
    if _left_no_stack(seen):
        silent = Fact(
            Source.KERNEL,
            "Python's fault handler was on and wrote no stack trace. Only the main thread has a spare stack for that; "
            "a thread that has used up its own stack cannot write one",
        )
        return _seen(seen, Confidence.POSSIBLE, exit_fact(seen), silent)
    if not crashed or not any(map(endless, own_stacks((seen.fault_lines,)))):
        return None
    repeats = Fact(Source.KERNEL, "The innermost 100 Python frames repeat the same few lines")
    return _seen(seen, Confidence.LIKELY, exit_fact(seen), repeats, *stack_facts(seen))


def _left_no_stack(seen: Evidence) -> bool:
    """True for a segmentation fault of which our faulthandler wrote nothing, in a recording that is there.

    Measured with CPython 3.11 on Linux: a thread that used up its stack left 0 bytes; endless recursion of the main
    thread, a null pointer in a thread, and a crash in a thread without Python left their text.
    """
    handler = dict_of(seen.header.get("guard")).get("faulthandler")
    crashed = seen.exit_was_seen and seen.exit_signal == "SIGSEGV" and not seen.kernel_alive
    return crashed and handler == "ours" and not seen.fault_lines


def _failed_storage(seen: Evidence) -> TextEvidence | None:
    """A mapped page that cannot be read causes a bus error. With another end, the error may belong to any program.

    It is still the best guess if a pasted log has nothing but lines of the operating system.
    """
    alone = seen.system_log.is_all
    if seen.kernel_alive or (seen.first_signal != "SIGBUS" and not alone):
        return None
    faults = (f for f in seen.system_log.faults if f.about == STORAGE)
    fault = next((f for f in faults if not _REMOVABLE.match(f.device)), None)
    if fault is None:
        return None
    logged = quoted(f"The system log says that {fault.says}", fault.line)
    if alone:
        return _seen(seen, Confidence.POSSIBLE, logged)
    return _seen(seen, Confidence.LIKELY, exit_fact(seen), logged, *stack_facts(seen))


def _hang(seen: Evidence) -> TextEvidence | None:
    if seen.hang is None or seen.kernel_alive:
        return None
    if seen.hang.computes and not seen.asked_to_end:
        return None  # something else ended it
    facts, killed = seen.hang.facts, seen.worker_killed
    if killed is not None:
        passed = human_seconds(max(0.0, seen.died - killed))
        words = f"A child process was killed because memory ran out, {passed} before the end; it has a report of its own"
        facts = (Fact(Source.SERVER, words), *facts)
    certain = seen.asked_to_end and seen.hang.cannot_end and killed is None
    sure = Confidence.CERTAIN if certain else Confidence.LIKELY
    if seen.hang.computes:
        sure = Confidence.POSSIBLE  # a step may only be slow
    chips = (f"{human_seconds(seen.hang.seconds)} without progress",)
    return TextEvidence(sure, facts, chips, message="", details={})


def _forked_too_late(seen: Evidence) -> TextEvidence | None:
    found = _hang(seen)
    if found is None or seen.hang is None or seen.hang.forked_too_late is None:
        return None
    if seen.worker_killed is not None:
        return None  # its answer never comes, and the idle workers of its pool wait for a lock
    if not seen.hang.may_be_idle_pool:
        return dataclasses.replace(found, confidence=Confidence.LIKELY)
    if not seen.hang.waits_for_workers:
        return None
    return dataclasses.replace(found, confidence=Confidence.POSSIBLE)


def _crashed(seen: Evidence) -> TextEvidence | None:
    if seen.kernel_alive or seen.first_signal not in ("SIGSEGV", "SIGBUS"):
        return None
    confidence = Confidence.LIKELY if _left_no_stack(seen) else sure(seen)
    return _seen(seen, confidence, exit_fact(seen), *stack_facts(seen), *stderr_end(seen))


def _terminated(seen: Evidence) -> TextEvidence | None:
    if seen.kernel_alive or seen.exit_signal not in _SENDERS:
        return None
    return _seen(seen, sure(seen), exit_fact(seen), *stack_facts(seen))


def _failed_memory(seen: Evidence) -> TextEvidence | None:
    """An uncorrected error counts if its line names this process. Without a name it counts only with a bus error."""
    faults = [f for f in seen.system_log.faults if f.about == MEMORY]
    named = [fault for fault in faults if fault.weight == KILLS]
    ours = (f for f in named if (runs_python(f.name) if seen.pasted else f.pid == seen.pid))
    fault = next(ours, None)
    if fault is None and not named and seen.first_signal == "SIGBUS":
        fault = next(iter(faults), None)
    if fault is None or seen.kernel_alive:
        return None
    logged = quoted(f"The system log says that {fault.says}", fault.line)
    if seen.pasted is not None:
        return _seen(seen, Confidence.CERTAIN, logged)
    # The operating system sends SIGBUS, or SIGKILL if SIGBUS is not possible.
    certain = seen.exit_was_seen and seen.exit_signal in ("SIGBUS", "SIGKILL") and bool(named)
    confidence = Confidence.CERTAIN if certain else Confidence.LIKELY
    return _seen(seen, confidence, logged, exit_fact(seen))


WITHOUT_TEXT: dict[str, Callable[[Evidence], TextEvidence | None]] = {
    "bus_error_shm": _shared_memory,
    "fork_or_thread_deadlock": _forked_too_late,
    "hang": _hang,
    "hardware_error": _failed_memory,
    "illegal_instruction": _illegal_instruction,
    "io_error": _failed_storage,
    "kernel_start_failed": _start_failed,
    "segfault_native": _crashed,
    "stack_overflow": _endless_recursion,
    "terminated_by_user_or_manager": _terminated,
}
