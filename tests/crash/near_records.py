"""The near misses that are written down in tests/examples, with their right answers."""

from __future__ import annotations

from jupyter_tfguard.diagnosis.diagnose import diagnose, explain
from jupyter_tfguard.diagnosis.finding import Diagnosis
from tests.rigs.examples import EXAMPLES, Example, TextExample

RIGHT_ANSWERS: dict[str, tuple[str, ...]] = {
    "abi_mismatch/quiet-near-a-valid-signature.txt": ("sigkill_unattributed",),
    "abi_mismatch/quiet-near-a-warning-about-numpy.txt": ("no_crash",),
    "bus_error_shm/quiet-near-a-remark-of-two-minutes-ago.json": ("segfault_native",),
    "cgroup_oom/quiet-near-a-soft-limit-of-torque.txt": ("no_crash", "unknown"),
    "cgroup_oom/quiet-near-advice-about-memory.txt": ("sigkill_unattributed",),
    "cgroup_oom/quiet-near-another-container.txt": ("sigkill_unattributed",),
    "cgroup_oom/quiet-near-exit-code-137-beside-a-killed-child.json": ("sys_exit",),
    "cgroup_oom/quiet-near-log-names-a-longer-process-id.json": ("sigkill_unattributed",),
    "cgroup_oom/quiet-near-log-names-it-and-it-ended-by-sigterm.json": (
        "terminated_by_user_or_manager",
    ),
    "cgroup_oom/quiet-near-log-of-two-hours-before.json": ("sigkill_unattributed",),
    "cgroup_oom/quiet-near-no-kill-was-counted.txt": ("sigkill_unattributed",),
    "cgroup_oom/quiet-near-v1-limit-hit-by-files.json": ("sigkill_unattributed",),
    "cgroup_oom/quiet-near-v2-limit-hit-and-nobody-killed.json": ("sigkill_unattributed",),
    "cpu_alloc_failure/quiet-near-caught-and-done-in-pieces.txt": ("no_crash",),
    "cpu_alloc_failure/quiet-near-caught-and-ended-well.json": ("sys_exit",),
    "cuda_driver_mismatch/quiet-near-went-on-without-the-gpu.txt": ("no_crash",),
    "cuda_illegal_access/quiet-near-a-fault-of-the-screen.txt": ("sigkill_unattributed",),
    "cuda_illegal_access/quiet-near-the-screen-of-an-amd-gpu.txt": ("unknown",),
    "cuda_illegal_access/quiet-near-xid-of-another-process.json": ("unknown",),
    "cuda_library_missing/quiet-near-an-optional-library-and-a-kill.txt": ("sigkill_unattributed",),
    "cudnn_version_mismatch/quiet-near-loaded-as-it-should-be.txt": ("sigkill_unattributed",),
    "cudnn_version_mismatch/quiet-near-zlib-is-what-is-missing.txt": ("cuda_library_missing",),
    "culled/quiet-near-a-server-that-stays.txt": ("unknown",),
    "disk_full/quiet-near-it-was-the-shared-memory.txt": ("bus_error_shm",),
    "fork_or_thread_deadlock/quiet-near-warned-and-went-on.txt": ("no_crash",),
    "fork_or_thread_deadlock/quiet-near-warned-of-a-fork-and-crashed.json": ("segfault_native",),
    "glibc_abort_heap_corruption/quiet-near-a-large-allocation.txt": ("no_crash",),
    "glibc_abort_heap_corruption/quiet-near-words-of-a-child-long-before.json": ("unknown",),
    "gpu_hardware_xid/quiet-near-a-fault-of-the-program.txt": ("cuda_illegal_access",),
    "gpu_hardware_xid/quiet-near-clean-up-after-an-abort.json": ("unknown",),
    "gpu_hardware_xid/quiet-near-two-hours-before.json": ("unknown",),
    "gpu_hardware_xid/quiet-near-while-it-was-killed.json": ("sigkill_unattributed",),
    "gpu_hardware_xid/quiet-near-while-somebody-ended-it.json": ("terminated_by_user_or_manager",),
    "gpu_oom/quiet-near-a-warning-that-is-cut.txt": ("no_crash",),
    "gpu_oom/quiet-near-an-error-of-another-kind-in-physx.txt": ("unknown",),
    "gpu_oom/quiet-near-asked-again-for-less.txt": ("no_crash",),
    "gpu_oom/quiet-near-caught-then-killed.txt": ("sigkill_unattributed",),
    "gpu_oom/quiet-near-too-many-files-in-a-notebook.txt": ("unknown",),
    "host_oom/quiet-near-a-database-died-and-python-crashed.txt": ("segfault_native",),
    "host_oom/quiet-near-asked-for-memory-and-another-died.txt": ("sigkill_unattributed",),
    "host_oom/quiet-near-forged-lines-and-no-counters.json": ("sigkill_unattributed",),
    "host_oom/quiet-near-machine-short-and-the-kernel-small.json": ("sigkill_unattributed",),
    "host_oom/quiet-near-swapped-for-long-and-no-kill-counted.json": ("sigkill_unattributed",),
    "host_oom/quiet-near-victim-named-like-a-log-line.json": ("sigkill_unattributed",),
    "illegal_instruction/quiet-near-instructions-that-are-used.txt": ("segfault_native",),
    "illegal_instruction/quiet-near-trap-of-another-process.json": ("sigkill_unattributed",),
    "kernel_start_failed/quiet-near-a-kernel-that-runs-a-cell.txt": ("abi_mismatch",),
    "kernel_start_failed/quiet-near-guarded-and-never-asked.json": ("sys_exit",),
    "kernel_start_failed/quiet-near-killed-before-it-answered.json": ("sigkill_unattributed",),
    "kernel_start_failed/quiet-near-unguarded-and-answered.json": ("sys_exit",),
    "libiomp_duplicate/quiet-near-a-remark.txt": ("segfault_native",),
    "no_crash/quiet-near-a-bar-that-stops.txt": ("unknown",),
    "no_crash/quiet-near-a-sentence-above-the-steps.txt": ("gpu_oom",),
    "no_crash/quiet-near-an-error-of-hydra.txt": ("unknown",),
    "no_crash/quiet-near-bars-of-other-processes.txt": ("gpu_oom",),
    "no_crash/quiet-near-the-server-saved-the-notebook.txt": ("unknown",),
    "segfault_native/quiet-near-log-line-of-another-process.json": ("sigkill_unattributed",),
    "sigkill_unattributed/quiet-near-a-job-with-a-status.txt": ("unknown",),
    "sigkill_unattributed/quiet-near-a-launcher-with-code-1.txt": ("unknown",),
    "sigkill_unattributed/quiet-near-what-was-killed-was-stale.txt": ("no_crash",),
    "stack_overflow/quiet-near-a-link-to-a-page.txt": ("sigkill_unattributed",),
    "stack_overflow/quiet-near-null-pointer-deep-down.json": ("segfault_native",),
    "terminated_by_user_or_manager/quiet-near-a-caret-alone.txt": ("unknown",),
    "terminated_by_user_or_manager/quiet-near-a-job-that-completed.txt": ("unknown",),
    "terminated_by_user_or_manager/quiet-near-sigterm-survived-then-sigkill.json": (
        "sigkill_unattributed",
    ),
    "tf_check_failed/quiet-near-a-worker-that-was-started-again.txt": ("no_crash",),
    "tf_check_failed/quiet-near-an-old-log-was-printed.json": ("unknown",),
    "thread_limit/quiet-near-a-locked-file.txt": ("unknown",),
    "thread_limit/quiet-near-did-with-one-thread.json": ("unknown",),
    "thread_limit/quiet-near-more-threads-than-it-was-built-for.txt": ("no_crash",),
}


def diagnosed(path: str) -> Diagnosis:
    """What is said of one."""
    where = EXAMPLES / path
    if where.suffix == ".json":
        return diagnose(Example("", "", where).bundle)
    return explain(TextExample("", "", where).pasted)
