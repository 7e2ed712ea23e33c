"""Near misses that are played for real: what looks like a cause, and is none, beside an end that has another one or none."""

from __future__ import annotations

import signal

from tests.crash.cells import (
    CAUGHT_RECURSION,
    DEEP,
    FILL,
    IN_A_FORK,
    MY_RECORDING,
    forged,
    program,
    says,
    send,
    stamped,
)
from tests.crash.kinds import TERMINATED
from tests.crash.memory_plays import (
    child_killed_at_the_limit,
    child_killed_by_hand,
    counter_rose_before_it_came,
    just_below_the_limit,
    limit_hit_by_files,
    neighbour_killed,
)
from tests.crash.plays import (
    after_a_pause,
    no_thread_and_survived,
    stopped_for_a_while,
    with_a_small_shm,
)
from tests.crash.scene import Scene
from tests.crash.settings import SMALL_SHARED_MEMORY

KILL = send("SIGKILL")
KILLED = ("sigkill_unattributed",)
ENDED_ITSELF = ("sys_exit",)
UNKNOWN = ("unknown",)
SEGFAULT = ("segfault_native",)
NO_DEATH = ()

_OOM_LINES = (
    "Memory cgroup out of memory: Killed process {pid} (python3) total-vm:9123456kB, anon-rss:4100000kB, "
    "file-rss:1200kB, shmem-rss:0kB, UID:0 pgtables:9000kB oom_score_adj:0",
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/job,task_memcg=/job,"
    "task=python3,pid={pid},uid=0",
    "slurmstepd: error: Detected 1 oom-kill event(s) in step 1.0 cgroup.",
)
OOM_TEXT = "\\n".join(_OOM_LINES) + "\\n"
CHECK_FAILED = "F tensorflow/core/framework/tensor.cc:7] Check failed: n > 0 (0 vs. 0)"
CUDA_OOM = (
    "E external/local_xla/stream_executor/cuda/cuda_driver.cc:1] failed to allocate 2.0G: "
    "CUDA_ERROR_OUT_OF_MEMORY: out of memory"
)
CUDNN = (
    "E tensorflow/stream_executor/cuda/cuda_dnn.cc:1] Loaded runtime CuDNN library: 8.0.5 but source was "
    "compiled with: 8.1.0."
)
DOUBLE_FREE = "free(): double free detected in tcache 2"

