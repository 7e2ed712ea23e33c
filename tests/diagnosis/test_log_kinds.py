"""Kinds of lines in pasted logs: three shapes of each, and near misses that must not be taken for it."""

from __future__ import annotations

import pytest

from jupyter_tfguard.diagnosis.diagnose import explain
from jupyter_tfguard.diagnosis.finding import Confidence, Finding
from jupyter_tfguard.diagnosis.pasted import Pasted

pytestmark = pytest.mark.quick


def best_of(text: str) -> Finding:
    return explain(Pasted(text)).best


NUMPY_NOTICE = """
  File "/opt/lab/lib/python3.11/site-packages/bindings/core.py", line 7, in <module>
    from bindings._native import *
AttributeError: _ARRAY_API not found

A module that was compiled using NumPy 1.x cannot be run in
NumPy 2.2.6 as it may crash. To support both 1.x and 2.x
versions of NumPy, modules must be compiled with NumPy 2.0.
Some module may need to rebuild instead e.g. with 'pybind11>=2.12'.

If you are a user of the module, the easiest solution will be to
downgrade to 'numpy<2' or try to upgrade the affected module.
We expect that some modules will need time to support NumPy 2.
"""
NO_HANDLE = "E0511 09:14:22.130426   20611 cuda_dnn.cc:534] Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR\n"

