"""Copies of CUDA and cuDNN for the doctor: missing, out of reach, too old, in front of each other."""

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
    m.cudnn("/usr/lib/x86_64-linux-gnu", "9.0.0", cached=True)


def cudnn_of_two_versions(m: MadeMachine, standin: Path) -> None:
    healthy(m, standin)
    m.library("/opt/part", "libcudnn_ops.so.9", "9.10.2", cached=False)
    m.before_libraries(m.path("/opt/part"))


def cudnn_without_version(m: MadeMachine, standin: Path) -> None:
    on_gpu(m, standin)
    m.tensorflow("2.21.0")
    m.nvidia_packages("2.21.0", without=("cudnn",))
    m.library("/usr/lib/x86_64-linux-gnu", "libcudnn.so.9", None)


def toolkit_in_front(m: MadeMachine, standin: Path, versions: dict[str, str]) -> None:
    healthy(m, standin)
    m.before_libraries(m.toolkit("/usr/local/cuda/lib64", versions))


def libraries_out_of_reach(m: MadeMachine, standin: Path) -> None:
    on_gpu(m, standin)
    m.tensorflow("2.16.1", run_path=False)
    m.nvidia_packages("2.16.1")


def cudnn_missing(m: MadeMachine, standin: Path) -> None:
    on_gpu(m, standin)
    m.tensorflow("2.21.0")
    m.nvidia_packages("2.21.0", without=("cudnn",))
    m.before_libraries(m.cudnn("/opt/cudnn-8/lib", "8.9.7"))


def one_library_missing(m: MadeMachine, standin: Path) -> None:
    on_gpu(m, standin)
    m.tensorflow("2.21.0")
    m.nvidia_packages("2.21.0", without=("cusolver",))


def system_libraries(m: MadeMachine, standin: Path) -> None:
    on_gpu(m, standin)
    m.tensorflow("2.21.0")
    newer = {"12.2.140": "12.6.77", "12.2.5.6": "12.6.4.1"}
    for soname, version in CUDA_12_2.items():
        known = newer.get(version, f"{int(version.split('.')[0])}.99.1")
        m.library("/usr/local/cuda-12.6/lib64", soname, known)
    m.cudnn("/usr/lib/x86_64-linux-gnu", "9.5.1", cached=True)


CASES = (
    Case(
        "older-cudnn-in-front",
        partial(cudnn_in_front, version="9.0.0"),
        {"gpu_cudnn": "problem"},
        (
            "9.0.0 in",
            "/opt/cudnn/lib",
            "LD_LIBRARY_PATH",
            "A fitting copy, 9.3.0.75",
            "export LD_LIBRARY_PATH=",
        ),
    ),
    Case(
        "newer-cudnn-in-front",
        partial(cudnn_in_front, version="9.8.0"),
        {},
        ("9.8.0", "Other copies: 9.3.0.75"),
    ),
    Case("older-cudnn-behind", cudnn_of_the_system_behind, {}, ("9.3.0.75", "Other copies: 9.0.0")),
    Case(
        "cudnn-of-two-versions",
        cudnn_of_two_versions,
        {"gpu_cudnn": "warning"},
        ("two versions", "9.10.2"),
    ),
    Case("cudnn-without-version", cudnn_without_version, {"gpu_cudnn": "could not check"}),
    Case(
        "older-toolkit-in-front",
        partial(toolkit_in_front, versions=CUDA_12_2),
        {"gpu_cuda": "warning"},
        ("12.2.140", "5 more so", "never reached", "export LD_LIBRARY_PATH="),
    ),
    Case(
        "libraries-out-of-reach",
        libraries_out_of_reach,
        {"gpu_cuda": "problem"},
        ("They are installed in", "export LD_LIBRARY_PATH=", "nvidia/cudnn/lib:"),
        ("gpu_cudnn",),
    ),
    Case(
        "cudnn-of-another-major-version",
        cudnn_missing,
        {"gpu_cudnn": "problem"},
        ("libcudnn.so.9 is not found", "/opt/cudnn-8/lib/libcudnn.so.8"),
    ),
    Case(
        "one-library-missing",
        one_library_missing,
        {"gpu_cuda": "problem"},
        ("libcusolver.so.11 is not found: tensorflow 2.21.0 computes",),
    ),
    Case(
        "libraries-of-the-system",
        system_libraries,
        {},
        ("12.6.77 in", "the system's library cache"),
    ),
)
