"""Messages of drivers, batch systems, Windows and macOS in pasted logs: shapes of each kind, and near misses."""

from __future__ import annotations

import pytest

from jupyter_tfguard.diagnosis.diagnose import explain
from jupyter_tfguard.diagnosis.finding import Confidence, Finding
from jupyter_tfguard.diagnosis.pasted import Pasted

pytestmark = pytest.mark.quick


def best_of(text: str, kernel_log: str = "") -> Finding:
    return explain(Pasted(text, kernel_log)).best


KINDS = {
    "cpu_alloc_failure": [
        "2026-01-02 03:04:05.1: W tensorflow/core/common_runtime/bfc_allocator.cc:456] Allocator (mklcpu) ran out of memory trying to allocate 9.00GiB\n2026-01-02 03:04:05.1: W tensorflow/core/common_runtime/bfc_allocator.cc:468] ****************************____________",
        # Windows in other languages: the number is the same.
        'OSError: [WinError 1455] Die Auslagerungsdatei ist zu klein. Error loading "D:\\lab\\torch\\lib\\cublas64_11.dll" or one of its dependencies.',
        "OSError: [WinError 1455] Le fichier de pagination est insuffisant",
        "OSError: [WinError 8] 内存资源不足",
        "Exception Code:   c0000017",
        # A worker could not start, and the bar is cut off.
        "OSError: [WinError 1455] The paging file is too small for this operation to complete.\n"
        "train: Reading D:\\My Pictures\\cells\\labels of the second year and the third... 900 images, 0 corrupt:  97%|█████████▊| 873/900 [Traceback (most recent call last):",
        # XLA, without a word about a device
        "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 8589934592 bytes.",
    ],
    "gpu_oom": [
        "2026-01-02 03:04:05.1: I tensorflow/core/common_runtime/bfc_allocator.cc:1101] InUse at 7f1200000000 of size 8388608 next 12\n2026-01-02 03:04:05.1: I tensorflow/core/common_runtime/bfc_allocator.cc:1106]      Summary of in-use Chunks by size: ",
        "2026-01-02 03:04:05.1: I tensorflow/core/common_runtime/bfc_allocator.cc:1033] Bin (256): \tTotal Chunks: 40, Chunks in use: 40. 10.0KiB allocated for chunks.",
        "Limit:                      7912554496\nInUse:                      7634223104\nMaxInUse:                   7634223616\nNumAllocs:                         811\nMaxAllocSize:               3087007744",
        # XLA, in a program on a GPU
        "I0203 10:11:12.000001 411 gpu_compiler.cc:512] autotuning\njax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 8589934592 bytes.",
        "devices: [CudaDevice(id=0)]\nRuntimeError: Resource exhausted: Out of memory allocating 1073741824 bytes.",
        # The end of the allocator's list
        "2026-01-02 03:04:05.000001: I tensorflow/core/common_runtime/bfc_allocator.cc:1106] Sum Total of in-use chunks: 7.11GiB\n"
        "2026-01-02 03:04:05.000002: I tensorflow/core/common_runtime/bfc_allocator.cc:1114] Stats: \n"
        "Limit:                      7912554496\nInUse:                      7634223104\nMaxInUse:                   7634223616\nLargestFreeBlock:                    0",
        "2026-01-02 03:04:05.000003: W tensorflow/core/common_runtime/bfc_allocator.cc:512] ****************************************____xxxx",
    ],
    "cuda_driver_mismatch": [
        "CUDA error 222 at fit.cu:8",
        "LinkerError: [222] Call to cuLinkAddData results in UNKNOWN_CUDA_ERROR\nptxas application ptx input, line 9; fatal   : Unsupported .version 8.4; current version is '8.2'",
        # The driver is older than the PTX: another card would not help.
        "RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.",
        "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: cuModuleLoadData failed: CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        "cudaErrorUnsupportedPtxVersion at fit.cu:12",
    ],
    "cudnn_version_mismatch": [
        "Node: 'unet/down/Conv2D'\nDNN library is not found.\n\t [[{{node unet/down/Conv2D}}]] [Op:__inference_predict_function_88]",
    ],
    "cuda_illegal_access": [
        "Xid (PCI:0000:0a:00): 31, pid=24117, name=python, Ch 00000010, intr 00000000. MMU Fault: ENGINE GRAPHICS",
        "Callback: Queue 0x7f12 aborting with error : HSA_STATUS_ERROR_MEMORY_FAULT: Agent attempted to access an inaccessible address. code: 0x2b",
        "Ignored (for causing prior/excessive GPU errors) (00000004:kIOGPUCommandBufferCallbackErrorSubmissionsIgnored)",
        "CUDA error 700 at fit.cu:88",
        "cuda error: 719",
        # The driver of an AMD GPU names the program: newer, older, a timeout.
        "[  711.100200] amdgpu 0000:03:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:3 pasid:32771)\n"
        "[  711.100210] amdgpu 0000:03:00.0: amdgpu:  Process python3 pid 4711 thread python3 pid 4711",
        "[  711.100200] amdgpu 0000:03:00.0: [gfxhub0] no-retry page fault (src_id:0 ring:24 vmid:3 pasid:32771, for process python3 pid 4711 thread python3 pid 4711)",
        "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* Process information: process ipython pid 88 thread ipython:cs0 pid 90",
        # It names no program, but a queue of computations.
        "[  510.6] qcm fence wait loop timeout expired\n[  510.7] amdgpu 0000:67:00.0: GPU reset begin!",
        "amdgpu: Resetting wave fronts (cpsch) on dev 00000000",
        "HSA_STATUS_ERROR_INVALID_PACKET_FORMAT: The AQL packet is malformed. code: 0x1009",
    ],
    "tf_check_failed": [
        "2026-01-02 03:04:05.1 python[811:9] *** Assertion failure in -[Graph encode:], Graph.mm:99",
        "/AppleInternal/Sources/MPSCore/Types/MPSNDArray.mm:712: failed assertion '[MPSNDArray initWithDevice:descriptor:] Error: too many dimensions '",
        '-[MTLDebugComputeCommandEncoder dispatch]:311: failed assertion "the buffer is missing"',
        "* thread #2, stop reason = hit program assert\n    frame #0: 0x0001 libsystem_kernel.dylib`__pthread_kill + 8",
        "  * frame #4: 0x0001 Metal`MTLReportFailure.cold.1 + 44",
        "*** Terminating app due to uncaught exception 'NSInvalidArgumentException', reason: '-[NSNull length]: unrecognized selector'",
        "Exception Type:        EXC_CRASH (SIGABRT)\nException Codes:       0x0, 0x0\nTermination Reason:    Namespace SIGNAL, Code 6 Abort trap: 6",
        "terminate called after throwing an instance of 'std::runtime_error'\n  what():  no such layer",
    ],
    "segfault_native": [
        "systemd[1]: lab.service: Main process exited, code=dumped, status=11/SEGV",
        "command terminated with exit code 139",
        "make: *** [train] Error 139",
        "[1]    318 bus error  python fit.py",
        "[1]    318 segmentation fault (core dumped)  python fit.py",
        "**Segmentation fault (core dumped)**",
        "Application Name: pythonw.exe\n  Fault Module Name: fit.pyd\n  Exception Code:   c0000005",
        "Ausnahmecode: c0000005",
        "(1a2c.3f40): Access violation - code c0000005 (!!! second chance !!!)",
        "The kernel ended with STATUS_ACCESS_VIOLATION",
        "exit code -1073741819",
        "returned 3221225477",
        "Process exited with code 0XC0000005",
    ],
    "gpu_hardware_xid": ["amdgpu 0000:03:00.0: amdgpu: 3 uncorrectable hardware errors detected in umc block"],
    "disk_full": ["OSError: [WinError 112] Es steht nicht genug Speicherplatz auf dem Datenträger zur Verfügung"],
    "cuda_library_missing": ["2026-01-02 03:04:05.1: W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic library 'libcudart.so.11.0'; dlerror: libcudart.so.11.0: cannot open shared object file: No such file or directory\nInternalError: cudaGetDevice() failed. Status: the symbol was not found."],
    "thread_limit": ["OpenBLAS blas_thread_init: RLIMIT_NPROC 4096 current, 8192 max"],
    "stack_overflow": ["Exception Code: c00000fd", "exited: 3221225725"],
    "glibc_abort_heap_corruption": ["Exception Code:  c0000374"],
    "abi_mismatch": ["python.exe: STATUS_DLL_NOT_FOUND", "Exit code 3221225785"],
    "io_error": [
        "OSError: [WinError 1117] Der Vorgang konnte nicht ausgeführt werden",
        "OSError: [WinError 23] 数据错误(循环冗余检查)。",
        "Exception code: 0xc0000006"],
    "cgroup_oom": [
        "The job attribute PeriodicHold expression 'MemoryUsage > RequestMemory' evaluated to TRUE",
        "oarsub: job killed: memory limit exceeded",
        "State: OUT_OF_MEMORY (exit code 0)",
        "PBS Job Id: 411.lab\njob deleted\nJob deleted at request of root@lab\njob 411 exceeded MEM usage hard limit (9100 > 8192)",
        "job 12.lab exceeded VMEM usage hard limit",
        "Hold reason: Error from slot2_1@gpu.lab: Docker job has gone over memory limit of 2048 Mb",
        "012 (4711.000.000) Job was held.\n\tError from slot1@lab: Job has gone over memory limit of 4096 megabytes. Peak usage: 4200 megabytes.",
    ],
    "terminated_by_user_or_manager": [
        "mpirun noticed that process rank 2 with PID 811 on node n1 exited on signal 15 (Terminated).",
        "systemd[1]: lab.service: Main process exited, code=killed, status=15/TERM",
        "The job attribute PeriodicRemove expression '(time() - EnteredCurrentStatus > 3600)' evaluated to TRUE",
        "State: TIMEOUT (exit code 0)",
        "4711  fit  gpu  lab  8  TIMEOUT      0:0",
        "4711  fit  gpu  lab  8  NODE_FAIL      1:0",
        "State: CANCELLED (exit code 0)",
        "The node was terminated: spot instance interruption",
        "[1]    318 terminated  python fit.py",
        "[1]  + 318 hangup     python fit.py",
        "User defined signal 2",
        "SignalException: Process 811 got signal: 1",
        "Received Signals.SIGINT death signal, shutting down workers",
        "make: *** [train] Error 143",
        "PBS Job Id: 2606.lab\njob deleted\nJob deleted at request of root@lab\nMOAB_INFO:  job exceeded wallclock limit",
        "Aborted by PBS Server\nJob exceeded its walltime limit. Job was aborted\nSee Administrator for help\nExit_status=-11",
        "job 77 has reached its run time limit",
        "job 77 exceeded PROC usage hard limit (40 > 16)",
        "Exit_status=271\nresources_used.walltime=00:10:00",
        '{"level":"warn","message":"Spot interruption payload received: {}"}',
        "Instance is going to be interrupted in 2 minutes. Exiting...",
        "The instance will be terminated in 30 seconds",
        "100%|██████████| 3/3 [00:00<00:00, 98.50it/s]\nWARNING:torch.distributed.elastic.agent.server.api:Received 2 death signal, shutting down workers\n"
        "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 812 closing signal SIGINT\nTraceback (most recent call last):",
        "W0203 10:11:12.000001 411 torch/distributed/elastic/agent/server/api.py:704] Received 15 death signal, shutting down workers",
    ],
    "sigkill_unattributed": [
        "systemd[1]: lab.service: Main process exited, code=killed, status=9/KILL",
        "Process exited with status 137",
        "Process exited with status -9",
        "subprocess.CalledProcessError: Command '['python', 'fit.py']' died with <Signals.SIGKILL: 9>.",
        "make: *** [Makefile:12: train] Error 137",
        "Termination Reason:    Namespace SIGNAL, Code 9 Killed: 9",
        # What a page, a spinner or a person puts around the word.
        "**Killed**",
        "`Killed`",
        "12:01:02 Killed",
        "⠹ fitting Killed",
        "Epoch 1/9\n(base) ada@lab:~$ Killed",
        "[1]  + 318 killed     python fit.py",
        "zsh: killed     python fit.py",
        "Killed...",
        "Exit_status=265",
    ],
    "no_crash": [
        "Registered SIGTERM handler\nEpoch 1/2\n9/9 - loss: 0.3",
        "INFO: the job will be killed if it exceeds its memory limit of 8 GB\nEpoch 1/2\n9/9 - loss: 0.3",
        "    State:          Terminated\n      Reason:       Completed\n      Exit Code:    0",
        "4711 fit COMPLETED 0:0\nsocket TIMEOUT 10:30",
        "# Job ID:          11\n# State:           COMPLETED (exit code 0)\n# Cores:           8",
        "4711  fit  gpu  lab  8  COMPLETED      0:0",
        # The allocator's list, and the program went on.
        "2026-01-02 03:04:05.000003: W tensorflow/core/common_runtime/bfc_allocator.cc:512] ****************************************____xxxx\nEpoch 2/9",
        "Received SIGTERM handler registered: SIGTERM installed\nEpoch 4/9\n8/8 - loss: 0.1",
    ],
    "unknown": [
        "from signal import SIGINT, SIGTERM",
        "for signum in (SIGTERM, SIGKILL):",
        "elif number == SIGKILL:",
        "self.log.critical(_(\"Shutdown confirmed\"))",
        "except NoSuchKernel:",
        "    raise CellTimeoutError.after(seconds)",
        ") -> \"CellTimeoutError\":",
        "\"RLIMIT_NPROC\", \"RLIMIT_RSS\",",
        "log.debug(\"SIGTERM to process %s\", number)",
        "\"\"\"Stop on SIGTERM or SIGINT\"\"\"",
        "handler = signal.signal(signal.SIGTERM, stop)",
        "    os.kill(pid, signal.SIGKILL)",
        "trap 'echo stop' SIGTERM SIGINT",
        "#SBATCH --signal=SIGTERM@120",
        "docker stop sends SIGTERM, then SIGKILL after 10 seconds",
        "exit code 137 means that the container was killed",
        "How can I avoid exit code 137?",
        "# exit codes: 139 = segmentation fault, 137 = killed",
        "0xC0000005 is described at https://lab.example/codes",
        "CUDA error: out of memory? Try a smaller batch",
        "2026-01-02 03:04:05.1: W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic library 'libcudart.so.11.0'; dlerror: libcudart.so.11.0: cannot open shared object file: No such file or directory\nTraceback (most recent call last):\n  File \"fit.py\", line 3, in <module>\n    fit()\nValueError: Input 0 of layer dense is incompatible",
        "2026-01-02 03:04:05.1: W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic library 'libcudart.so.11.0'; dlerror: libcudart.so.11.0: cannot open shared object file: No such file or directory\nsubprocess.CalledProcessError: Command '['which', 'c++']' returned non-zero exit status 1.",
        "systemd[1]: lab.service: Main process exited, code=exited, status=1/FAILURE",
        "terminate called after throwing an instance of 'c10::DistBackendError'\n  what():  NCCL communicator was aborted on rank 1.",
        "Epoch 1/10\nIt never gets past the first epoch",
        "Epoch 1/10\n(no output for hours)",
        "Epoch 1/10\nthen it just sits there",
        "amdgpu 0000:03:00.0: amdgpu: 0 uncorrectable hardware errors detected in umc block",
        "[1]    318 abort (core dumped)  python fit.py",
        "make: *** [train] Error 1",
        "spot interruption handler installed",
        "the expression 'x > 3' evaluated to TRUE",
        "no job has exceeded its walltime limit",
        "OSError: [WinError 64] The specified network name is no longer available",
        "Exit Code:    1",
        # Epochs are announced, and a person says that nothing follows.
        "Epoch 1/50\n\n...and then never progresses. No further output, no error.",
        "Epoch 1/5\nIt hangs here, the GPU is idle.",
        "Epoch 1/5\nand nothing happens after that",
        # The processes waited for each other.
        "terminate called after throwing an instance of 'c10::DistBackendError'\n  what():  [PG 1 Rank 3] Process group watchdog thread terminated with exception: "
        "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=77)",
        "Process finished with exit code -1073740791 (0xC0000409)",
        "Exception Code: c0000409",
        # near misses
        "amdgpu 0000:03:00.0: amdgpu:  Process Xorg pid 911 thread Xorg:cs0 pid 920",
        "[  510.7] amdgpu 0000:67:00.0: GPU reset begin!",
        "the buffer is at 0x00007ffc00000fd0",
        "hash c0000005 of the data set",
        "lab earlyoom[811]: sending SIGTERM when mem <=  5.00% and swap <= 10.00%,\nlab earlyoom[811]:         SIGKILL when mem <=  2.50% and swap <=  5.00%",
        "The job is stopped if it exceeds its walltime limit",
        "job 411 exceeded MEM usage soft limit (9100 > 8192)",
        "Processes are Killed if they use more",
        "the instance will be terminated if it is idle",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "cause"), [(text, cause) for cause, texts in KINDS.items() for text in texts]
)
def test_a_kind_of_line_and_its_near_misses(text: str, cause: str) -> None:
    assert best_of(text).cause == cause


def test_the_log_of_the_system_names_the_program_on_an_amd_gpu() -> None:
    line = "amdgpu 0000:03:00.0: amdgpu:  Process NAME pid 4711 thread NAME pid 4711"
    assert best_of("Epoch 1/2", line.replace("NAME", "ipython")).cause == "cuda_illegal_access"
    assert best_of("Epoch 1/2", line.replace("NAME", "firefox")).cause != "cuda_illegal_access"


def test_a_worker_without_memory_and_a_bar_that_is_cut_off_are_not_certain() -> None:
    text = "OSError: [WinError 1455] x\nscan:  97%|█████████▊| 873/900 [00:01<00:01, 9.1it/s]\nEpoch 1/2\n9/9 - loss: 0.2"
    best = best_of(text)
    assert (best.cause, best.confidence) != ("cpu_alloc_failure", Confidence.CERTAIN)


def test_a_sentence_about_a_signal_is_not_certain() -> None:
    best = best_of("The helper is removed once the worker gets SIGKILL from the pool")
    assert best.confidence is not Confidence.CERTAIN
    assert best_of("Signal 9 (SIGKILL) received by PID 811").confidence is Confidence.CERTAIN
    assert best_of("exited due to signal SIGKILL").confidence is Confidence.CERTAIN
