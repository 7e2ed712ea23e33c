"""A file of CUDA is missing, is not found, or the wrong one is: a library, libdevice, ptxas."""

from __future__ import annotations

from ..evidence import Evidence
from ..finding import Advice, Finding
from ..rule import rule
from ..told import told


@rule(
    "cuda_library_missing",
    needs=("kernel.recording",),
    outranks=("gpu_arch_unsupported", "tf_check_failed", "sys_exit"),
)
def cuda_library_missing(seen: Evidence) -> Finding | None:
    text = told(seen, "cuda_library_missing")
    if text is None:
        return None
    advice = [
        Advice(
            "Let the TensorFlow package bring its own CUDA files, in a clean environment.",
            "https://www.tensorflow.org/install/pip",
            "python -m pip install 'tensorflow[and-cuda]'",
        )
    ]
    if "libdevice" in text.message:
        advice.insert(
            0,
            Advice(
                "Tell XLA where the CUDA toolkit lies.",
                "It looks for nvvm/libdevice/libdevice.10.bc below this folder.",
                "XLA_FLAGS=--xla_gpu_cuda_data_dir=/usr/local/cuda  # in the environment, before the kernel starts",
            ),
        )
    elif "ptx" in text.message:
        advice.insert(
            0,
            Advice(
                "Put a newer ptxas in front.",
                "The one that is found first in PATH is older than the code that it is given.",
                "which -a ptxas; ptxas --version",
            ),
        )
    else:
        advice.append(
            Advice(
                "Or add the folder of the missing file to the loader's path.",
                "On WSL the driver's libcuda.so lies in /usr/lib/wsl/lib.",
                "ldconfig -p | grep -i cuda; echo $LD_LIBRARY_PATH",
            )
        )
    return text.finding(
        title="A file of CUDA is missing, or the wrong one was found.",
        short_title="CUDA file missing",
        advice=tuple(advice),
    )