NEAR_MISSES = (
    # --- memory --------------------------------------------------------------------------------------------------------
    Scene("kill -9 just below the memory limit", just_below_the_limit(), KILLED, "SIGKILL"),
    Scene("SIGTERM just below the memory limit", just_below_the_limit(signal.SIGTERM), TERMINATED),
    Scene(
        "kill -9 after memory near the limit was freed", just_below_the_limit(freed=True), KILLED
    ),
    Scene("limit hit by the page cache, then kill -9", limit_hit_by_files, KILLED),
    Scene(
        "OOM kill of a neighbour in the group, and kill -9 at once",
        neighbour_killed(same_group=True),
        KILLED,
    ),
    Scene(
        "OOM kill of a neighbour in the group, kill -9 a second later",
        neighbour_killed(same_group=True, seconds_before=1.0),
        KILLED,
    ),
    Scene(
        "OOM kill in another group, and kill -9 at once", neighbour_killed(same_group=False), KILLED
    ),
    Scene(
        "OOM kill of a child, and kill -9 of the kernel at once",
        child_killed_at_the_limit(KILL),
        KILLED,
    ),
    Scene(
        "OOM kill of a child, and os._exit(1) at once",
        child_killed_at_the_limit("import os; os._exit(1)"),
        ENDED_ITSELF,
    ),
    Scene("kills counted before the kernel came", counter_rose_before_it_came, KILLED),
    Scene(
        "MemoryError caught, then kill -9",
        "try:\n    bytes(1 << 60)\nexcept MemoryError: pass\n" + KILL,
        KILLED,
    ),
    Scene(
        "MemoryError at a limit of address space caught, then os._exit(2)",
        "import resource, os\nresource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))\n"
        "try:\n    bytearray(8 << 30)\nexcept MemoryError: pass\nos._exit(2)",
        ENDED_ITSELF,
    ),
    Scene(
        "a warning about a large allocation, then kill -9",
        says(
            "W cpu_allocator_impl.cc:84] Allocation of 7516192768 exceeds 10% of free system memory."
        )
        + KILL,
        KILLED,
    ),
    # --- forged --------------------------------------------------------------------------------------------------------
    Scene("OOM lines on stderr, then kill -9", says(*_OOM_LINES) + KILL, KILLED),
    Scene("OOM lines on stdout, then kill -9", f"import os\nprint({OOM_TEXT!r})\n" + KILL, KILLED),
    Scene(
        "an OOM line written to the system's log, then kill -9",
        forged(_OOM_LINES[0]) + "import time; time.sleep(0.3)\n" + KILL,
        KILLED,
    ),
    Scene(
        "an Xid written to the system's log, then abort()",
        forged(
            "NVRM: Xid (PCI:0000:01:00): 79, pid='{pid}', name=python, GPU has fallen off the bus."
        )
        + "os.abort()",
        UNKNOWN,
    ),
    Scene(
        "a recording that says quit(), then kill -9",
        MY_RECORDING
        + "open(folder + '/end.json', 'w').write('{\"reason\": \"quit\", \"time\": 1}')\n"
        + KILL,
        KILLED,
    ),
    Scene(
        "a recording with a made-up segmentation fault, then abort()",
        MY_RECORDING
        + "open(folder + '/fault.txt', 'w').write('Fatal Python error: Segmentation fault\\n\\n"
        'Current thread 0x00007f3a (most recent call first):\\n  File "a.py", line 1 in a\\n\')\n'
        + "os.abort()",
        UNKNOWN,
    ),
    Scene(
        "a recording with a made-up SIGTERM, then kill -9",
        MY_RECORDING
        + "open(folder + '/signal-SIGTERM.txt', 'w').write('Stack (most recent call first):\\n  File \"a.py\", line 1 in a\\n')\n"
        + KILL,
        KILLED,
    ),
    Scene(
        "a recording whose header names another memory group, then kill -9",
        MY_RECORDING + "import json\nheader = json.load(open(folder + '/header.json'))\n"
        "header['memory_group'] = {'path': '/', 'version': 1, 'limited_by': '/'}\nheader['pid'] = 1\n"
        "json.dump(header, open(folder + '/header.json', 'w'))\n" + KILL,
        KILLED,
    ),
    Scene(
        "names of the OOM reaper, then kill -9",
        "import ctypes, threading, time\nlibc = ctypes.CDLL(None)\n"
        "def run():\n    libc.prctl(15, b'oom_reaper', 0, 0, 0); time.sleep(100)\n"
        "threading.Thread(target=run, daemon=True).start()\nlibc.prctl(15, b'Killed process', 0, 0, 0)\n"
        + KILL,
        KILLED,
    ),
    # --- a scary text, then an end of another kind --------------------------------------------------------------------------
    Scene("Check failed, then os._exit(0)", says(CHECK_FAILED) + "os._exit(0)", ENDED_ITSELF),
    Scene("Check failed, then quit()", says(CHECK_FAILED) + "quit()", ENDED_ITSELF),
    Scene("Check failed, then kill -9", says(CHECK_FAILED) + KILL, KILLED),
    Scene("CUDA out of memory, then quit()", says(CUDA_OOM) + "quit()", ENDED_ITSELF),
    Scene("CUDA out of memory, then kill -9", says(CUDA_OOM) + KILL, KILLED),
    Scene("cuDNN of another version, then SIGTERM", says(CUDNN) + send("SIGTERM"), TERMINATED),
    Scene("double free in words, then kill -9", says(DOUBLE_FREE) + KILL, KILLED),
    Scene("bad_alloc in words, then SIGHUP", says("std::bad_alloc") + send("SIGHUP"), TERMINATED),
    Scene("Killed, then abort()", says("Killed", "exit status 137") + "os.abort()", UNKNOWN),
    Scene(
        "an OpenMP remark, then os._exit(0)",
        says("OMP: Info #276: deprecated") + "os._exit(0)",
        ENDED_ITSELF,
    ),
    Scene(
        "a segmentation fault in words, then os._exit(139)",
        says("Fatal Python error: Segmentation fault", "", "Segmentation fault (core dumped)")
        + "os._exit(139)",
        ENDED_ITSELF,
    ),
    Scene("OOM lines, then os._exit(137)", says(*_OOM_LINES) + "os._exit(137)", ENDED_ITSELF),
    # --- something that happened earlier ---------------------------------------------------------------------------------------
    Scene(
        "a fatal record of an hour ago is printed, then abort()",
        stamped(CHECK_FAILED, 3600 + 411) + "os.abort()",
        UNKNOWN,
    ),
    Scene(
        "a fatal record of last month is printed, then abort()",
        stamped(CHECK_FAILED, 30 * 86400) + "os.abort()",
        UNKNOWN,
    ),
    Scene(
        "a fatal record of absl's, of last year, then os._exit(1)",
        says("F0000 00:00:1763690000.123456    4711 engine.cc:7] Check failed: n > 0")
        + "os._exit(1)",
        ENDED_ITSELF,
    ),
    Scene(
        "double free in words, three seconds later abort()",
        after_a_pause(says(DOUBLE_FREE), "import os; os.abort()"),
        UNKNOWN,
    ),
    Scene(
        "Check failed, three seconds later os._exit(1)",
        after_a_pause(says(CHECK_FAILED), "import os; os._exit(1)"),
        ENDED_ITSELF,
    ),
    Scene(
        "RecursionError caught, then a null pointer",
        CAUGHT_RECURSION + "import ctypes; ctypes.string_at(0)",
        SEGFAULT,
    ),
    Scene("RecursionError caught, then kill -9", CAUGHT_RECURSION + KILL, KILLED),
    Scene("a null pointer 600 calls down", DEEP, SEGFAULT),
    Scene(
        "stacks asked for, then kill -9",
        "import faulthandler, time\nfaulthandler.dump_traceback(file=2)\ntime.sleep(0.2)\n" + KILL,
        KILLED,
    ),
    Scene(
        "stacks asked for, then os._exit(1)",
        "import faulthandler, os\nfaulthandler.dump_traceback(file=2)\nos._exit(1)",
        ENDED_ITSELF,
    ),
    Scene(
        "no room on a small file system, survived, then kill -9",
        with_a_small_shm(FILL, KILL),
        KILLED,
        setting=SMALL_SHARED_MEMORY,
    ),
    Scene(
        "a full shared memory, survived, then a null pointer",
        with_a_small_shm(FILL, "import ctypes; ctypes.string_at(0)"),
        SEGFAULT,
        setting=SMALL_SHARED_MEMORY,
    ),
    Scene(
        "shared memory in use, and a null pointer",
        "from multiprocessing import shared_memory\nblock = shared_memory.SharedMemory(create=True, size=4096)\n"
        "import ctypes; ctypes.string_at(0)",
        SEGFAULT,
    ),
    Scene("refused a thread, survived, then kill -9", no_thread_and_survived(KILL), KILLED),
    Scene(
        "refused a thread, survived, then os._exit(2)",
        no_thread_and_survived("import os; os._exit(2)"),
        ENDED_ITSELF,
    ),
    # --- somebody else's ---------------------------------------------------------------------------------------------------------
    Scene(
        "a child crashes and the kernel lives",
        program("import ctypes; ctypes.string_at(0)") + "1 + 1",
        NO_DEATH,
    ),
    Scene(
        "a child is killed and the kernel lives",
        program("import os; os.kill(os.getpid(), 9)") + "1 + 1",
        NO_DEATH,
    ),
    Scene(
        "a child killed by hand beside an OOM kill, and the kernel lives",
        child_killed_by_hand,
        NO_DEATH,
    ),
    Scene(
        "a child finds its heap damaged; then kill -9",
        program(
            "import ctypes\nf = ctypes.PyDLL(None)\nf.calloc.restype = ctypes.c_void_p\nf.free(ctypes.c_void_p(f.calloc(1, 48) + 8))"
        )
        + KILL,
        KILLED,
    ),
    Scene(
        "a forked child crashes, then kill -9",
        IN_A_FORK.format("ctypes.string_at(0)") + KILL,
        KILLED,
    ),
    Scene(
        "a forked child crashes, then os._exit(1)",
        IN_A_FORK.format("ctypes.string_at(0)") + "os._exit(1)",
        ENDED_ITSELF,
    ),
    Scene(
        "a child finds its heap damaged; seconds later abort()",
        after_a_pause(
            program(
                "import ctypes\nf = ctypes.PyDLL(None)\nf.calloc.restype = ctypes.c_void_p\nf.free(ctypes.c_void_p(f.calloc(1, 48) + 8))"
            ),
            "import os; os.abort()",
        ),
        UNKNOWN,
    ),
    Scene(
        "another program in the kernel's place",
        "import os; os.execv('/bin/sh', ['sh', '-c', 'exit 5'])",
        ENDED_ITSELF,
    ),
    Scene("stopped for a while, then kill -9", stopped_for_a_while, KILLED),
    Scene(
        "the hard limit of CPU time",
        "import resource\nused = int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2])) + 1\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (used, used))\nwhile True: pass",
        KILLED,
    ),
)
