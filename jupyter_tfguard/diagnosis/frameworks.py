"""Which program or framework a pasted log is from, as far as advice depends on it."""

from __future__ import annotations

from collections.abc import Sequence

from .log_lines import LogLine

TENSORFLOW = "tensorflow"
# The more special first: a TPU is used through JAX or TensorFlow, and vLLM through PyTorch. Names are compared in lower case.
_NAMES = (
    ("tpu", ("xla:tpu", "memory space hbm", "of hbm", "libtpu", "tpu_driver", "tpu compile")),
    ("ctranslate2", ("ctranslate2", "faster_whisper", "faster-whisper", "whispermodel", "cuda failed with error")),
    ("vllm", ("vllm", "cache blocks", "gpu_memory_utilization", "desired gpu memory utilization")),
    ("llama.cpp", ("ggml_", "ggml-", "llama_model", "llama.cpp", "llama_kv")),
    ("mlx", ("mlx_lm", "import mlx", "mlx.core", "[metal]", "[metal::malloc]")),
    ("xgboost", ("xgboost", "gpu_hist")),
    ("cupy", ("cupy", "rmm::", "/rmm/", "cudf", "cuml")),
    ("mps", ("mps backend", "mps allocated")),
    ("rocm", ("hip out of memory", "hiperror", "hipmalloc", "rocm")),
    ("xpu", ("xpu out of memory", "out_of_device_memory", "torch.xpu")),
    ("pytorch", ("torch", "cuda out of memory. tried to", "c10::", "c10_", "aten/src")),
    # TensorFlow has XLA under external/local_xla; jaxlib contains XLA, and earlier TensorFlow, under external/.
    ("jax", ("jax", "xlaruntimeerror", "external/org_tensorflow/", "external/xla/xla/", "pjrt_stream_executor_client")),
    (TENSORFLOW, ("tensorflow", "keras", "gpu_0_bfc", "_bfc)", "[op:", "stream_executor", "allocator gpu_", "{{node", "blas gemm")),
)  # fmt: skip
_NEAR = 12


def framework_of(lines: Sequence[LogLine], index: int | None) -> str | None:
    """The framework that a log is from: by the deciding line, then the lines around it, then all; None if nothing names one.

    Args:
        index: Place of the deciding line among `lines`; None for none.
    """
    scopes = [lines]
    if index is not None:
        scopes = [lines[index : index + 1], lines[max(0, index - _NEAR) : index + _NEAR], lines]
    for scope in scopes:
        text = "\n".join(line.text[:2000] for line in scope).lower()
        for framework, names in _NAMES:
            if any(name in text for name in names):
                return framework
    return None
