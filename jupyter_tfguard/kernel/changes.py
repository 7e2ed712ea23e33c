"""Everything that the guard changes in the user's process, and how each change is made, undone, and left behind by a fork.

``GuardSession`` makes the changes in this order and undoes them in reverse order. The page "What tfguard changes in your
kernel" is written from this table, and a test compares a kernel without the guard to one with it by the marks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

AT_START = "at the start of the kernel"
ON_IMPORT = "after the import of {}"
IN_CELL = "while a cell runs"


@dataclass(frozen=True, slots=True)
class ProcessChange:
    """One change.

    Attributes:
        name: For messages.
        what: What is different, as text for users.
        why: What it is for.
        marks: How it is seen from inside the process, ``kind:name`` with ``*`` as a wildcard, as in tests/kernel/marks.py.
        sometimes: The same for what is there only under the conditions that `what` names, or only for a moment.
        remains: Those that an unload leaves.
        when: When it is made.
        level: The lowest ``TfGuard.stop`` with this change; empty: also with ``off``.
        install: Makes it: a method, as a path from the session. Empty: another part makes it later.
        undo: Undoes it; idempotent.
        fork: Called in a forked child.
        child: What a forked child has of it, as text for users.
        stays_at_exit: True if it is not undone at the end of the process.
    """

    name: str
    what: str
    why: str
    marks: tuple[str, ...]
    when: str = AT_START
    sometimes: tuple[str, ...] = ()
    remains: tuple[str, ...] = ()
    level: str = ""
    install: str = ""
    undo: str = ""
    fork: str = ""
    child: str = "nothing"
    stays_at_exit: bool = False

    def method(self, step: str, session: Any) -> Callable[[], object] | None:
        """The method of the session for ``install``, ``undo`` or ``fork``; None if there is none."""
        path = getattr(self, step)
        found: Callable[[], object] | None = attrgetter(path)(session) if path else None
        return found


def methods(
    step: str, session: Any, *, at_exit: bool = False
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Name and method of each change that has one for this step, in the order in which they are to be called.

    Args:
        step: ``install``, ``undo`` or ``fork``.
        session: The guard of the kernel.
        at_exit: Without the changes that stay at the end of the process.
    """
    for change in CHANGES if step == "install" else reversed(CHANGES):
        method = change.method(step, session)
        if method is not None and not (at_exit and change.stays_at_exit):
            yield change.name, method