KINDS = [
    # A part of cuDNN needs another file of CUDA: that file is missing, not the part.
    (
        "Could not load library libcudnn_cnn_train.so.8. Error: libcublasLt.so.11: cannot open shared object file: No such file or directory\nAborted",
        "cuda_library_missing",
    ),
    (
        "Could not load library libcudnn_ops_infer.so.8. Error: libcudart.so.11.0: cannot open shared object file: No such file or directory",
        "cuda_library_missing",
    ),
    (
        "Could not load library libcudnn_adv_infer.so.8. Error: libnvrtc.so: cannot open shared object file: No such file or directory",
        "cuda_library_missing",
    ),
    (
        "Could not load library libcudnn_ops_train.so.8. Error: libcudnn_ops_train.so.8: cannot open shared object file: No such file or directory",
        "cudnn_version_mismatch",
    ),
    # The reason of a C++ exception is on the line after what().
    (
        "terminate called after throwing an instance of 'std::system_error' what():\nResource temporarily unavailable\nAborted (core dumped)",
        "thread_limit",
    ),
    (
        "terminate called after throwing an instance of 'std::system_error'\n  what():\n  Resource temporarily unavailable",
        "thread_limit",
    ),
    (
        "terminate called after throwing an instance of 'std::system_error'\n  what():      Resource temporarily unavailable",
        "thread_limit",
    ),
    (
        "terminate called after throwing an instance of 'std::runtime_error'\n  what():\nthe queue is closed",
        "tf_check_failed",
    ),
    # The first letters of a line were not copied.
    (
        "MP: Error #15: Initializing libiomp5.so, but found libomp.so already initialized.",
        "libiomp_duplicate",
    ),
    (
        ": Error #15: Initializing libomp.dylib, but found libiomp5.dylib already initialized.",
        "libiomp_duplicate",
    ),
    (
        "Error #15: Initializing libiomp5md.dll, but found libomp140.x86_64.dll already initialized.",
        "libiomp_duplicate",
    ),
    ("ValueError: Error #15: the sensor did not answer", "unknown"),
    # RESOURCE_EXHAUSTED of something else than the memory of the card
    (
        "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Shared memory size limit exceeded: requested 90112, available: 65536",
        "unknown",
    ),
    (
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem. Used 21.4M of 16.0M vmem.",
        "unknown",
    ),
    (
        "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Too many open files; bucket/shard-00017",
        "unknown",
    ),
    (
        "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 19.4G of 15.5G hbm.",
        "gpu_oom",
    ),
    # A CUDA library did not start, and the next line shows how much memory was free.
    (
        NO_HANDLE
        + "E0511 09:14:22.130458   20611 cuda_dnn.cc:538] Memory usage: 7931961728 bytes free, 8198619136 bytes total.",
        "unknown",
    ),
    (
        "2026-02-03 10:11:12.000131: E external/xla/xla/stream_executor/cuda/cuda_dnn.cc:439] Could not create cudnn handle: CUDNN_STATUS_NOT_INITIALIZED\n"
        "2026-02-03 10:11:12.000177: E external/xla/xla/stream_executor/cuda/cuda_dnn.cc:443] Memory usage: 40637514752 bytes free, 47587131392 bytes total.\n"
        "jaxlib.xla_extension.XlaRuntimeError: FAILED_PRECONDITION: DNN library initialization failed.",
        "unknown",
    ),
    (
        NO_HANDLE
        + "E0511 09:14:22.130458   20611 cuda_dnn.cc:538] Memory usage: 20961728 bytes free, 8198619136 bytes total.",
        "gpu_oom",
    ),
    (NO_HANDLE, "gpu_oom"),
    # Debuggers and crash reports of macOS
    (
        "* thread #31, queue = 'metal gpu stream', stop reason = EXC_BAD_ACCESS (code=1, address=0x18)\n  * frame #0: libobjc.A.dylib`objc_msgSend + 32",
        "segfault_native",
    ),
    (
        "Exception Type:        EXC_BAD_ACCESS (SIGSEGV)\nException Codes:       KERN_INVALID_ADDRESS at 0x0000000000000018",
        "segfault_native",
    ),
    (
        "Exception Type:        EXC_BAD_INSTRUCTION (SIGILL)\nException Note:        EXC_CORPSE_NOTIFY",
        "illegal_instruction",
    ),
    # NCCL's shared memory; a full disk has other words.
    (
        "lab-7:311:402 [1] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device",
        "bus_error_shm",
    ),
    (
        "lab-7:311:402 [0] misc/shmutils.cc:72 NCCL WARN Error: failed to extend segment to 9637892 bytes, error: No space left on device (28)",
        "bus_error_shm",
    ),
    (
        "worker-0:88:140 [3] NCCL WARN Error while creating shared memory segment nccl-AbC123 (size 4194656), error: No space left on device (28)",
        "bus_error_shm",
    ),
    (
        "lab-7:311:402 [1] NCCL INFO Using network Socket\nOSError: [Errno 28] No space left on device: 'ckpt/step_400.keras'",
        "disk_full",
    ),
    # Python's own shared memory
    (
        'Traceback (most recent call last):\n  File "/usr/lib/python3.11/multiprocessing/heap.py", line 83, in __init__\n    os.ftruncate(self.fd, size)\n'
        "OSError: [Errno 28] No space left on device",
        "bus_error_shm",
    ),
    (
        'Traceback (most recent call last):\n  File "/usr/lib/python3.12/multiprocessing/shared_memory.py", line 121, in __init__\n    os.ftruncate(self._fd, size)\n'
        "OSError: [Errno 28] No space left on device",
        "bus_error_shm",
    ),
    (
        'Traceback (most recent call last):\n  File "/usr/lib/python3.11/multiprocessing/queues.py", line 244, in _feed\n    send_bytes(obj)\n'
        "OSError: [Errno 28] No space left on device",
        "disk_full",
    ),
    # A worker that a bus error killed explains what other workers print.
    (
        "malloc(): memory corruption\nRuntimeError: DataLoader worker (pid 714) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.",
        "bus_error_shm",
    ),
    (
        "Killed\nRuntimeError: DataLoader worker (pid(s) 715) is killed by signal: Bus error.",
        "bus_error_shm",
    ),
    (
        "RuntimeError: DataLoader worker (pid 716) is killed by signal: Aborted.\nmalloc(): memory corruption",
        "glibc_abort_heap_corruption",
    ),
    # CUDA after a fork
    (
        "Process Process-3:\nTraceback (most recent call last):\nRuntimeError: CUDA error: initialization error",
        "fork_or_thread_deadlock",
    ),
    (
        "ForkPoolWorker-2\nRuntimeError: cuda runtime error (3) : initialization error at THCGeneral.cpp:55",
        "fork_or_thread_deadlock",
    ),
    (
        "cupy_backends.cuda.api.runtime.CUDARuntimeError: cudaErrorInitializationError: initialization error",
        "fork_or_thread_deadlock",
    ),
    ("RuntimeError: camera initialization error", "unknown"),
    # h5py puts the number of the error into its message.
    (
        "OSError: [Errno 116] Unable to synchronously open file (unable to fstat file, errno = 116, error message = 'Stale file handle')",
        "io_error",
    ),
    (
        "OSError: Can't write data (file write failed: errno = 116, error message = 'Stale file handle', buf = 0x55)",
        "io_error",
    ),
    (
        "OSError: [Errno 28] Can't write data (file write failed: errno = 28, error message = 'No space left on device')",
        "disk_full",
    ),
    # The rest of a warning is no output of the program.
    (NUMPY_NOTICE, "abi_mismatch"),
    (
        "2026-03-01 08:00:01.1: W external/local_xla/xla/service/gpu/llvm_gpu_backend/gpu_backend_lib.cc:504] Can't find libdevice directory ${CUDA_DIR}/nvvm/libdevice.\n"
        "Searched for CUDA in the following directories:\n  ./cuda_sdk_lib\n  /usr/local/cuda",
        "cuda_library_missing",
    ),
    (f"{NUMPY_NOTICE}Loading 3 tables\nrows: 51210", "no_crash"),
    (f"{NUMPY_NOTICE}Epoch 1/2\n 90/90 - 3s 21ms/step - loss: 0.71", "no_crash"),
    # The platform takes the machine back.
    (
        "INFO:tensorflow:ShutdownHook: lame workers found: HeartbeatManager(/job:worker/replica:0/task:0)\nINFO:tensorflow:ShutdownHook: saving checkpoint to gs://lab/model.ckpt",
        "terminated_by_user_or_manager",
    ),
    (
        "step 4100 loss 1.11\nJan 30 10:33:08 gpu-4 systemd-logind[611]: System is powering down.",
        "terminated_by_user_or_manager",
    ),
    (
        "PreemptionCheckpointHandler: worker 0 has received termination notice",
        "terminated_by_user_or_manager",
    ),
    (
        "Waiting for a preemption notice on port 8471\nEpoch 4/9\n 20/20 - 1s 40ms/step - loss: 0.2",
        "no_crash",
    ),
    # The server's culler, and the hub's
    (
        "[I 12:00:00.101 ServerApp] Culling 'busy' kernel 'python3' (3f2b8c1e) with 0 connections due to 3610 seconds of inactivity.\n"
        "[I 12:00:00.120 ServerApp] Kernel shutdown: 3f2b8c1e",
        "culled",
    ),
    (
        "Culling kernel 3f2b8c1e (python3) due to 7215 seconds of inactivity.",
        "culled",
    ),
    ("[I 260203 10:00:00 __init__:191] Culling server ann (inactive for 01:00:12)", "culled"),
    (
        "[I 12:00:00.101 ServerApp] Culling kernels with idle durations > 3600 seconds at 300 second intervals ...\nEpoch 2/4\n 9/9 - 1s 40ms/step - loss: 0.2",
        "no_crash",
    ),
    # GPUs of AMD and Apple
    (
        "Memory access fault by GPU node-1 (Agent handle: 0x55e0) on address 0x7f0000. Reason: Page not present or supervisor privilege.\nAborted (core dumped)",
        "cuda_illegal_access",
    ),
    (
        ":0:rocdevice.cpp:2726: Callback: Queue 0x7f aborting with error : HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in a hardware exception.",
        "cuda_illegal_access",
    ),
    (
        "Execution of the command buffer was aborted due to an error during execution. Caused GPU Hang Error (00000003:kIOGPUCommandBufferCallbackErrorHang)",
        "cuda_illegal_access",
    ),
    (
        "Execution of the command buffer was aborted. Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)",
        "gpu_oom",
    ),
    ("misc dxg: dxgk: dxgkio_make_resident: Ioctl failed: -12", "gpu_oom"),
    ("misc dxg: dxgk: dxgkio_query_adapter_info: Ioctl failed: -22", "unknown"),
    # TensorFlow's own handler of signals
    ("*** Received signal 11 ***\n*** BEGIN MANGLED STACK TRACE ***", "segfault_native"),
    ("[1,3]<stderr>:*** Received signal 7 ***", "segfault_native"),
    ("*** Received signal 4 ***", "illegal_instruction"),
    ("*** Received signal 8 ***\n*** BEGIN MANGLED STACK TRACE ***", "unknown"),
    # macOS: an exception that nothing caught
    (
        "libc++abi.dylib: terminating with uncaught exception of type std::runtime_error: queue closed",
        "tf_check_failed",
    ),
    (
        "libc++abi: terminating due to uncaught exception of type std::logic_error: bad state",
        "tf_check_failed",
    ),
    # Exit codes as container runtimes and launchers write them
    ('"State": {"Running": false, "ExitCode": 139}', "segfault_native"),
    ("{'pod': 'train-0', 'exit_code': 139, 'reason': 'Error'}", "segfault_native"),
    ("f00dcafe1234   lab/train   Exited (139) 2 minutes ago", "segfault_native"),
    ("=   EXIT CODE: 139", "segfault_native"),
    ("trainer-2 exited with 132", "illegal_instruction"),
    ('"exitCode": 132,', "illegal_instruction"),
    ("the child exited with return code -4", "illegal_instruction"),
    ('"OOMKilled": false,\n"ExitCode": 137', "sigkill_unattributed"),
    ("f00dcafe1234   lab/train   Exited (137) 2 minutes ago", "sigkill_unattributed"),
    ('"OOMKilled": true,\n"ExitCode": 137', "cgroup_oom"),
    ('"exitCode": 1320', "unknown"),
    ("139 workers exited with 2 warnings", "unknown"),
    ('"ExitCode": 1, "Pid": 139', "unknown"),
    ("the exit 132 of the motorway", "unknown"),
    # Nothing but an OS log: a failed disk is the best guess. Beside other lines it may be another program's.
    (
        "[ 512.10] I/O error, dev nvme1n1, sector 4096 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2",
        "io_error",
    ),
    (
        "[ 512.10] Aborting journal on device sda2-8.\n\n[ 512.11] EXT4-fs (sda2): Remounting filesystem read-only",
        "io_error",
    ),
    (
        "Feb 03 10:11:12 lab kernel: nfs: server store.lab not responding, still trying",
        "io_error",
    ),
    ("[ 512.10] Buffer I/O error on dev sr0, logical block 0, async page read", "unknown"),
    (
        "[ 512.10] Buffer I/O error on dev sda2, logical block 7, async page read\nthe kernel died",
        "unknown",
    ),
    (
        "[ 512.10] Buffer I/O error on dev sda2, logical block 7, async page read\n[ 512.11] python3[71]: segfault at 0 ip 00007f sp 00007f error 4 in libfit.so[7f+1]",
        "segfault_native",
    ),
    (
        "  Warning  Ext4Error  2m13s  kernel-monitor  EXT4-fs error (device sdb1): ext4_lookup:1700: inode #2: comm python3: reading directory\n"
        "  Warning  Ext4Error  2m12s  kernel-monitor  EXT4-fs error (device sdb1): ext4_lookup:1700: inode #9: comm sh: reading directory",
        "io_error",
    ),
    (
        "[ 9744.296] nvme nvme0: Device not ready; aborting reset\n[ 9744.297] nvme nvme0: Removing after probe failure status: -19",
        "io_error",
    ),
    ("[ 9744.296] nvme nvme0: 8/0/0 default/read/poll queues", "unknown"),
    # When a container ended is no progress, and the name of its state no signal.
    (
        '"ExitCode": 137,\n"StartedAt": "2026-02-03T10:11:12.1Z",\n"FinishedAt": "2026-02-03T10:12:13.1Z"',
        "sigkill_unattributed",
    ),
    (
        "    Last State:   Terminated\n      Reason:     Error\n      Exit Code:  139\n      Started:    Tue, 03 Feb 2026 10:11:12 +0000\n      Finished:   Tue, 03 Feb 2026 10:12:13 +0000",
        "segfault_native",
    ),
    ("    Last State:   Terminated\n      Reason:     Error\n      Exit Code:  1", "unknown"),
    ("Finished: 12 of 12 folds\nKilled", "sigkill_unattributed"),
    (
        "Segmentation fault (core dumped)\nfinished: Tue 3 Feb",
        "no_crash",
    ),
    (
        "./train.sh: line 3:    71 Terminated              python fit.py",
        "terminated_by_user_or_manager",
    ),
    # A container that did not start
    (
        '      Reason:       ContainerCannotRun\n      Message:      OCI runtime create failed: exec: "start-lab.sh": executable file not found in $PATH',
        "kernel_start_failed",
    ),
    (
        'docker: Error response from daemon: OCI runtime create failed: starting container process caused "exec format error": unknown.',
        "kernel_start_failed",
    ),
    ('OCI runtime exec failed: exec: "bash": executable file not found', "unknown"),
    # A quota, in small letters
    (
        "ResourceExhaustedError: /scratch/run/ckpt-7.index; disk quota exceeded [Op:SaveV2]",
        "disk_full",
    ),
    ("cp: error writing 'weights.h5': Disk quota exceeded", "disk_full"),
    ("ResourceExhaustedError: api quota exceeded for project lab", "unknown"),
    # Ray 2.0
    (
        "(raylet) System memory low at node with IP 10.0.0.9. Used memory (30.10GB) / total capacity (31.00GB) (0.97) exceeds threshold 0.95, killing latest task with name fit",
        "memory_daemon",
    ),
    ("(raylet) System memory low at node with IP 10.0.0.9.", "unknown"),
    # TensorFlow could not estimate a duration.
    (
        'W0203 10:11:12.109440    71 op_level_cost_estimator.cc:690] Error in PredictCost() for the op: op: "MaxPool3D"',
        "no_crash",
    ),
    (
        '2026-02-03 10:11:12.109440: W tensorflow/core/grappler/costs/op_level_cost_estimator.cc:690] Error in PredictCost() for the op: op: "MaxPool3D"\nKilled',
        "sigkill_unattributed",
    ),
    # The OS log says only who asked for memory.
    ("Nov 04 23:13:08 lab kernel: python3 invoked oom-killer: gfp_mask=0xd0, order=0", "host_oom"),
    (
        "[196120.73] ZMQbg/IO/0 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0\n[196120.74]  mem_cgroup_out_of_memory+0x5b/0x80",
        "cgroup_oom",
    ),
    (
        "[196120.73] jupyter-noteboo invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=991",
        "host_oom",
    ),
    ("[4018.45] mysqld invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0", "unknown"),
    (
        "[4018.45] python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0\n"
        "[4018.46] Out of memory: Killed process 935 (java) total-vm:113656kB, anon-rss:102104kB, file-rss:0kB, shmem-rss:0kB",
        "unknown",
    ),
]


@pytest.mark.parametrize(("text", "cause"), KINDS)
def test_a_kind_of_line_and_its_near_misses(text: str, cause: str) -> None:
    assert best_of(text).cause == cause


def test_the_part_of_cudnn_that_is_missing_is_named() -> None:
    text = "Unable to load any of {libcudnn_graph.so.9.1.0, libcudnn_graph.so.9}\nInvalid handle. Cannot load symbol cudnnCreate"
    assert best_of(text).title == "A part of cuDNN was not found: libcudnn_graph.so.9.1.0."


def test_free_memory_beside_a_library_that_did_not_start_is_quoted() -> None:
    text = f"{NO_HANDLE}E0511 09:14:22.130458   20611 cuda_dnn.cc:538] Memory usage: 6442450944 bytes free, 8589934592 bytes total."
    assert "6.00 GiB of 8.00 GiB GPU memory was free" in best_of(text).title


def test_who_asked_for_memory_need_not_be_the_victim() -> None:
    best = best_of("kernel: python3 invoked oom-killer: gfp_mask=0xd0, order=0, oom_score_adj=0")
    assert best.confidence is Confidence.LIKELY
