"""Two releases of TensorFlow for the doctor, of cuDNN 8 and 9: healthy, and with each mismatch of the table of tested builds."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from .made_case import Case, healthy, on_gpu, other_version
from .made_machine import MadeMachine
from .made_wheels import RELEASES

CUDA_11_8 = {
    "libcudart.so.11.0": "11.8.89",
    "libcublas.so.11": "11.11.3.6",
    "libcublasLt.so.11": "11.11.3.6",
    "libcufft.so.10": "10.9.0.58",
    "libcusolver.so.11": "11.4.1.48",
    "libcusparse.so.11": "11.7.5.86",
}


# release: cuDNN that is too old, NumPy outside the range, a card that it has no code for
MISFITS = {
    "2.17.0": ("8.6.0.163", "2.1.0", "5.2"),
    "2.21.0": ("9.1.0.70", "1.24.4", "5.2"),
}


def without_libraries(m: MadeMachine, standin: Path, release: str) -> None:
    on_gpu(m, standin)
    m.tensorflow(release)


def libraries_of_cuda_11(m: MadeMachine, standin: Path, release: str) -> None:
    without_libraries(m, standin, release)
    m.before_libraries(m.toolkit("/usr/local/cuda-11.8/lib64", CUDA_11_8))
    m.cudnn("/usr/local/cuda-11.8/lib64", "8.9.7")


def old_python(m: MadeMachine, standin: Path, release: str) -> None:
    m.python_version = "3.8.19"
    healthy(m, standin, release)
    if release == "2.17.0":
        other_version(m, "numpy", "1.24.4")


def other_numpy(m: MadeMachine, standin: Path, release: str, numpy: str) -> None:
    healthy(m, standin, release)
    other_version(m, "numpy", numpy)


def _per_release(release: str) -> tuple[Case, ...]:
    """Healthy, and each mismatch of the table of tested builds."""
    cudnn, numpy, card = MISFITS[release]
    install = f'pip install "tensorflow[and-cuda]=={release}"'
    return (
        Case(f"healthy-{release}", partial(healthy, release=release), {}),
        Case(
            f"driver-too-old-{release}",
            partial(healthy, release=release, driver="470.57.02"),
            {"gpu_driver": "problem"},
            ("470.57.02 is too old", "525.60.13", "ubuntu-drivers"),
        ),
        Case(
            f"cudnn-too-old-{release}",
            partial(healthy, release=release, cudnn=cudnn),
            {"gpu_libraries": "problem"},
            (cudnn, install),
        ),
        Case(
            f"cuda-missing-{release}",
            partial(without_libraries, release=release),
            {"gpu_libraries": "problem"},
            ("libcudart.so.12 and 6 others of CUDA 12", install),
        ),
        Case(
            f"cuda-of-another-major-version-{release}",
            partial(libraries_of_cuda_11, release=release),
            {"gpu_libraries": "problem"},
            ("libcudart.so.12", install),
        ),
        Case(
            f"python-unsupported-{release}",
            partial(old_python, release=release),
            {"python": "problem"},
            ("Python 3.8.19", RELEASES[release].requires_python),
        ),
        Case(
            f"numpy-outside-{release}",
            partial(other_numpy, release=release, numpy=numpy),
            {"packages": "problem"},
            (f"(here: {numpy})", 'pip install "numpy>='),
        ),
        Case(
            f"architecture-not-covered-{release}",
            partial(healthy, release=release, cards=(card,)),
            {"gpu_architecture": "problem"},
            ("contains no code for", card),
        ),
    )


CASES = tuple(case for release in MISFITS for case in _per_release(release))
