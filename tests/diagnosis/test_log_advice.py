"""Advice follows the framework and release that a log is from, and repeats the numbers of its lines."""

from __future__ import annotations

import pytest

from jupyter_tfguard.diagnosis.finding import Finding
from jupyter_tfguard.diagnosis.line_sizes import size_bytes
from tests.rigs.examples import best_of

pytestmark = pytest.mark.quick


def advice_of(finding: Finding) -> str:
    return "\n".join(f"{a.title} {a.text} {a.code or ''}" for a in finding.advice)


TORCH = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 23.50 GiB of which "
    "100.00 MiB is free. Process 22 has 14.00 GiB memory in use. Of the allocated memory 4.00 GiB is allocated by PyTorch, and {} is "
    "reserved by PyTorch but unallocated."
)
OF_TENSORFLOW = ("TF_", "tf.", "Keras", "keras", "TensorFlow", "model.fit")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (TORCH.format("20.00 MiB"), "torch."),
        (
            "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.",
            "jax.checkpoint",
        ),
        (
            "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 17.10G of 15.48G hbm.",
            "bfloat16",
        ),
        (
            "  model = WhisperModel('medium', device='cuda')\nRuntimeError: CUDA failed with error out of memory",
            "compute_type",
        ),
        (
            "XGBoostError: Memory allocation error on worker 0: std::bad_alloc: cudaErrorMemoryAllocation: out of memory",
            "QuantileDMatrix",
        ),
        ("ggml_backend_cuda: cudaMalloc failed: out of memory", "--n-gpu-layers"),
        ("RuntimeError: MPS backend out of memory (MPS allocated: 8 GB)", "Apple GPU"),
        ("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.", "rocm-smi"),
    ],
)
def test_other_frameworks_get_no_advice_of_tensorflow(text: str, wanted: str) -> None:
    best = best_of(text)
    said = advice_of(best)
    assert best.cause == "gpu_oom"
    assert wanted in said
    assert not any(word in said for word in OF_TENSORFLOW)


@pytest.mark.parametrize(
    "card",
    ["memory space hbm. Used 17.1G of 15.5G hbm", "kIOGPUCommandBufferCallbackErrorOutOfMemory"],
)
def test_what_is_no_nvidia_card_is_not_asked_with_nvidia_smi(card: str) -> None:
    said = advice_of(
        best_of(f"tensorflow 2.13\nRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in {card}")
    )
    assert said
    assert "nvidia-smi" not in said


@pytest.mark.parametrize(
    "text",
    [
        "Internal: Blas GEMM launch failed : a.shape=(8, 4), b.shape=(4, 2)\n[[{{node dense/MatMul}}]]",
        "No algorithm worked!  Error messages:\n  CUDNN_STATUS_ALLOC_FAILED\n[Op:Conv2D]",
        "E tensorflow/stream_executor/cuda/cuda_blas.cc:226] failed to create cublas handle: CUBLAS_STATUS_NOT_INITIALIZED",
    ],
)
def test_memory_growth_comes_first_where_it_cures(text: str) -> None:
    assert "TF_FORCE_GPU_ALLOW_GROWTH" in (best_of(text).advice[0].code or "")


def test_a_request_beyond_the_card_of_tensorflow_mentions_memory_growth_last() -> None:
    best = best_of(
        "OOM when allocating tensor with shape[64,512,512,8] and type float on /device:GPU:0 by allocator GPU_0_bfc"
    )
    assert "batch_size=32" in (best.advice[0].code or "")
    assert "TF_FORCE_GPU_ALLOW_GROWTH" in (best.advice[-1].code or "")


def test_the_numbers_of_a_gpu_message_are_in_the_title() -> None:
    best = best_of(TORCH.format("2.00 GiB"))
    assert "512 MiB requested, 100 MiB of 23.5 GiB free" in best.title
    said = advice_of(best)
    assert "process 22: it held 14.0 GiB" in said
    assert "expandable_segments" in said
    assert "expandable_segments" not in advice_of(best_of(TORCH.format("20.00 MiB")))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("slurmstepd: error: Job 7 exceeded memory limit (9437184 > 8388608), being killed", ("9.00 GiB", "8.00 GiB")),
        ("=>> PBS: job killed: mem 9437184kb exceeded limit 8388608kb", ("9.00 GiB", "8.00 GiB")),
        ('job 3 exceeds job hard limit "h_vmem" of queue "a@b" (9663676416.00 > limit:8589934592.00)', ("9.00 GiB", "8.00 GiB")),
        ("Job has gone over memory limit of 8192 megabytes. Peak usage: 9216 megabytes.", ("9.00 GiB", "8.00 GiB")),
        ("Container killed by YARN for exceeding memory limits. 9.0 GB of 8 GB physical memory used.", ("9.00 GiB", "8.00 GiB")),
        ("The node was low on resource: memory. Container lab was using 9437184Ki, request is 2Gi.", ("9.00 GiB", "2.00 GiB")),
        ("memory used=9.00GB) was running was 30.40GB / 31.10GB (0.97), which exceeds the memory usage threshold of 0.95.", ("30.4 GiB", "95 %")),
        ('earlyoom[5]: sending SIGTERM to process 41 uid 0 "python3": badness 900, VmRSS 9216 MiB', ("41", "9.00 GiB")),
        ("Killed /u.slice/a.scope due to memory pressure for /u.slice being 81.5% > 50.00% for > 20s with", ("81.5%", "50.00%", "20s")),
    ],
)  # fmt: skip
def test_the_numbers_of_the_line_are_in_the_title(text: str, wanted: tuple[str, ...]) -> None:
    best = best_of(text)
    shown = best.title + advice_of(best)
    assert all(number in shown for number in wanted)


