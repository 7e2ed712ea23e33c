"""The kinds of death that are told apart, each made for real, and what its report must say.

Signals are raised by what raises them in life where that is possible here, the others are sent. Lines of libraries that
are not installed (a second OpenMP, a GPU's) are written natively, in their own words, before the abort that follows them.
"""

from __future__ import annotations

from tests.crash.cells import NEW, XLA_TYPO, by_default, record, says_natively, send
from tests.crash.memory_plays import eats_up_its_limit, has_a_child_killed
from tests.crash.plays import (
    fills_the_shared_memory,
    illegal_instruction,
    killed_from_outside,
    starts_no_more_threads,
)
from tests.crash.scene import Scene
from tests.crash.settings import NO_IPYKERNEL, SMALL_ADDRESS_SPACE, SMALL_SHARED_MEMORY

TERMINATED = ("terminated_by_user_or_manager",)

KINDS = (
    # --- signals -----------------------------------------------------------------------------------------------------
    Scene(
        "SIGKILL, sent by itself",
        send("SIGKILL"),
        ("sigkill_unattributed",),
        "SIGKILL",
        "certain",
    ),
    Scene(
        "SIGKILL, from outside",
        killed_from_outside,
        ("sigkill_unattributed",),
        "SIGKILL",
        "certain",
    ),
    Scene("SIGTERM", send("SIGTERM"), TERMINATED, "SIGTERM", "certain", "asked to terminate"),
    Scene("SIGHUP", send("SIGHUP"), TERMINATED, "SIGHUP", "certain", "login session was closed"),
    Scene(
        "SIGXCPU, by a limit of CPU time",
        "import resource\nused = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (int(used) + 1, 100))\nwhile True: pass",
        TERMINATED,
        "SIGXCPU",
        "certain",
        "used up its CPU time limit",
    ),
    Scene(
        "SIGSEGV, a null pointer",
        "import ctypes\ndef poke(a):\n    return ctypes.string_at(a)\npoke(0)",
        ("segfault_native",),
        "SIGSEGV",
        "certain",
        "called from line 3 of the cell, in poke",
    ),
    Scene(
        "SIGBUS, beyond the end of a mapped file",
        "import mmap, tempfile\nf = tempfile.TemporaryFile(); f.truncate(8192)\n"
        "m = mmap.mmap(f.fileno(), 8192); f.truncate(0)\nm[5000]",
        ("segfault_native",),
        "SIGBUS",
        "certain",
        "line 4 of the cell",
    ),
    Scene(
        "SIGILL, an instruction that does not exist",
        illegal_instruction,
        ("illegal_instruction",),
        "SIGILL",
        "certain",
    ),
    Scene("SIGFPE", send("SIGFPE"), ("unknown",), "SIGFPE", "possible", "ended by SIGFPE"),
    Scene("SIGABRT without words", "import os; os.abort()", ("unknown",), "SIGABRT", "possible"),
    Scene("SIGQUIT", send("SIGQUIT"), ("unknown",), "SIGQUIT", "possible", "ended by SIGQUIT"),
    Scene("SIGTRAP", send("SIGTRAP"), ("unknown",), "SIGTRAP", "possible", "ended by SIGTRAP"),
    Scene("SIGSYS", send("SIGSYS"), ("unknown",), "SIGSYS", "possible", "ended by SIGSYS"),
    Scene("SIGPIPE", by_default("SIGPIPE"), ("unknown",), "SIGPIPE", "possible", "SIGPIPE"),
    Scene(
        "SIGALRM, by an alarm clock",
        "import signal, time; signal.alarm(1); time.sleep(30)",
        ("unknown",),
        "SIGALRM",
        "possible",
        "ended by SIGALRM",
    ),
    Scene("SIGUSR2", send("SIGUSR2"), ("unknown",), "SIGUSR2", "possible", "ended by SIGUSR2"),
    Scene(
        "SIGXFSZ, by a limit of file size",
        "import resource, signal, tempfile\nsignal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "file = tempfile.TemporaryFile(buffering=0)\nwhile True: file.write(bytes(1 << 20))",
        ("unknown",),
        "SIGXFSZ",
        "possible",
        "ended by SIGXFSZ",
    ),
    # --- memory ------------------------------------------------------------------------------------------------------
    Scene(
        "memory limit of the group",
        eats_up_its_limit,
        ("cgroup_oom",),
        "SIGKILL by the out-of-memory killer",
        "certain",
        "400 MiB",
    ),
    Scene(
        "a child killed at the memory limit",
        has_a_child_killed,
        ("child_oom_killed",),
        "kernel still running",
        "certain",
        "The kernel is still running",
    ),
    Scene(
        "std::bad_alloc, thrown by the library",
        "import ctypes\nctypes.PyDLL('libstdc++.so.6')['_ZSt17__throw_bad_allocv']()",
        ("cpu_alloc_failure",),
        "SIGABRT",
        "likely",
        "std::bad_alloc",
    ),
    Scene(
        "std::bad_alloc at a limit of address space (RLIMIT_AS)",
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))\n"
        + NEW
        + "library._Znwm(8 << 30)",
        ("cpu_alloc_failure",),
        "SIGABRT",
        "likely",
        "std::bad_alloc",
    ),
    Scene(
        "std::bad_alloc under ulimit -v of the shell",
        "import resource; assert resource.getrlimit(resource.RLIMIT_AS)[0] == 6 << 30\n"
        + NEW
        + "for _ in range(100): library._Znwm(1 << 30)",
        ("cpu_alloc_failure",),
        "SIGABRT",
        "likely",
        "std::bad_alloc",
        SMALL_ADDRESS_SPACE,
    ),
    Scene(
        "shared memory too small",
        fills_the_shared_memory,
        ("bus_error_shm",),
        "SIGBUS",
        "likely",
        "shared_memory",
        SMALL_SHARED_MEMORY,
    ),
    # --- native code gives up -------------------------------------------------------------------------------------------
    Scene(
        "TensorFlow: Check failed",
        "import tensorflow as tf\ntf.raw_ops.SparseTensorDenseMatMul(\n"
        "    a_indices=[[0, 0]], a_values=[1.0], a_shape=[-1, 3], b=[[1.0], [1.0], [1.0]])",
        ("tf_check_failed",),
        "SIGABRT",
        "likely",
        "Expected shape dimensions to be non-negative",
    ),
    Scene(
        "TensorFlow: an unknown flag in XLA_FLAGS",
        XLA_TYPO,
        ("tf_check_failed",),
        "exit code 1",
        "likely",
        "xla_force_host_platform_devices",
    ),
    Scene(
        "TensorFlow: a wrong value in XLA_FLAGS",
        XLA_TYPO.replace("devices=2", "device_count=many"),
        ("tf_check_failed",),
        "exit code 1",
        "likely",
        "Flag parsing failed",
    ),
    Scene(
        "TensorFlow: thread limit",
        starts_no_more_threads,
        ("thread_limit",),
        "SIGABRT",
        "likely",
        "pthread_create",
    ),
    Scene(
        "LOG(FATAL) of a library",
        record("F", "engine.cc:7] The compiled graph and its weights differ"),
        ("tf_check_failed",),
        "SIGABRT",
        "likely",
        "its weights differ",
    ),
    Scene(
        "Check failed that wraps a lack of GPU memory",
        record("F", "stream.cc:7] Check failed: ok CUDA_ERROR_OUT_OF_MEMORY: out of memory"),
        ("gpu_oom",),
        "SIGABRT",
        "likely",
    ),
    Scene(
        "a fatal line that names a full disk",
        record(
            "F", "writer.cc:7] Check failed: ok RESOURCE_EXHAUSTED: a.tmp; No space left on device"
        ),
        ("disk_full",),
        "SIGABRT",
        "likely",
    ),
    Scene(
        "refused for want of AVX",
        record(
            "F",
            "cpu_feature_guard.cc:38] The TensorFlow library was compiled to use AVX instructions, "
            "but these aren''t available on your machine.".replace("''", chr(92) + "'"),
        ),
        ("illegal_instruction",),
        "SIGABRT",
        "likely",
    ),
    Scene(
        "std::system_error of a thread that could not be started",
        says_natively(
            "terminate called after throwing an instance of 'std::system_error'\n"
            "  what():  Resource temporarily unavailable"
        ),
        ("thread_limit",),
        "SIGABRT",
        "likely",
        "Resource temporarily unavailable",
    ),
    Scene(
        "heap corruption: double free",
        "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.malloc.restype = ctypes.c_void_p\n"
        "p = ctypes.c_void_p(libc.malloc(64))\nlibc.free(p)\nlibc.free(p)",
        ("glibc_abort_heap_corruption",),
        "SIGABRT",
        "likely",
        "double free",
    ),
    Scene(
        "heap corruption: a pointer that is none",
        "import ctypes\nlibc = ctypes.PyDLL(None)\nlibc.calloc.restype = ctypes.c_void_p\n"
        "libc.free(ctypes.c_void_p(libc.calloc(1, 48) + 8))",
        ("glibc_abort_heap_corruption",),
        "SIGABRT",
        "likely",
        "invalid pointer",
    ),
    Scene(
        "a smashed stack",
        "import ctypes; ctypes.PyDLL(None).__stack_chk_fail()",
        ("glibc_abort_heap_corruption",),
        "SIGABRT",
        "likely",
        "stack smashing detected",
    ),
    Scene(
        "an assertion in C",
        "import ctypes; ctypes.PyDLL(None).__assert_fail(b'rank < 8', b'shape.c', 41, b'Reshape')",
        ("tf_check_failed",),
        "SIGABRT",
        "likely",
        "rank < 8",
    ),
    Scene(
        "a second OpenMP in one process",
        says_natively(
            "OMP: Error #15: Initializing libomp.so, but found libiomp5.so already initialized.\n"
            "OMP: Hint This means that multiple copies of the OpenMP runtime have been linked into the program."
        ),
        ("libiomp_duplicate",),
        "SIGABRT",
        "likely",
        "libiomp5.so already initialized",
    ),
    # --- the stack -----------------------------------------------------------------------------------------------------
    Scene(
        "recursion in Python beyond the stack",
        "import sys\nsys.setrecursionlimit(10**9)\nclass Layer:\n    def __getattr__(self, name):\n"
        "        return getattr(self, name + 'x')\nLayer().units",
        ("stack_overflow",),
        "SIGSEGV",
        "likely",
        "in __getattr__",
    ),
    Scene(
        "recursion through native callbacks",
        "import ctypes, sys\nsys.setrecursionlimit(10**9)\nkind = ctypes.PYFUNCTYPE(None, ctypes.py_object)\n"
        "def deeper(callback):\n    callback(callback)\ncallback = kind(deeper)\ncallback(callback)",
        ("stack_overflow",),
        "SIGSEGV",
        "likely",
        "in deeper",
    ),
    Scene(
        "a kernel that cannot start",
        "",
        ("kernel_start_failed",),
        "exit code 1",
        "likely",
        "received no message",
        NO_IPYKERNEL,
    ),
    # --- exit codes ----------------------------------------------------------------------------------------------------
    *(
        Scene(
            f"exit code {code}",
            f"import os; os._exit({code})",
            ("sys_exit",),
            f"exit code {code}",
            "certain",
            f"exit code {code}",
        )
        # What a shell would call SIGABRT, SIGKILL and SIGSEGV is here a number like any other.
        for code in (0, 1, 3, 127, 134, 137, 139)
    ),
    Scene("quit()", "quit()", ("sys_exit",), "exit code 0", "certain", "quit() or exit()"),
)
