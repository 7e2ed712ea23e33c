"""Copies of CUDA and cuDNN for the doctor: missing, too old, in front of each other."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from .made_case import Case, healthy, on_gpu
from .made_machine import MadeMachine

CUDA_12_2 = {
    "libcudart.so.12": "12.2.140",
    "libcublas.so.12": "12.2.5.6",
    "libcublasLt.so.12": "12.2.5.6",
    "libcufft.so.11": "11.0.8.103",
    "libcusolver.so.11": "11.5.2.141",
    "libcusparse.so.12": "12.1.2.141",
}


def cudnn_in_front(m: MadeMachine, standin: Path, version: str) -> None:
    healthy(m, standin)
    m.before_libraries(m.cudnn("/opt/cudnn/lib", version))


def cudnn_of_the_system_behind(m: MadeMachine, standin: Path) -> None:
    healthy(m, standin)
    m.cudnn("/usr/lib/x86_64-linux-gnu", "9.0.0")


def cudnn_of_two_versions(m: MadeMachine, standin: Path) -> None:
    healthy(m, standin)
    m.library("/opt/part", "libcudnn_ops.so.9", "9.10.2")
    m.before_libraries(m.path("/opt/part"))


def toolkit_in_front(m: MadeMachine, standin: Path) -> None:
    healthy(m, standin)
    m.before_libraries(m.toolkit("/usr/local/cuda/lib64", CUDA_12_2))


def without(m: MadeMachine, standin: Path, package: str) -> None:
    on_gpu(m, standin)
    m.tensorflow("2.21.0")
    m.nvidia_packages("2.21.0", without=(package,))


def cudnn_without_version(m: MadeMachine, standin: Path) -> None:
    without(m, standin, "cudnn")
    m.library("/usr/lib/x86_64-linux-gnu", "libcudnn.so.9", None)


def system_libraries(m: MadeMachine, standin: Path) -> None:
    on_gpu(m, standin)
    m.tensorflow("2.21.0")
    for soname in CUDA_12_2:
        m.library("/usr/local/cuda-12.6/lib64", soname, "12.6.77")
    m.write("/etc/ld.so.conf.d/cuda.conf", "# CUDA\n/usr/local/cuda-12.6/lib64\n")
    m.cudnn("/usr/lib/x86_64-linux-gnu", "9.5.1")


CASES = (
    Case(
        "older-cudnn-in-front",
        partial(cudnn_in_front, version="9.0.0"),
        {"gpu_libraries": "problem"},
        ("9.0.0 in", "/opt/cudnn/lib", "export LD_LIBRARY_PATH="),
    ),
    Case("newer-cudnn-in-front", partial(cudnn_in_front, version="9.8.0"), {}, ("9.8.0 in",)),
    Case("older-cudnn-behind", cudnn_of_the_system_behind, {}, ("9.3.0.75",)),
    Case(
        "cudnn-of-two-versions",
        cudnn_of_two_versions,
        {"gpu_libraries": "warning"},
        ("two versions", "9.10.2"),
    ),
    Case("cudnn-without-version", cudnn_without_version, {"gpu_libraries": "could not check"}),
    Case(
        "older-toolkit-in-front",
        toolkit_in_front,
        {"gpu_libraries": "warning"},
        ("libcudart.so.12 12.2.140", "export LD_LIBRARY_PATH="),
    ),
    Case(
        "cudnn-missing",
        partial(without, package="cudnn"),
        {"gpu_libraries": "problem"},
        ("libcudnn.so.9 of CUDA 12.5",),
    ),
    Case("libraries-of-the-system", system_libraries, {}, ("12.6.77 in", "9.5.1 in")),
)