def test_a_memory_limit_that_is_known_is_to_be_raised_by_its_number() -> None:
    assert "more than 8.00 GiB" in advice_of(
        best_of(
            "slurmstepd: error: Step 7.0 exceeded memory limit (9437184 > 8388608), being killed"
        )
    )


def test_memory_of_the_victim_is_named() -> None:
    best = best_of(
        "Out of memory: Killed process 41 (python3) total-vm:9kB, anon-rss:1048576kB, file-rss:0kB"
    )
    assert "1.00 GiB" in " ".join(fact.text for fact in best.because)


@pytest.mark.parametrize(
    ("log", "extra"),
    [
        ("tensorflow-gpu==1.12", False),
        ("/usr/lib/python3.7/site-packages", False),
        ("TensorFlow 2.10.1", False),
        ("TensorFlow 2.16.1", True),
        ("/usr/lib/python3.12/site-packages", True),
    ],
)  # fmt: skip
def test_the_extra_with_cuda_is_offered_for_releases_that_have_it(log: str, extra: bool) -> None:
    text = f"{log}\nImportError: libcusolver.so: cannot open shared object file: No such file"
    assert ("and-cuda" in advice_of(best_of(text))) is extra


def test_a_release_that_is_in_the_table_names_its_cuda() -> None:
    text = "tensorflow==2.10.0\nImportError: libcusolver.so.11: cannot open shared object file"
    assert "CUDA 11.2 and cuDNN 8.1" in advice_of(best_of(text))


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (
            "AttributeError: _ARRAY_API not found\nImportError: numpy.core.umath failed to import",
            "numpy<2",
        ),
        (
            "ImportError: /e/site-packages/tensorflow_io/python/ops/lib.so: undefined symbol: _ZN10tensorflow",
            "tensorflow-io",
        ),
        (
            "ImportError: Could not find the DLL(s) 'msvcp140.dll'. TensorFlow requires that",
            "Redistributable",
        ),
        (
            "ImportError: Could not find 'nvcuda.dll'. TensorFlow requires that this DLL",
            "NVIDIA's driver",
        ),
        (
            "ImportError: Could not find 'cudart64_90.dll'. TensorFlow requires that this DLL",
            "CUDA 9.0",
        ),
    ],
)
def test_what_does_not_fit_is_named_first(text: str, first: str) -> None:
    step = best_of(text).advice[0]
    assert first in f"{step.title} {step.text} {step.code}"


STACK = """Fatal Python error: Segmentation fault

Thread 0x01 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 320 in wait

Current thread 0x02 (most recent call first):
  File "/e/lib/python3.11/site-packages/pyarrow/parquet/core.py", line 1211 in read
  File "a.py", line 3 in <module>"""


def test_a_stack_in_the_log_names_the_line_instead_of_asking_for_it() -> None:
    said = advice_of(best_of(STACK))
    assert "pyarrow/parquet/core.py" in said
    assert "package pyarrow" in said
    assert "faulthandler" not in said
    assert "faulthandler" in advice_of(best_of("Segmentation fault (core dumped)"))


def test_a_device_assertion_is_quoted() -> None:
    text = "Loss.cu:91: nll: block: [0,0,0], thread: [4,0,0] Assertion `t >= 0 && t < n_classes` failed."
    assert "t < n_classes" in advice_of(best_of(text))


@pytest.mark.parametrize(
    ("text", "size"),
    [("27811224Ki", 27811224 * 1024), ("1.5 GiB", 3 << 29), ("2G", 2 << 30), ("7", 7), ("0.5GB", 1 << 29), ("much", None)],
)  # fmt: skip
def test_sizes_are_read_in_all_units(text: str, size: int | None) -> None:
    assert size_bytes(text) == size


