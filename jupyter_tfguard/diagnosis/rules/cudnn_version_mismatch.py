"""The cuDNN that was loaded does not fit the build, or one of its parts could not be loaded."""

from __future__ import annotations

from ..evidence import Evidence
from ..finding import Advice, Finding
from ..gpu_stack import cudnn_package
from ..rule import rule
from ..told import told


@rule(
    "cudnn_version_mismatch",
    needs=("kernel.recording",),
    outranks=("gpu_oom", "tf_check_failed", "sys_exit", "segfault_native"),
)
def cudnn_version_mismatch(seen: Evidence) -> Finding | None:
    text = told(seen, "cudnn_version_mismatch")
    if text is None:
        return None
    loaded, built = (text.details.get(name, "").rstrip(".") for name in ("loaded", "built"))
    numbers = f"{loaded} was loaded; the program was built with {built}" if loaded and built else ""
    what = f" ({numbers})" if numbers else ""
    same = "A cuDNN of the same major version and of the same or a higher minor version is needed."
    package = cudnn_package(built)
    install = f"python -m pip install '{package}'"
    return text.finding(
        title=f"The cuDNN library that was loaded does not fit the program{what}.",
        short_title="cuDNN does not fit",
        advice=(
            *(
                (Advice("Install a cuDNN that serves this build.", same, install),)
                if package
                else ()
            ),
            Advice(
                "Let the TensorFlow package bring its own CUDA and cuDNN, in a clean environment.",
                "https://www.tensorflow.org/install/pip"
                if package
                else f"{same} https://www.tensorflow.org/install/pip",
                "python -m pip install 'tensorflow[and-cuda]'",
            ),
            Advice(
                "Look which copies the loader finds.",
                "One in LD_LIBRARY_PATH, or one from conda, comes before the one of the package.",
                "echo $LD_LIBRARY_PATH; ldconfig -p | grep cudnn",
            ),
        ),
    )
