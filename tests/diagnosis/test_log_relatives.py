"""Messages of one kind in the words of other systems, libraries and releases: three shapes of each, and near misses."""

from __future__ import annotations

import pytest

from jupyter_tfguard.diagnosis.diagnose import explain
from jupyter_tfguard.diagnosis.finding import Confidence, Finding
from jupyter_tfguard.diagnosis.pasted import Pasted

pytestmark = pytest.mark.quick


def best_of(text: str, kernel_log: str = "") -> Finding:
    return explain(Pasted(text, kernel_log)).best


KINDS = {
    "cuda_library_missing": [
        # cuDNN for Windows needs a file that is not a part of it.
        "Could not locate zlibwapi.dll. Please make sure it is in your library path!",
        "Could not load library zlibwapi.dll. Error code 126. Please verify that the library is built correctly for your processor architecture",
        "The program can't start because zlibwapi.dll is missing from your computer.",
        # The rest of the line was not copied.
        "ImportError: libcublas.so.12: cannot open s",
        "ImportError: libcudart.so.11.0: cannot open shared obj",
        'OSError: [WinError 126] The specified module could not be found. Error loading "D:\\lab\\torch\\lib\\cufft64_11.dll" or one of its dependencies.',
        "nvrtc: error: failed to open libnvrtc-builtins.so.12.4.",
        "2026-01-02 03:04:05.000001: W tensorflow/core/framework/op_kernel.cc:1745] OP_REQUIRES failed at xla_ops.cc:441 : NOT_FOUND: ./bin/ptxas not found",
        "jax.errors.JaxRuntimeError: FAILED_PRECONDITION: Couldn't get ptxas version string: INTERNAL: Couldn't invoke ptxas --version",
    ],
    "cudnn_version_mismatch": [
        "RuntimeError: cuDNN version incompatibility: PyTorch was compiled against (9, 1, 0) but found runtime version (8, 9, 7).",
        "time CuDNN library: 8.9.6 but source was compiled with: 9.3.0.  CuDNN library needs to have matching major version",
        "Could not load library cudnn_ops64_9.dll. Error code 126",
        "Invalid handle. Cannot load symbol cudnnGetVersion",
    ],
    "cuda_driver_mismatch": [
        "docker: Error response from daemon: nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4, please update your driver",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the driver is installed and running.",
        "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU.",
    ],
    "gpu_arch_unsupported": [
        "RuntimeError: HIP error: invalid device function",
        '"hipErrorNoBinaryForGpu: Unable to find code object for all current devices!"',
        "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. This GPU has compute capability 7.0.",
        "RuntimeError: FlashAttention only supports Ampere GPUs or newer.",
    ],
    "abi_mismatch": [
        "AttributeError: module 'numpy' has no attribute 'object'.",
        "AttributeError: `np.float_` was removed in the NumPy 2.0 release. Use `np.float64` instead.",
        # macOS and signatures
        "Exception Type:  EXC_CRASH (SIGKILL (Code Signature Invalid))\nTermination Reason: CODESIGNING 2 Invalid Page",
        "Termination Reason:    Namespace CODESIGNING, Code 0x2",
        "ImportError: dlopen(/lab/_ops.so, 0x0002): tried: '/lab/_ops.so' (code signature in <1A2B> '/lab/_ops.so' not valid for use in process: mapping process and mapped file (non-platform) have different Team IDs)",
        # protobuf
        "TypeError: Descriptors should not be created directly, but only retrieved from their parent.",
        "ImportError: cannot import name 'builder' from 'google.protobuf.internal' (/lab/google/protobuf/internal/__init__.py)",
        "AttributeError: 'MessageFactory' object has no attribute 'GetPrototype'",
        "google.protobuf.runtime_version.VersionError: Detected incompatible Protobuf Gencode/Runtime versions when loading fit.proto: gencode 6.30.0 runtime 5.28.3.",
        "[libprotobuf FATAL common.cc:87] This program was compiled against version 3.19.1 of the Protocol Buffer runtime library, which is not compatible with the installed version (3.20.3).",
        # NumPy
        "IMPORTANT: PLEASE READ THIS FOR ADVICE ON HOW TO SOLVE THIS ISSUE!\n\nImporting the numpy C-extensions failed. This error can happen for many reasons.",
        "ModuleNotFoundError: No module named 'numpy._core'",
        "RuntimeError: CPU dispatcher tracer already initialized",
        # libraries that do not load
        "boosted.core.BoostError: Fit Library (libfit.so) could not be loaded.\nLikely causes:\n  * OpenMP runtime is not installed",
        "OSError: cannot load library 'libsndfile.so': libsndfile.so: cannot open shared object file",
        "Failed to load the native TensorFlow runtime.\nSee https://www.tensorflow.org/install/errors for some common causes and solutions.",
        "OSError: [WinError 193] %1 is not a valid Win32 application",
        "TypeError: Unable to convert function return value to a Python type! The signature was\n\t() -> handle",
        "Process finished with exit code -1073741515 (0xC0000135)",
    ],
    "cgroup_oom": [
        "TaskOOM container_id=4c0ffee",
        "notebook-kernel: Out-of-memory detected!\n[I 2026-02-03 10:11:12.130 ServerApp] AsyncIOLoopKernelRestarter: restarting kernel (1/5), new random ports",
        "Your container was terminated due to exceeding its memory limit",
        "The kernel for fit.ipynb was killed because of out of memory",
        "Aborted by PBS Server\nJob exceeded a memory resource limit (vmem, pvmem, etc.). Job was aborted\nSee Administrator for help",
        "The job was stopped: memory limit of 16 GB exceeded",
    ],
    "terminated_by_user_or_manager": [
        'start-worker 2026/01/02 03:04:05 the metadata service says termination is imminent',
        'Jan 02 03:04:05 lab systemd-logind[811]: Power key pressed.',
        "Epoch 2/9\nReceived SIGTERM: 15\nSaving checkpoint before exit",
        "Aborted by PBS Server\nJob exceeded its walltime limit. Job was aborted\nSee Administrator for help",
        "nbclient.exceptions.CellTimeoutError: A cell timed out while it was being executed, after 300 seconds.",
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 412 got signal: 15",
        "Process finished with exit code 130 (interrupted by signal 2: SIGINT)",
        "job failed: DeadlineExceeded, Job was active longer than specified deadline",
    ],
    "memory_daemon": [
        "ray.memory_monitor.RayOutOfMemoryError: More than 95% of the memory on node lab-3 is used (60.9 / 62.8 GB). The top 10 memory consumers are:",
        "RayOutOfMemoryError: Heap memory usage for ray_Fit_88 is 9.1 / 8.0 GiB limit",
        "raise RayOutOfMemoryError(RayOutOfMemoryError.get_message(\nray.memory_monitor.RayOutOfMemoryError: More than 90% of the memory on\nnode lab is used",
    ],
    "thread_limit": [
        "libc++abi: terminating due to uncaught exception of type std::__1::system_error: thread constructor failed: Resource temporarily unavailable",
        'thread \'main\' panicked at \'failed to spawn thread: Os { code: 11, kind: WouldBlock, message: "Resource temporarily unavailable" }\'',
        "OMP: Error #34: System unable to allocate necessary resources for OMP thread:\nOMP: System error #11: Resource temporarily unavailable",
        "[81233.120] cgroup: fork rejected by pids controller in /docker/ab12",
    ],
    "bus_error_shm": [
        'Error while creating shared memory segment /dev/shm/nccl-Ab12Cd (size 4194304)',
        'Fatal Python error: Bus error\n\nThread 0x00007f (most recent call first):\n  File "/usr/lib/python3.12/multiprocessing/shared_memory.py", line 141 in __init__',
        "The object store is using /tmp instead of /dev/shm because /dev/shm has only 67108864 bytes available.\nBus error (core dumped)",
        "lab-7:311:402 [6] misc/shmutils.cc:71 NCCL WARN Error: failed to extend /dev/shm/nccl-aB3dE9 to 4194660 bytes",
        "lab-7:311:402 [6] NCCL WARN Error while creating shared memory segment /dev/shm/nccl-aB3dE9 (size 4194656)",
    ],
    "kernel_start_failed": [
        'File "/lab/site-packages/ipykernel/kernelapp.py", line 301, in init_sockets\n    self.init_iopub(context)\nzmq.error.ZMQError: Address already in use',
        '  File "/lab/site-packages/ipykernel/kernelapp.py", line 712, in initialize\n    self.init_path()\nAttributeError: no such trait',
        'File "/lab/ipykernel_launcher.py", line 16, in\nfrom ipykernel import kernelapp as app\nModuleNotFoundError: No module named \'traitlets.config\'',
    ],
    "cpu_alloc_failure": [
        'W tensorflow/core/framework/op_kernel.cc:1745] OP_REQUIRES failed at batch_dataset_op.cc:241 : Resource exhausted: Failed to allocate memory for the batch of component 0',
        'RuntimeError: bad allocation',
        "terminate called after throwing an instance of 'std::bad_array_new_length'\n  what():  std::bad_array_new_length",
        "OSError: Can't read data (memory allocation failed)",
        "Resource exhausted: MemoryError: Unable to allocate",
        "tensorflow.python.framework.errors_impl.UnknownError: MemoryError: Unable to allocate 9.31 GiB for an array with shape (50000, 50000) and data type float32",
        "Exception has occurred: MemoryError",
        "pyarrow.lib.ArrowMemoryError: malloc of size 1073741824 failed",
        "cv2.error: OpenCV(4.9.0) error: (-4:Insufficient memory) Failed to allocate 2488320000 bytes in function 'OutOfMemoryError'",
        "Process finished with exit code -1073741801 (0xC0000017)",
    ],
    "gpu_oom": [
        '2026-01-02 03:04:05 [E:onnxruntime:, sequential_executor.cc:514] bfc_arena.cc:376 void* onnxruntime::BFCArena::AllocateRawInternal(size_t) Failed to allocate memory for requested buffer of size 4194304',
        'RuntimeError: Could not allocate tensor with 4194304 bytes. There is not enough GPU video memory available!',
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\nException ignored in: <function close>",
        "TPU compile error. Ran out of memory in memory space hbm. Used 20.10G of 15.48G hbm.",
        "RuntimeError: Invalid buffer size: 37.25 GB",
        # The bar is drawn once more while the program ends.
        "RuntimeError: MPS backend out of memory (MPS allocated: 8.10 GB, max allowed: 9.07 GB).\nEpoch 2:  41%|████▏     | 205/500 [03:10<04:33,  1.08it/s]",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\ntrain:   7%|▋",
        # Nothing follows the refused requests.
        "2026-01-02 03:04:05.000001: E tensorflow/stream_executor/rocm/rocm_driver.cc:601] failed to allocate 7.50G (8053063680 bytes) from device: hipError_t(1002)",
        "I0000 00:00:1700000000.1 7 cuda_executor.cc:1] failed to allocate 4.00GiB (4294967296 bytes) from device: RESOURCE_EXHAUSTED: : CUDA_ERROR_OUT_OF_MEMORY: out of memory",
    ],
    "disk_full": [
        'E tensorflow/core/util/events_writer.cc:62] Could not open events file: /lab/logs/events.out.tfevents.1.lab: Resource exhausted: /lab/logs/events.out.tfevents.1.lab',
        'InternalError (see above for traceback): Error writing (tmp) checkpoint file: /lab/m.ckpt-6.tempstate97: Resource exhausted: /lab/m.ckpt-6.tempstate97',
        'ResourceExhaustedError: ./lab/m-49.tempstate5787',
        "RuntimeError: PytorchStreamWriter failed writing file data/7: file write failed",
        "RuntimeError: [enforce fail at inline_container.cc:603] . unexpected pos 2112 vs 2006",
    ],
    "libiomp_duplicate": [
        "OMP: Hint This means that multiple copies of the OpenMP runtime have been linked into the program. That is dangerous.",
    ],
    "stack_overflow": ["Process finished with exit code -1073741571 (0xC00000FD)"],
    "glibc_abort_heap_corruption": ["exit code 3221226356", "Process finished with exit code -1073740940 (0xC0000374)"],
    "illegal_instruction": [
        "Process finished with exit code -1073741795 (0xC000001D)",
        "RuntimeError: This version of jaxlib was built using AVX instructions, which your CPU and/or operating system do not support.",
    ],
    "segfault_native": ["Command terminated by signal 11"],
    "sigkill_unattributed": [
        '**Killed**',
        '`Killed`',
        'Epoch 2/9 `Killed`  ',
        "    Last State:     Terminated\n      Reason:       Error\n      Exit Code:    137\n      Finished:     Tue, 03 Feb 2026 10:11:12 +0100",
        "training job: ExitCode 137",
        "bash: line 1: 7 Killed ( python train.py --steps=100 ) > out 2> err",
        "/var/spool/job/script.sh: line 12: 4711 Killed python train.py",
        "[2]  + 4711 killed     python train.py",
    ],
    "tf_check_failed": [
        "/AppleInternal/MPSKernel.mm:1234: failed assertion `Unsupported data type'\nzsh: abort      python fit.py",
        "*** SIGABRT received by PID 88 (TID 91) on cpu 2 from PID 88; stack trace: ***",
        "*** Received signal 6 ***\n*** BEGIN MANGLED STACK TRACE ***",
        # The rest of the last record was not copied.
        "F0000 00:00:1700000000.123456    4711 gpu_exec",
        "F0203 10:11:12.000001 4711",
    ],
    "unknown": [
        'a bad allocation of time slots',
        'the batch of component 0 was skipped',
        'Error while creating shared memory segment /dev/shm/nccl-Ab12Cd (size 4194304): Permission denied',
        'Killed** by review',
        'without a notice that termination is imminent',
        # An error without a known meaning, or the beginning of a traceback, follows the progress.
        "Epoch 1/9\n2026-01-02 03:04:05.000001: E lab/common/operations.cc:516] The background loop ended: read error: Connection reset by peer",
        "Epoch 1/9\n 12/83 [=>....] - ETA: 1:13 - loss: 1.2741Traceback (most recent call last):",
        "step 40 loss 0.2\nTraceback (most recent call last):\n  File \"fit.py\", line 12, in <module>\n    main()",
        # An assertion in a graph raises an exception.
        "Epoch 1/9\nTraceback (most recent call last):\nInvalid argument: assertion failed: [The batch is empty] [Condition x > 0 did not hold]",
        # The launcher ends the others, after one of them failed.
        "[WARNING] Sending process 812 closing signal SIGTERM\n[ERROR] failed (exitcode: 1) local_rank: 2 (pid: 813) of binary: /opt/lab/bin/python",
        # The processes waited for each other; which of them failed is not in the text.
        "Epoch 3:  17%|█▋  | 51/300 [02:10<10:35,  2.55s/it][rank1]:[E203 10:11:12.1 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=81)",
        "Epoch 3:  17%|█▋  | 51/300 [02:10<10:35,  2.55s/it][E ProcessGroupNCCL.cpp:458] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=81)",
        "WARNING: One or more tensors were submitted to be reduced, gathered or broadcasted. Stalled ranks: 1",
        # near misses
        "The settings of zlibwapi.dll are described in the manual.",
        "Check whether the container was killed because of out of memory",
        "if the job was OOM killed, ask for more",
        "lab-7:311:402 [0] include/shm.h:48 NCCL WARN Error while creating shared memory segment nccl-1 : Permission denied",
        "OSError: Unable to create file (unable to lock file, errno = 11, error message = 'Resource temporarily unavailable')",
        "ValueError: the file of descriptors should not be empty",
        "order 1073741571 was shipped",
    ],
    "no_crash": [
        "I tensorflow/stream_executor/dso_loader.cc:105] Couldn't open CUDA library libcuda.so.1. LD_LIBRARY_PATH: /opt/cuda/lib64",
        "I tensorflow/stream_executor/dso_loader.cc:99] Couldn't open CUDA library libcudnn.so. LD_LIBRARY_PATH:",
        "Couldn't get ptxas version string: INTERNAL: Couldn't invoke ptxas --version\nRelying on driver to perform ptx compilation.\nEpoch 1/2\n9/9 - 1s 40ms/step - loss: 0.2",
        "Successfully completed.\n\nResource usage summary:\n\n    Max Memory :   49 MB",
        "Process finished with exit code 0",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\nUsing the CPU\nrows read so far 120",
        "failed to allocate 7.50G (8053063680 bytes) from device: hipError_t(1002)\nEpoch 1/2\n9/9 - 1s 40ms/step - loss: 0.2",
        "RuntimeError: the socket was closed\nEpoch 2:  41%|████▏     | 205/500 [03:10<04:33,  1.08it/s]\nEpoch 2:  42%|████▏     | 210/500 [03:15<04:30,  1.07it/s]",
        "[rank0]:[W203 10:11:12.1 ProcessGroupNCCL.cpp:1] Warning: destroy_process_group() was not called\nsaved the model",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "cause"), [(text, cause) for cause, texts in KINDS.items() for text in texts]
)
def test_a_kind_of_line_and_its_near_misses(text: str, cause: str) -> None:
    assert best_of(text).cause == cause