def test_a_kill_whose_limit_is_unknown_still_names_where_limits_are_set() -> None:
    line = "Memory cgroup out of memory: Killed process 41 (python3) total-vm:9kB, anon-rss:8kB"
    assert "docker run --memory" in advice_of(best_of(line))
    known = f"memory: usage 4194304kB, limit 4194304kB, failcnt 7\n{line}"
    assert "4.00 GiB" in best_of(known).title
    assert "docker run" not in advice_of(best_of(known))


def test_an_exception_is_named_as_one() -> None:
    best = best_of("xgboost.core.XGBoostError: [1:1:1] a.cc:5: Check failed: rows == 3")
    assert (best.cause, best.short_title) == ("unknown", "Python exception")
    assert "xgboost.core.XGBoostError" in best.title
    assert best_of("ValueError: no\nKernel died").short_title == "Unknown"


def test_a_kill_without_a_sender_says_how_to_find_it() -> None:
    assert "journalctl" in advice_of(best_of("Killed"))
    assert "journalctl" not in advice_of(best_of("Killed", "audit: nothing"))


def test_a_tpu_in_use_names_its_process() -> None:
    best = best_of("ABORTED: The TPU is already in use by process with pid 6120. Not attempting")
    assert best.title == "Another process (6120) uses the TPU."
    assert "nvidia-smi" not in advice_of(best)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (
            "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 41.2 GiB for an array with shape (720000, 7680) and data type float64",
            "A request for 41.2 GiB of memory was refused, and the program did not handle it.",
        ),
        (
            "RuntimeError: [enforce fail at alloc_cpu.cpp:83] data. DefaultCPUAllocator: not enough memory: you tried to allocate 34359738368 bytes.",
            "A request for 32.0 GiB of memory was refused, and the program did not handle it.",
        ),
        (
            "memory allocation of 12884901888 bytes failed",
            "A request for 12.0 GiB of memory was refused, and the program did not handle it.",
        ),
        (
            "slurmstepd: error: Job 71 exceeded memory limit (9437184 > 8388608), being killed\nslurmstepd: error: Exceeded job memory limit",
            "The program used 9.00 GiB where its job or container may use 8.00 GiB, and was ended.",
        ),
        (
            "    Last State:  Terminated\n      Reason:    OOMKilled\n      Exit Code: 137\n    Limits:\n      cpu:     4\n      memory:  6Gi",
            "The program used more memory than the 6.00 GiB that its job or container may use, and was ended.",
        ),
        (
            "E external/org_tensorflow/tensorflow/compiler/xla/pjrt/pjrt_client.cc:1981] Execution of replica 0 failed: Resource exhausted: Failed to allocate request for 96.00MiB (100663296B) on device ordinal 0",
            "The GPU ran out of memory: 96 MiB requested.",
        ),
        (
            "E tensorflow/stream_executor/cuda/cuda_driver.cc:932] failed to allocate 170.50M (178782208 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY\n"
            "E tensorflow/stream_executor/cuda/cuda_dnn.cc:289] could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR\nTraceback (most recent call last):",
            "The GPU ran out of memory: 170 MiB requested.",
        ),
        (
            "INFO:tensorflow:ShutdownHook: lame workers found: HeartbeatManager(/job:worker/task:0)",
            "The program was ended from outside: the platform took the machine back, or the machine was shut down.",
        ),
    ],
)
def test_the_numbers_and_the_reason_of_the_line_are_in_the_title(text: str, title: str) -> None:
    assert best_of(text).title == title


@pytest.mark.parametrize(
    ("text", "wanted", "unwanted"),
    [
        (
            "torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device",
            "get_arch_list",
            "TensorFlow",
        ),
        (
            "tensorflow InternalError: CUDA error: no kernel image is available for execution on the device",
            "TensorFlow container",
            "PyTorch",
        ),
        (
            "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, use torch.multiprocessing",
            "multiprocessing_context",
            "import TensorFlow",
        ),
        (
            "torch/cuda: The NVIDIA driver on your system is too old (found version 11040).",
            "a PyTorch built for an older CUDA",
            "TensorFlow",
        ),
        (
            "NCCL WARN Error while creating shared memory segment nccl-Ab12 (size 4194656), error: No space left on device (28)",
            "NCCL_SHM_DISABLE",
            "fewer worker",
        ),
    ],
)
def test_advice_about_builds_and_workers_follows_the_framework(
    text: str, wanted: str, unwanted: str
) -> None:
    said = advice_of(best_of(text))
    assert wanted in said
    assert unwanted not in said
