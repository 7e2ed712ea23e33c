"""Native lines with which a process gives up: TensorFlow's fatal lines, the C library, the C++ runtime.

Only lines that end a process stand here; warnings and errors do not. Source: glibc malloc/malloc.c and
debug/fortify_fail.c, libstdc++ vterminate.cc, TensorFlow's tsl/platform/default/logging.cc and absl/log, LLVM OpenMP.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Message:
    """One fatal line.

    Attributes:
        cause: The label that its own text names.
        line: The raw line.
        text: What it says, without time stamp and file.
    """

    cause: str
    line: str
    text: str


# 2026-11-21 02:14:05.123456: F external/local_xla/xla/parse_flags.cc:224] Unknown flag in XLA_FLAGS: --x
# F0000 00:00:1700000000.123456    4711 parse_flags.cc:224] Unknown flag in XLA_FLAGS: --x
_FATAL_LINE = re.compile(
    r"(?:^|\s)F(?:\d{4} \d\d:\d\d:[\d.]{2,20}\s{1,10}\d{1,10})? ?(?P<file>[\w./+-]{1,200}\.(?:cc|h|cu|cpp|c)):\d{1,6}\] (?P<text>.*)"
)
# Causes that a fatal line's own text names, the wrapped status inside it first.
_TEXT_CAUSES: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "illegal_instruction",
        re.compile(r"was compiled to use .{1,200} instructions, but these aren't available"),
    ),
    ("disk_full", re.compile(r"No space left on device")),
    (
        "thread_limit",
        re.compile(r"pthread_create|Could not start thread|Resource temporarily unavailable"),
    ),
    (
        "gpu_oom",
        re.compile(r"CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|allocator GPU_\d+_bfc"),
    ),
    (
        "cuda_illegal_access",
        re.compile(
            r"CUDA_ERROR_ILLEGAL_ADDRESS|CUDA_ERROR_MISALIGNED_ADDRESS|CUDA_ERROR_LAUNCH_FAILED|CUDA_ERROR_ILLEGAL_INSTRUCTION"
        ),
    ),
)
_PLAIN: tuple[tuple[str, re.Pattern[str]], ...] = (
    # Texts of malloc_printerr
    (
        "glibc_abort_heap_corruption",
        re.compile(
            r"^(?:\*\*\* Error in `.{1,200}': )?(?P<text>(?:double free or corruption|free\(\): |malloc\(\): |realloc\(\): "
            r"|munmap_chunk\(\): |malloc_consolidate\(\): |corrupted (?:size|double-linked list|unsorted)|mremap_chunk\(\): "
            r"|calloc\(\): |malloc_check_get_size|malloc: top chunk is corrupt).{0,200})"
        ),
    ),
    (
        "glibc_abort_heap_corruption",
        re.compile(r"^(?P<text>\*\*\* (?:stack smashing|buffer overflow) detected \*\*\*.{0,100})"),
    ),
    (
        "cpu_alloc_failure",
        re.compile(r"(?P<text>terminate called after throwing an instance of 'std::bad_alloc')"),
    ),
    ("cpu_alloc_failure", re.compile(r"(?P<text>LLVM ERROR: out of memory)", re.IGNORECASE)),
    ("libiomp_duplicate", re.compile(r"(?P<text>OMP: Error #15: .{0,200})")),
    (
        "thread_limit",
        re.compile(
            r"(?P<text>libgomp: Thread creation failed.{0,200}|OpenBLAS blas_thread_init: pthread_create failed.{0,200})"
        ),
    ),
    (
        "stack_overflow",
        re.compile(
            r"(?P<text>Fatal Python error: .{0,60}Cannot recover from (?:stack overflow|MemoryErrors).{0,60})"
        ),
    ),
    (
        "bus_error_shm",
        re.compile(
            r"(?P<text>.{0,120}insufficient shared memory.{0,80}|unable to allocate shared memory.{0,120})"
        ),
    ),
    (
        "tf_check_failed",
        re.compile(r"^(?P<text>terminate called after throwing an instance of .{1,200})"),
    ),
    ("tf_check_failed", re.compile(r"(?P<text>: Assertion `.{1,300}' failed\.)")),
)


def fatal_messages(lines: list[str]) -> list[Message]:
    """The fatal lines among `lines`, in order."""
    found = []
    for line in lines:
        message = _read(line[:2000])
        if message is not None:
            found.append(message)
    return found


def _read(line: str) -> Message | None:
    if fatal := _FATAL_LINE.search(line):
        cause = next((c for c, pattern in _TEXT_CAUSES if pattern.search(line)), "tf_check_failed")
        return Message(cause, line, fatal["text"].strip() or line.strip())
    for cause, pattern in _PLAIN:
        if plain := pattern.search(line):
            return Message(cause, line, plain["text"].strip())
    return None
