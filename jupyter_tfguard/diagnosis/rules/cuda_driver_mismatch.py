"""The GPU driver is too old for the CUDA libraries, or its parts are of different versions."""

from __future__ import annotations

from ..evidence import Evidence
from ..finding import Advice, Finding
from ..gpu_stack import which_driver_fits
from ..rule import rule
from ..told import told


@rule(
    "cuda_driver_mismatch",
    needs=("kernel.recording", "gpu"),
    outranks=("gpu_oom", "cudnn_version_mismatch", "tf_check_failed", "sys_exit"),
)
def cuda_driver_mismatch(seen: Evidence) -> Finding | None:
    text = told(seen, "cuda_driver_mismatch")
    if text is None:
        return None
    module, library = text.details.get("module"), text.details.get("library")
    if module and library:
        title = f"The GPU driver's kernel module ({module}) and its library ({library}) are of different versions."
        first = Advice(
            "Restart the machine, or load the driver's module anew.",
            "The driver was upgraded while the old module stayed loaded; in a container the host's driver must be mounted, not installed.",
        )
    else:
        title = "The GPU driver does not fit the CUDA libraries."
        first = Advice(
            "Update the GPU driver, or use a TensorFlow built for an older CUDA.",
            which_driver_fits(seen)
            or "A CUDA of a newer major version needs a newer driver: https://docs.nvidia.com/deploy/cuda-compatibility/",
        )
    return text.finding(
        title=title,
        short_title="GPU driver does not fit",
        advice=(
            first,
            Advice(
                "Compare the versions.",
                "The first line of nvidia-smi names the driver and the newest CUDA that it serves.",
                "nvidia-smi; cat /proc/driver/nvidia/version",
            ),
        ),
    )
