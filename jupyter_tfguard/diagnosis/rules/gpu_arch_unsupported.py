"""The program holds no machine code for this model of GPU."""

from __future__ import annotations

from ..evidence import Evidence
from ..finding import Advice, Finding
from ..gpu_stack import which_builds_run
from ..rule import rule
from ..told import told


@rule(
    "gpu_arch_unsupported",
    needs=("kernel.recording", "gpu"),
    outranks=("cuda_illegal_access", "tf_check_failed", "sys_exit"),
)
def gpu_arch_unsupported(seen: Evidence) -> Finding | None:
    text = told(seen, "gpu_arch_unsupported")
    if text is None:
        return None
    return text.finding(
        title="The program holds no code for this model of GPU.",
        short_title="GPU model not supported",
        advice=(
            Advice(
                "Use a build that covers this GPU: a newer one for a new card, an older one for an old card.",
                which_builds_run(seen)
                or "The compute capability tells: https://developer.nvidia.com/cuda-gpus",
                "nvidia-smi --query-gpu=name,compute_cap --format=csv",
            ),
            Advice(
                "For a card that is newer than the build, a container of NVIDIA's often comes first.",
                "https://catalog.ngc.nvidia.com/orgs/nvidia/containers/tensorflow",
            ),
        ),
    )
