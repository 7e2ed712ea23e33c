"""GPUs, drivers and containers for the doctor, in each state that keeps TensorFlow from a GPU."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from .made_case import NO_GPU, Case, healthy, on_gpu
from .made_machine import MadeMachine


def without_driver(m: MadeMachine, standin: Path, driver: str | None) -> None:
    m.gpu(driver)
    m.tensorflow("2.21.0")
    m.nvidia_packages("2.21.0")


def library_of_another_version(m: MadeMachine, standin: Path) -> None:
    on_gpu(m, standin, library="555.42.06")
    m.tensorflow("2.21.0")
    m.nvidia_packages("2.21.0")


def library_in_front(m: MadeMachine, standin: Path) -> None:
    healthy(m, standin)
    m.library("/opt/image", "libcuda.so.1", "535.104.05")
    m.before_libraries(m.path("/opt/image"))


def compat(m: MadeMachine, standin: Path) -> None:
    healthy(m, standin, driver="470.57.02")
    m.library("/usr/local/cuda-12.5/compat", "libcuda.so.1", "555.42.06")
    m.before_libraries(m.path("/usr/local/cuda-12.5/compat"))


def without_library(m: MadeMachine, standin: Path) -> None:
    healthy(m, standin)
    m.path("/usr/lib/x86_64-linux-gnu/libcuda.so.1").unlink()


def container_without_gpu(m: MadeMachine, standin: Path) -> None:
    m.gpu()
    m.driver("550.54.15", files=False)
    m.path("/usr/lib/x86_64-linux-gnu/libcuda.so.1").unlink()
    m.write("/.dockerenv")
    m.tensorflow("2.21.0")


def container_without_library(m: MadeMachine, standin: Path) -> None:
    without_library(m, standin)
    m.write("/.dockerenv")


def no_management_library(m: MadeMachine, standin: Path) -> None:
    healthy(m, standin)
    m.write("/.dockerenv")
    m.environ["LD_LIBRARY_PATH"] = str(m.path("/opt"))
    m.write(
        "/opt/libnvidia-ml.so.1",
        "found first and no library, so that none of this machine is taken",
    )


def hidden_gpu(m: MadeMachine, standin: Path) -> None:
    healthy(m, standin)
    m.environ["CUDA_VISIBLE_DEVICES"] = ""


def wsl(m: MadeMachine, standin: Path, found: bool = True) -> None:
    m.write("/dev/dxg")
    m.library("/usr/lib/wsl/lib", "libcuda.so.1", None)
    if found:
        m.write("/etc/ld.so.conf.d/ld.wsl.conf", "/usr/lib/wsl/lib\n")
    m.standin(standin)
    m.nvml.driver = "551.61"
    m.tensorflow("2.21.0")
    m.nvidia_packages("2.21.0")


def wsl_old(m: MadeMachine, standin: Path) -> None:
    wsl(m, standin)
    m.nvml.cuda = 11040


CASES = (
    Case(
        "nouveau",
        partial(without_driver, driver="nouveau"),
        {"gpu": "problem"},
        ("nouveau drives it", "ubuntu-drivers"),
    ),
    Case(
        "no-driver",
        partial(without_driver, driver=None),
        {"gpu": "problem"},
        ("not loaded",),
        ("gpu_driver", "gpu_architecture"),
    ),
    Case(
        "library-of-another-version",
        library_of_another_version,
        {"gpu_driver": "problem"},
        ("550.54.15", "555.42.06", "sudo reboot"),
    ),
    Case(
        "driver-says-mismatch",
        partial(healthy, fault="nvmlInitWithFlags fail 18"),
        {"gpu_driver": "problem"},
        ("sudo reboot",),
        ("gpu_architecture",),
    ),
    Case(
        "library-in-front",
        library_in_front,
        {"gpu_driver": "problem"},
        ("535.104.05",),
    ),
    Case("compat-library", compat, {}, ("555.42.06",)),
    Case(
        "driver-hangs",
        partial(healthy, fault="nvmlInitWithFlags hang"),
        {"gpu_driver": "could not check"},
        ("did not answer within 1 s",),
        ("gpu_architecture",),
        {"driver_limit_seconds": 1.0},
    ),
    Case(
        "driver-crashes",
        partial(healthy, fault="nvmlInitWithFlags crash"),
        {"gpu_driver": "could not check"},
        ("signal 6",),
        ("gpu_architecture",),
    ),
    Case(
        "driver-lists-no-gpu",
        partial(healthy, cards=()),
        {"gpu_driver": "problem"},
        ("lists no GPU", "dmesg"),
        ("gpu_architecture",),
    ),
    Case(
        "no-management-library",
        no_management_library,
        {"gpu_architecture": "could not check"},
        ("NVIDIA_DRIVER_CAPABILITIES=compute,utility",),
    ),
    Case(
        "no-driver-library",
        without_library,
        {"gpu": "problem"},
        ("libcuda.so.1 was not found",),
        ("gpu_driver",),
    ),
    Case(
        "container-without-gpu", container_without_gpu, {"gpu": "warning"}, ("--gpus all",), NO_GPU
    ),
    Case(
        "container-without-library", container_without_library, {"gpu": "problem"}, ("--gpus all",)
    ),
    Case("hidden-gpu", hidden_gpu, {"gpu": "warning"}, ("unset CUDA_VISIBLE_DEVICES",)),
    Case("wsl", wsl, {}, ("551.61",)),
    Case(
        "wsl-library-not-found",
        partial(wsl, found=False),
        {"gpu": "problem"},
        ("/usr/lib/wsl/lib",),
    ),
    Case("wsl-driver-too-old", wsl_old, {"gpu_driver": "problem"}, ("driver of Windows",)),
    Case(
        "blackwell",
        partial(healthy, cards=("12.0",), driver="570.124.06"),
        {"gpu_architecture": "warning"},
        ("half an hour", "CUDA_ERROR_INVALID_PTX"),
    ),
    Case(
        "second-card-not-covered",
        partial(healthy, cards=("8.6", "5.2")),
        {"gpu_architecture": "problem"},
        ("Stand-in B",),
    ),
    Case(
        "card-that-tells-nothing",
        partial(healthy, cards=("x",)),
        {"gpu_architecture": "could not check"},
    ),
)
