"""Builds of TensorFlow for the doctor that are no published ones, or not alone, or not for this machine."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from .made_case import NO_GPU, Case, on_gpu
from .made_machine import MadeMachine


def cpu_machine(m: MadeMachine, standin: Path) -> None:
    m.tensorflow("2.21.0")


def nothing(m: MadeMachine, standin: Path) -> None:
    pass


def cpu_build(m: MadeMachine, standin: Path) -> None:
    m.tensorflow("2.21.0", name="tensorflow-cpu", cuda=False)


def cpu_build_on_gpu(m: MadeMachine, standin: Path) -> None:
    on_gpu(m, standin)
    cpu_build(m, standin)


def nightly(m: MadeMachine, standin: Path) -> None:
    on_gpu(m, standin)
    m.tensorflow("2.21.0", name="tf-nightly", version="2.22.0.dev20260301")
    m.nvidia_packages("2.21.0")


def home_made(m: MadeMachine, standin: Path) -> None:
    on_gpu(m, standin)
    m.tensorflow("2.19.0", version="2.19.0+mine", cuda_version="12.8.0", cudnn_version="9")
    m.nvidia_packages("2.19.0", cudnn="9.1.0.70")


def no_metadata(m: MadeMachine, standin: Path) -> None:
    m.tensorflow("2.21.0")
    m.remove("tensorflow")


def no_build_information(m: MadeMachine, standin: Path, name: str, version: str) -> None:
    on_gpu(m, standin)
    m.tensorflow("2.21.0", name=name, version=version)
    m.nvidia_packages("2.21.0")
    (m.site / "tensorflow" / "python" / "platform" / "build_info.py").unlink()


def file_in_the_way(m: MadeMachine, standin: Path) -> None:
    notebooks = m.prefix.parent / "notebooks"
    notebooks.mkdir()
    (notebooks / "tensorflow.py").write_text("import tensorflow as tf\n")
    m.import_folders.insert(0, notebooks)
    m.tensorflow("2.21.0")


def over_each_other(m: MadeMachine, standin: Path) -> None:
    m.tensorflow("2.20.0", name="tensorflow-cpu", cuda=False, fitting=False)
    m.tensorflow("2.21.0")


def wheel_of_another_python(m: MadeMachine, standin: Path) -> None:
    m.tensorflow("2.21.0", tag="cp311-cp311-manylinux_2_17_x86_64")


def by_conda(m: MadeMachine, standin: Path, cuda: bool) -> None:
    on_gpu(m, standin)
    m.tensorflow("2.19.0", cuda=cuda, installer="conda")


def by_uv(m: MadeMachine, standin: Path) -> None:
    cpu_build_on_gpu(m, standin)
    m.remove("pip")


CASES = (
    Case("no-gpu", cpu_machine, {}, ("harmless here",), NO_GPU),
    Case(
        "no-tensorflow",
        nothing,
        {},
        ("not installed in this environment; nothing to check",),
        ("python", "packages", "processor", "gpu", *NO_GPU),
    ),
    Case("cpu-build", cpu_build, {}, ("built without CUDA", "no NVIDIA GPU"), NO_GPU),
    Case(
        "cpu-build-on-a-gpu-machine",
        cpu_build_on_gpu,
        {"gpu": "warning"},
        (
            "does not use the NVIDIA GPU",
            "uninstall -y tensorflow-cpu",
            '"tensorflow[and-cuda]==2.21.0"',
        ),
        NO_GPU,
    ),
    Case(
        "nightly",
        nightly,
        {},
        ("tf-nightly 2.22.0.dev20260301", "is not in tfguard's table of published builds"),
    ),
    # cuDNN 9.1 is not judged: which minor version it was built with, nothing tells.
    Case("home-made", home_made, {}, ("was built with 9",)),
    Case(
        "no-metadata",
        no_metadata,
        {"build": "warning"},
        ("no complete package metadata",),
        ("packages",),
    ),
    Case(
        "file-in-the-way",
        file_in_the_way,
        {"build": "problem"},
        ("tensorflow.py comes before tensorflow 2.21.0", "my_tensorflow.py"),
        ("packages",),
    ),
    Case(
        "nightly-without-build-information",
        partial(no_build_information, name="tf-nightly", version="2.22.0.dev20260301"),
        {"gpu": "could not check"},
        ("is missing",),
        NO_GPU,
    ),
    Case(
        "packages-over-each-other",
        over_each_other,
        {"build": "problem"},
        ("tensorflow 2.21.0 and tensorflow-cpu 2.20.0", "uninstall -y"),
    ),
    Case("wheel-of-another-python", wheel_of_another_python, {"python": "problem"}, ("3.11",)),
    Case(
        "conda-build-without-libraries",
        partial(by_conda, cuda=True),
        {"gpu_libraries": "problem"},
        ("conda install", '"tensorflow=2.19.0=cuda*"'),
    ),
    Case(
        "conda-cpu-build",
        partial(by_conda, cuda=False),
        {"gpu": "warning"},
        ('"tensorflow=2.19.0=cuda*"',),
        NO_GPU,
    ),
    Case(
        "environment-of-uv",
        by_uv,
        {"gpu": "warning"},
        ("uv pip uninstall --python python tensorflow-cpu &&",),
    ),
    Case(
        "macos",
        cpu_build,
        {},
        (),
        ("gpu", *NO_GPU),
        {"system": "darwin", "processor": "arm64"},
    ),
)