def test_a_line_after_a_message_that_always_ends_the_program_is_not_certain_progress() -> None:
    text = "Could not locate zlibwapi.dll. Please make sure it is in your library path!\nEpoch 2/9"
    assert best_of(text).confidence is not Confidence.CERTAIN


def test_the_system_log_alone_shows_the_crash() -> None:
    line = "python3[4711]: segfault at 0 ip 00007f sp 00007f error 4 in libfit.so[7f+1]"
    assert best_of("", line).cause == "segfault_native"
    assert best_of("the kernel died", line).cause == "segfault_native"
    assert best_of("the kernel died", line.replace("python3", "gnome-shell")).cause == "unknown"


def test_an_invalid_signature_is_no_kill_by_an_unknown_sender() -> None:
    best = best_of("EXC_CRASH (SIGKILL (Code Signature Invalid))")
    assert best.cause == "abi_mismatch"
    assert "signature" in best.title
    assert "codesign" in (best.advice[0].code or "")


def test_a_missing_zlib_is_not_a_wrong_cudnn() -> None:
    best = best_of("Could not locate zlibwapi.dll. Please make sure it is in your library path!")
    assert best.advice[0].title.startswith("Put zlibwapi.dll")
    assert not any("tensorflow[and-cuda]" in (advice.code or "") for advice in best.advice)


def test_a_text_that_ends_inside_a_traceback_is_no_success() -> None:
    hint = "RTX 3070 with CUDA capability sm_86 is not compatible with the current PyTorch installation."
    cut = 'Traceback (most recent call last):\n  File "fit.py", line 7, in <module>\n    step()'
    assert best_of(f"{hint}\n{cut}").cause == "gpu_arch_unsupported"
    assert best_of(f"WARNING:tensorflow:slow\n{cut}").cause == "unknown"
    assert best_of(f"Epoch 2/9\n{cut}").cause == "unknown"
    assert best_of(f"{hint}\nEpoch 2/9\n9/9 - 1s - loss: 0.1").cause == "no_crash"