CHANGES = (
    ProcessChange(
        "environment of a gateway",
        "`TFGUARD_*` and `JUPYTER_CONFIG_DIR`, only in kernels of `jupyter_kernel_gateway`: as in the gateway's own environment.",
        "A gateway leaves them out, and the switch and the folders would have no effect.",
        (),
        sometimes=(
            "environment:TFGUARD_DISABLE",
            "environment:TFGUARD_DIR",
            "environment:TFGUARD_LIVE_DIR",
            "environment:JUPYTER_CONFIG_DIR",
        ),
        undo="shell_names.release_environment",
        child="the variables",
        stays_at_exit=True,
    ),
    ProcessChange(
        "memory growth",
        "`TF_FORCE_GPU_ALLOW_GROWTH=true` and `TFGUARD_SET_GROWTH=1`, unless you have set the first.",
        "TensorFlow then takes GPU memory as it needs it, not all at once.",
        ("environment:TF_FORCE_GPU_ALLOW_GROWTH", "environment:TFGUARD_SET_GROWTH"),
        install="libraries.set_growth",
        undo="libraries.undo_growth",
        child="the variables",
        stays_at_exit=True,
    ),
    ProcessChange(
        "mark of the kernel",
        "`TFGUARD_KERNEL_PID`, the process id.",
        "A kernel that is started in a cell is then not taken for this one.",
        ("environment:TFGUARD_KERNEL_PID",),
        install="header.claim_environment",
        undo="header.release_environment",
        child="the variable",
        stays_at_exit=True,
    ),
    ProcessChange(
        "recording",
        "A folder in tfguard's data folder, with `alive.lock` open and locked. The other files are open while they are written.",
        "It outlives the kernel, and says why it died.",
        ("descriptor:alive.lock", "file:recordings"),
        install="start_recording",
    ),
    ProcessChange(
        "stack traces at fatal signals",
        "`faulthandler` is on, unless it was on. It also writes the stack at SIGTERM, SIGHUP, SIGXCPU and SIGQUIT where "
        "these had the default action; the process then ends as before.",
        "A report names the line of Python at which the kernel ended.",
        (
            "descriptor:fault.txt",
            "descriptor:signal-*.txt",
            "faulthandler:enabled",
            *(f"signal:{name}" for name in ("SIGTERM", "SIGHUP", "SIGXCPU", "SIGQUIT")),
            *(f"signal:{name}" for name in ("SIGSEGV", "SIGFPE", "SIGABRT", "SIGBUS", "SIGILL")),
        ),
        install="native.start_faults",
        undo="native.stop_faults",
        fork="native.stop_faults",
    ),
    ProcessChange(
        "stderr tail",
        "File descriptor 2 is a pipe of tfguard. A thread writes the text to the recording and passes it on as before. Without a "
        "Jupyter server that watches, a small process in a session of its own forwards the last text after the kernel's end.",
        "A report quotes what native code wrote last.",
        (
            "descriptor:2",
            "descriptor:pipe",
            "descriptor:stderr.*.txt",
            "descriptor:memfd:tfguard-position",
            "thread:tfguard-stderr",
        ),
        sometimes=("thread:tfguard-helper",),
        install="native.start_tail",
        undo="native.stop_tail",
        fork="native.leave_tail",
        child="fd 2 as in the kernel",
    ),
    ProcessChange(
        "samples",
        "A thread that reads the kernel's memory, by default ten times a second while a cell runs and once a second otherwise.",
        "The curve of the memory, for kernels without a server that watches too.",
        ("thread:tfguard-pulse",),
        install="start_pulse",
        undo="stop_pulse",
    ),
    ProcessChange(
        "cells",
        "Two callbacks of IPython's events `pre_run_cell` and `post_run_cell`.",
        "Start, end and memory of each cell.",
        ("event:pre_run_cell:*", "event:post_run_cell:*"),
        install="cells.start",
        undo="cells.stop",
        fork="cells.stop",
    ),
    ProcessChange(
        "memory guard",
        "A native thread that reads the available memory while a cell runs, a thread that helps to stop a cell, and a handler "
        "of one unused real-time signal. During a stop also a profile function and a shorter switch interval.",
        "A cell that fills the memory ends with an exception instead of the kernel.",
        ("thread:tfguard-memory", "thread:tfguard-stop", "signal:SIGRT*"),
        level="soft",
        install="stop.start",
        undo="stop.stop",
        fork="stop.leave_child",
    ),
    ProcessChange(
        "allocators",
        "Large allocations of Python, NumPy, pandas, scikit-learn and Fourier transforms pass through tfguard's native library.",
        "An allocation that cannot fit fails with MemoryError before the system kills the kernel.",
        ("allocator:*", "library:_gate.so"),
        remains=("library:_gate.so",),
        when=f"{AT_START}, and after the import of each library",
        level="soft",
        child="the functions, which then check nothing",
    ),
    ProcessChange(
        "allocators of TensorFlow",
        "TensorFlow's allocators, too, and blocks on disk.",
        "The same for tensors.",
        (),
        when=ON_IMPORT.format("TensorFlow"),
        level="full",
        child="the functions, which then check nothing",
    ),
    ProcessChange(
        "traceback of a stopped cell",
        "`showtraceback` of the shell is wrapped.",
        "IPython's own traceback needs memory that a stopped cell does not leave.",
        ("shell:showtraceback",),
        level="soft",
        install="stop.hook_tracebacks",
        undo="stop.unhook_tracebacks",
        child="the function, which then only passes on",
    ),
    ProcessChange(
        "callbacks of widgets",
        "The kernel's handlers of `comm_open`, `comm_msg` and `comm_close` are wrapped.",
        "A callback that fills the memory is stopped as a cell is.",
        ("handler:comm_*",),
        level="soft",
        install="stop.watch_callbacks",
        undo="stop.unwatch_callbacks",
        child="the functions, which then only pass on",
    ),
    ProcessChange(
        "calls of TensorFlow",
        "TensorFlow's default cancellation manager, and the function that takes the next element of a data set.",
        "A stop can end a function of TensorFlow that runs for long.",
        (),
        when=f"{IN_CELL}, once TensorFlow is imported",
        level="soft",
        child="as in the cell that forks",
    ),
    ProcessChange(
        "SIGTERM in a batch job",
        "A handler of SIGTERM, Python's wakeup descriptor, a pipe and a thread, only in a job of a batch system.",
        "The model is saved when the batch system ends the job.",
        (),
        when="while a fit runs",
        level="soft",
    ),
    ProcessChange(
        "imports",
        "A finder at the front of `sys.meta_path`, which finds nothing itself.",
        "tfguard imports neither TensorFlow nor Keras, so it has to wait for your import.",
        ("finder:ImportHook",),
        install="libraries.start",
        undo="libraries.stop_listening",
        fork="libraries.leave_child",
    ),
    ProcessChange(
        "fits",
        "`fit`, `evaluate` and `predict` of Keras' model get one more callback. The methods stay the same objects.",
        "Epoch, step and loss in the panel and in reports.",
        ("keras:fit", "keras:evaluate", "keras:predict", "keras:_EXCLUDED_PATHS"),
        when=ON_IMPORT.format("Keras"),
        undo="libraries.detach",
        child="the functions, which then record nothing",
    ),
    ProcessChange(
        "training loops",
        "The method of Keras' optimizers that makes their variables is wrapped.",
        "Steps of a training loop without `fit`.",
        ("keras:optimizer",),
        when=ON_IMPORT.format("Keras"),
        child="the function, which then records nothing",
    ),
    ProcessChange(
        "weights",
        "The methods of Keras' layers and optimizers that make a weight are wrapped.",
        "A weight that cannot fit is refused with its shape.",
        ("keras:add_weight", "keras:add_variable_from_reference"),
        when=ON_IMPORT.format("Keras"),
        level="soft",
        undo="stop.detach_weights",
        child="the functions, which then refuse nothing",
    ),
    ProcessChange(
        "limit of GPU memory",
        "A logical device with the limit of `TfGuard.gpu_memory_limit_mib`, if that option is set.",
        "Several kernels share a GPU.",
        (),
        when=ON_IMPORT.format("TensorFlow"),
        child="as in the kernel; TensorFlow cannot take it back",
    ),
    ProcessChange(
        "end of the kernel",
        "An `atexit` function, an observer of the shell's `exit_now`, and wrapped handlers of `shutdown_request`.",
        "An orderly end makes no report.",
        ("atexit:Endings._at_exit", "observer:exit_now", "handler:shutdown_request"),
        install="endings.start",
        undo="endings.stop",
        child="the functions, which then do nothing",
    ),
    ProcessChange(
        "reports of earlier kernels",
        "A thread, for a moment.",
        "Without a server, this kernel makes the report of an earlier one that died.",
        (),
        sometimes=("thread:tfguard-reports",),
        install="start_news",
    ),
    ProcessChange(
        "stack traces of a hung kernel",
        "`faulthandler` writes the stacks of all threads at one more unused real-time signal.",
        "A watcher can say where a kernel hangs.",
        ("descriptor:stacks.txt", "signal:SIGRT*"),
        install="native.start_stacks",
        undo="native.stop_stacks",
        fork="native.stop_stacks",
    ),
    ProcessChange(
        "forks",
        "Two functions of `os.register_at_fork`, and those of the native library. They cannot be removed; after an unload they do nothing.",
        "A forked child leaves the recording alone.",
        (),
        install="shell_names.register_at_fork",
        child="what this list says",
    ),
    ProcessChange(
        "magic",
        "`%tfguard`.",
        "The commands.",
        ("magic:tfguard",),
        install="shell_names.register_magic",
        undo="shell_names.unregister_magic",
        child="the magic",
        stays_at_exit=True,
    ),
    ProcessChange(
        "extension names",
        "`tfguard` and `jupyter_tfguard` count as loaded extensions, and `load_extension` of the shell is wrapped.",
        "`%load_ext tfguard` shows the state, and `%unload_ext tfguard` undoes this list.",
        ("shell:load_extension", "extension:tfguard", "extension:jupyter_tfguard"),
        install="shell_names.register_extensions",
        undo="shell_names.unregister_extensions",
        child="the names",
        stays_at_exit=True,
    ),
    ProcessChange(
        "panel",
        "A widget and a thread that sends its state.",
        "`%tfguard panel`.",
        (),
        sometimes=("thread:tfguard-widget",),
        when="at `%tfguard panel`",
        undo="stop_panel",
    ),
)
