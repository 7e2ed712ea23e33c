"""One kind of failure in the words of many libraries, and near misses."""

from __future__ import annotations

import pytest

from jupyter_tfguard.diagnosis.diagnose import explain
from jupyter_tfguard.diagnosis.finding import Finding
from jupyter_tfguard.diagnosis.pasted import Pasted

pytestmark = pytest.mark.quick


def best_of(text: str) -> Finding:
    return explain(Pasted(text)).best


KINDS = {
    "gpu_oom": [
        'it ends with torch.OutOfMemoryError',
        'still OOM on GPU with batch 1',
        '[ERROR] GPU memory exhausted',
        'the job died: CUDA OOM',
        "THCudaCheck FAIL file=/build/aten/src/THC/THCGeneral.cpp line=311 error=2 : out of memory",
        "torch.OutOfMemoryError: Allocation on device",
        "ValueError: To serve at least one request with the model's max seq len (8192), (3.10 GiB KV cache is needed, which is larger than the available KV cache memory (1.74 GiB). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
        "ValueError: The model's max seq len (8192) is larger than the maximum number of tokens that can be stored in KV cache (5120). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
        "[02/03/2026-10:11:12] [E] [TRT] Error Code 2: OutOfMemory (Requested size was 901775360 bytes.)",
        "mxnet.base.MXNetError: [10:11:12] ../src/storage/pooled_storage_manager.h:187: Memory allocation failed out of memory",
        "pycuda._driver.MemoryError: cuMemAlloc failed: out of memory",
        "MemoryError: Error allocating 90177536 bytes of device memory (out of memory).",
        "Error: CUDA_OUT_OF_MEMORY at engine/cuda.cpp:51",
        "RuntimeError: Unable to find a valid cuDNN algorithm to run convolution",
        "RuntimeError: GET was unable to find an engine to execute this computation",
        "F0203 10:11:12.130426  611 syncedmem.cpp:58] Check failed: error == cudaSuccess (2 vs. 0)  out of memory\nAborted (core dumped)",
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:970, unhandled cuda error\nLast error:\nFailed to CUDA calloc async 304 bytes",
        "RuntimeError: could not allocate 3.5 GiB of GPU memory",
        "CUDA error at reduce.cu:91 code=2(cudaErrorMemoryAllocation) \"cudaMalloc(&buf, n)\"",
    ],
    "gpu_oom_other_process": [
        "RuntimeError: CUDA error: exclusive-process device already in use by a different thread",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 18.00 MiB. GPU 0 has a total capacity of 31.73 GiB of which 9.00 MiB is free. Process 812 has 30.10 GiB memory in use. Including non-PyTorch memory, this process has 608.00 MiB memory in use.",
        "RuntimeError: CUDA out of memory. Tried to allocate 18.00 MiB (GPU 0; 31.73 GiB total capacity; 1.02 GiB already allocated; 9.12 MiB free; 1.10 GiB reserved in total by PyTorch)",
    ],
    "cuda_illegal_access": [
        'CUDA Exception: Warp Illegal Address',
        'RuntimeError: CUDA error: hardware stack error',
        "numba.cuda.cudadrv.driver.CudaAPIError: [700] Call to cuMemcpyDtoH results in UNKNOWN_CUDA_ERROR",
        "RuntimeError: cuDNN error: CUDNN_STATUS_MAPPING_ERROR",
        "RuntimeError: Native API failed. Native API returns: 20 (UR_RESULT_ERROR_DEVICE_LOST)",
        "Execution of the command buffer was aborted due to an error during execution. Caused GPU Hang Error (IOAF code 3)",
        "RuntimeError: The GPU device instance has been suspended. Use GetDeviceRemovedReason to determine the appropriate action.",
        "F tensorflow/c/logging.cc:43] HRESULT failed with 0x887a0005: heap->Map(0, nullptr, &data)",
        "CUDA error at reduce.cu:91 code=77(<unknown>) \"sync\"",
        "CUDA error at reduce.cu:91 code=700(cudaErrorIllegalAddress) \"cudaDeviceSynchronize()\"",
    ],
    "gpu_hardware_xid": [
        'kernel: NVRM: Xid (PCI:0000:5e:00): 45, pid=811, name=python3, Ch 00000003 caused by previous Xid 149',"NVRM: GPU 0000:5e:00.0: RmInitAdapter failed! (0x25:0x40:1299)"],
    "cuda_driver_mismatch": [
        "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized",
        "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable CUDA_VISIBLE_DEVICES after program start.",
        "modprobe: ERROR: could not insert 'nvidia': Required key not available",
        "NVRM: API mismatch: the client has the version 550.54.14, but this kernel module has the version 550.40.07.",
        "nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown",
    ],
    "cuda_library_missing": [
        "ImportError: libnvidia-ml.so.1: cannot open shared object file: No such file or directory",
        "pynvml.nvml.NVMLError_LibraryNotFound: NVML Shared Library Not Found",
        "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file: no such file or directory: unknown",
        "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.",
        "numba.cuda.cudadrv.error.NvvmSupportError: libNVVM cannot be found. Do `conda install cudatoolkit`:",
        "RuntimeError: CUDA Setup failed despite GPU being available. Please run the following command to get more information:",
        "kernels/add.cu:3:10: fatal error: cuda_runtime.h: No such file or directory",
        "/usr/bin/ld: cannot find -lcudart\ncollect2: error: ld returned 1 exit status",
        "RuntimeError: Failed to find nvcc",
        "ImportError: libcufile.so.0: cannot open shared object file: No such file or directory",
        "F ./tensorflow/stream_executor/lib/statusor.h:212] Non-OK-status: status_ status: Failed precondition: could not dlopen DSO: libcupti.so.9.0; dlerror: libcupti.so.9.0: cannot open shared object file: No such file or directory",
    ],
    "gpu_arch_unsupported": [
        "nvcc fatal   : Unsupported gpu architecture 'compute_89'",
        "ValueError: Unknown CUDA arch (12.1) or GPU not supported",
        "RuntimeError: Found Quadro M2000 which is too old to be supported by the triton GPU compiler, which is used as the backend.",
        "rocBLAS error: Could not initialize Tensile host: No devices found",
        "UserWarning:\nNVIDIA RTX 9000 with CUDA capability sm_121 is not compatible with the current PyTorch installation.\nThe current PyTorch install supports CUDA capabilities sm_60 sm_70 sm_80.",
    ],
    "illegal_instruction": [
        "RuntimeError: NumPy was built with baseline optimizations:\n(X86_V3) but your machine doesn't support:\n(X86_V3).",
        "The following required CPU features were not detected:\n    avx2, bmi2",
        "RuntimeError: this processor does not support AVX2, which the wheel needs",
    ],
    "glibc_abort_heap_corruption": [
        "==612==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602000000051",
        "<jemalloc>: Invalid deallocation detected: pages being freed (0x1000, 4096) not currently active",
    ],
    "stack_overflow": [
        "Error: C stack usage  7970000 is too close to the limit",
        "thread 'main' has overflowed its stack",
    ],
    "segfault_native": [
        '进程已结束，退出代码 139',"Terminated due to signal: SEGMENTATION FAULT (11)"],
    "tf_check_failed": ["qemu: uncaught target signal 6 (Aborted) - core dumped"],
    "bus_error_shm": [
        "RuntimeError: unable to open shared memory object </torch_612_3311> in read-write mode",
        "RuntimeError: unable to mmap 96 bytes from file </torch_612_3311>: Cannot allocate memory (12)",
    ],
    "abi_mismatch": [
        'RuntimeError: Numpy is not available',
        'A module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.3.1 as it may crash.\nRuntimeError: Could not infer dtype of numpy.float32',
        'ValueError: module functions cannot set METH_CLASS or METH_STATIC',
        "RuntimeError: module was compiled against NumPy C-API version 0x11 but the running NumPy has C-API version 0x10.",
        "RuntimeError: Detected that PyTorch and torchvision were compiled with different CUDA major versions.",
        "RuntimeError: operator torchvision::nms does not exist",
        "RuntimeError: jaxlib version 0.5.3 is newer than and incompatible with jax version 0.4.38.",
        "ImportError: Error relocating /opt/lab/lib/fast.so: __memcpy_chk: symbol not found",
    ],
    "fork_or_thread_deadlock": [
        "RuntimeError: Cannot re-initialize XPU in forked subprocess.",
        "BUG IN CLIENT OF LIBDISPATCH: crashed on child side of fork pre-exec",
    ],
    "thread_limit": [
        "-bash: fork: retry: No child processes",
        "thread 'main' panicked at pool.rs:9: ThreadPoolBuildError { kind: IOError(Os { code: 11, kind: WouldBlock }) }",
    ],
    "disk_full": [
        'cp: write error: Disk full',
        'OSError: Not enough free disk space to unpack the set',
        'OSError: [WinError 112] 磁盘空间不足。',
        "OSError: Unable to flush file's cached metadata (file write failed: errno = 28)",
        "SafetensorError: Error while serializing: IoError(Os { code: 28, kind: StorageFull, message: \"No space left on device (os error 28)\" })",
    ],
    "cgroup_oom": [
        'your server was killed because it used too much memory',
        'job killed: exceeded memory limit',
        'the run was killed by OOM killer',"AlgorithmError: Process killed due to out of memory, exit code: 137"],
    "memory_daemon": [
        "Feb 03 10:11:12 lab systemd-oomd[611]: Killed /user.slice/user-1000.slice/user@1000.service/app.slice/lab.scope"
    ],
    "terminated_by_user_or_manager": [
        '   JobState=TIMEOUT Reason=TimeLimit Dependency=(null)',
        '   JobState=CANCELLED Reason=None',
        '   JobState=PREEMPTED Reason=None',
        '[I 10:11:12.123 LabApp] Interrupted...',
        "MaxRuntimeExceeded - Training job runtime exceeded MaxRuntimeInSeconds provided",
        "Run cancelled by user",
        "Your cluster was terminated. Reason: Inactivity",
        "You cannot currently connect to a GPU due to usage limits in Colab.",
        "10:11:12 INFO Detected interrupt. Gracefully shutting down...",
    ],
    "sigkill_unattributed": [
        '进程已结束，退出代码为 137',
        'killed',
        "it only prints 'Killed'",
        '训练到第九轮程序killed',
        'subprocess exited with code -9',
        "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   EXIT CODE: 9",
        "Container from a bad node: container_12 on host: n7. Exit status: 137.",
    ],
    "kernel_start_failed": [
        'Error: Jupyter cannot be started. Select an interpreter.',
        "Running cells with 'lab (Python 3.12)' requires the ipykernel package.",
        "The kernel failed to start due to the missing module 'zmq'.",
        "Timeout waiting for kernel_info reply from 77aa",
        "[E] Kernel error: FileNotFoundError: [WinError 2] The system cannot find the file specified",
    ],
    "cpu_alloc_failure": [
        'OSError: [WinError 1455] 页面文件太小，无法完成操作。',
        '分頁檔太小，無法完成操作。',
        "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
        "forrtl: severe (41): insufficient virtual memory",
        "pandas.errors.ParserError: Error tokenizing data. C error: out of memory",
        "duckdb.OutOfMemoryException: Out of Memory Error: could not allocate block of size 256.0 KiB",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:118] posix_memalign(&data, gAlignment, nbytes) == 0. 12 vs 0",
    ],
    "no_crash": [
        "INFO:tensorflow:Finished evaluation at 2026-02-03-10:11:12\n{'loss': 0.0031, 'global_step': 900}",
        "{'loss': 0.51, 'epoch': 2.9}\n{'train_runtime': 81.2, 'train_loss': 0.3, 'epoch': 3.0}",
        "An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed. Falling back to cpu.",
        "UserWarning: This DataLoader will create 12 worker processes in total. Our suggested max number of worker in current system is 4",
        "huggingface/tokenizers: The current process just got forked, after parallelism has already been used. Disabling parallelism to avoid deadlocks...",
        "2026-02-03 10:11:12.130426: E tensorflow/core/grappler/optimizers/meta_optimizer.cc:961] layout failed: INVALID_ARGUMENT: Size of values 0 does not match size of permutation 4",
        "UserWarning: CUDA initialization: Found no NVIDIA driver on your system.",
        "I tensorflow/core/framework/local_rendezvous.cc:404] Local rendezvous is aborting with status: OUT_OF_RANGE: End of sequence\nEpoch 1/9 | loss 0.7\nEpoch 2/9 | loss 0.4",
        "UserWarning: CUDA initialization: Found no NVIDIA driver on your system.\nAccuracy: 0.81\n[[110 9]",
        "epoch 8 | loss 0.4\nStopping training session because the loss is NaN",
    ],
    "unknown": [
        "{'loss': 0.51, 'learning_rate': 1e-05, 'epoch': 0.3}",
        'except torch.cuda.OutOfMemoryError as error:',
        'the cell was killed by me and just lost',
        'could we run out of VRAM?',
        'n7:611:611 [0] NCCL INFO NET/Plugin : Plugin load (libnccl-net.so) returned 2 : libnccl-net.so: cannot open shared object file: No such file or directory',
        '   JobState=COMPLETED Reason=None',
        '[I] 90 % used, no disk full yet',
        # What is named here is not what failed.
        "frame #3: watchdog() + 0x10c (0x7f3b in /opt/lab/libtorch_cuda.so)\nfile list not found",
        "RuntimeError: CUDA error at layer 7, code=701 of 900",
        "the run will be cancelled by user request if it takes too long",
        "see nvcc in the list of programs",
        "ValueError: the KV cache is small",
        "Try decreasing the batch",
        # A start without an end
        "UserWarning: CUDA initialization: Found no NVIDIA driver on your system.\nstep 40: loss = 0.7",
        "UserWarning: CUDA initialization: Found no NVIDIA driver on your system.\nEpoch 1/9\n 12/90 [==>.......] - ETA: 9s - loss: 0.3",
        # The other program is not this one.
        "[4018.45] python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0\n[4018.46] Out of memory: Killed process 935 (java) total-vm:113656kB, anon-rss:102104kB",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("cause", "text"), [(cause, text) for cause, texts in KINDS.items() for text in texts]
)
def test_a_failure_in_the_words_of_a_library(cause: str, text: str) -> None:
    assert best_of(text).cause == cause


def test_a_log_about_nothing_but_a_kill_is_about_that_kill() -> None:
    """The first line names a thread, the second its process."""
    kill = (
        "Feb  3 10:11:12 n7 kernel: Memory cgroup out of memory: Kill process 7712 (worker_1) score 961 or sacrifice child\n"
        "Feb  3 10:11:12 n7 kernel: Killed process 7702 (java), UID 0, total-vm:613656kB, anon-rss:402104kB, file-rss:0kB, shmem-rss:0kB"
    )
    assert best_of(kill).cause == "cgroup_oom"
    assert best_of(f"Epoch 1/2\n{kill}").cause != "cgroup_oom"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("OSError: libcuda.so.1: cannot open shared object file", "NVIDIA's driver"),
        ("ImportError: libnvidia-ml.so.1: cannot open shared object file", "NVIDIA's driver"),
        ("import torch\nOSError: CUDA_HOME environment variable is not set", "CUDA toolkit"),
    ],
)
def test_a_file_that_no_package_brings_is_not_searched_for_in_one(text: str, title: str) -> None:
    advice = best_of(text).advice
    assert title in advice[0].title
    assert not any("pip install" in (step.code or "") for step in advice)
