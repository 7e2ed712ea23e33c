"""Builds of TensorFlow for the doctor that are no published ones, or not alone, or not for this machine."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from .made_case import NO_GPU, Case, on_gpu
from .made_machine import MadeMachine


def cpu_machine(m: MadeMachine, standin: Path) -> None:
    m.tensorflow("2.21.0")


def nothing(m: MadeMachine, standin: Path) -> None:
    pass


def gpu_without_tensorflow(m: MadeMachine, standin: Path) -> None:
    on_gpu(m, standin)


def cpu_build(m: MadeMachine, standin: Path) -> None:
    m.tensorflow("2.21.0", name="tensorflow-cpu", cuda=False)


def cpu_build_on_gpu(m: MadeMachine, standin: Path) -> None:
    on_gpu(m, standin)
    cpu_build(m, standin)


def nightly(m: MadeMachine, standin: Path) -> None:
    on_gpu(m, standin)
    m.tensorflow("2.21.0", name="tf-nightly", version="2.22.0.dev20260301")
    m.nvidia_packages("2.21.0")


def nightly_old_gpu(m: MadeMachine, standin: Path) -> None:
    nightly(m, standin)
    m.set_cards(("5.2",))


def home_made(m: MadeMachine, standin: Path) -> None:
    on_gpu(m, standin)
    m.tensorflow("2.19.0", version="2.19.0+mine", cuda_version="12.8.0", cudnn_version="9")
    m.nvidia_packages("2.19.0", cudnn="9.1.0.70")


def other_builder(m: MadeMachine, standin: Path) -> None:
    on_gpu(m, standin)
    m.tensorflow("2.17.0", cuda_version="12.6", cudnn_version="9")
    m.nvidia_packages("2.18.0")


def newer_release(m: MadeMachine, standin: Path) -> None:
    m.tensorflow("2.21.0", version="2.40.0")


def rocm(m: MadeMachine, standin: Path) -> None:
    on_gpu(m, standin)
    m.tensorflow("2.18.0", name="tensorflow-rocm", cuda=False, is_rocm_build=True, version="2.18.0")


def no_metadata(m: MadeMachine, standin: Path) -> None:
    m.tensorflow("2.21.0")
    m.remove("tensorflow")


def no_folder(m: MadeMachine, standin: Path) -> None:
    m.tensorflow("2.21.0")
    shutil.rmtree(m.site / "tensorflow")


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


def folder_in_the_way(m: MadeMachine, standin: Path) -> None:
    file_in_the_way(m, standin)
    source = m.import_folders[0]
    (source / "tensorflow").mkdir()
    (source / "tensorflow" / "__init__.py").touch()


def over_each_other(m: MadeMachine, standin: Path) -> None:
    m.tensorflow("2.20.0", name="tensorflow-cpu", cuda=False, fitting=False)
    m.tensorflow("2.21.0")


def same_over_each_other(m: MadeMachine, standin: Path) -> None:
    m.tensorflow("2.21.0", name="tensorflow-cpu", cuda=False, fitting=False)
    m.tensorflow("2.21.0")


def hidden_copy(m: MadeMachine, standin: Path) -> None:
    user = m.prefix.parent / "home" / "site-packages"
    user.mkdir(parents=True)
    m.import_folders.insert(0, user)
    m.tensorflow("2.21.0")
    m.tensorflow("2.20.0", folder=user, fitting=False)


def wheel_of_another_python(m: MadeMachine, standin: Path) -> None:
    m.tensorflow("2.21.0", tag="cp311-cp311-manylinux_2_17_x86_64")


def python_not_tested(m: MadeMachine, standin: Path) -> None:
    m.python_version = "3.14.0"
    m.tensorflow("2.20.0")


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
        ("python", "numpy", "keras", "processor", "gpu", *NO_GPU),
    ),
    Case("gpu-without-tensorflow", gpu_without_tensorflow, {}, silent=("gpu", *NO_GPU)),
    Case("cpu-build", cpu_build, {}, ("built without CUDA", "no NVIDIA GPU"), NO_GPU),
    Case(
        "cpu-build-on-a-gpu-machine",
        cpu_build_on_gpu,
        {"gpu": "warning"},
        ("stays idle", "uninstall -y tensorflow-cpu", '"tensorflow[and-cuda]==2.21.0"'),
        NO_GPU,
    ),
    Case(
        "nightly",
        nightly,
        {"build": "warning"},
        ("tf-nightly 2.22.0.dev20260301", "not in the table"),
    ),
    Case(
        "nightly-without-code-for-the-gpu",
        nightly_old_gpu,
        {"build": "warning", "gpu_architecture": "problem"},
        ("only sm_60",),
    ),
    # cuDNN 9.1 is not judged: which minor version it was built with, nothing tells.
    Case("home-made", home_made, {"build": "warning"}, ("its minor version is not known",)),
    Case("another-builder", other_builder, {"build": "warning"}, ("CUDA 12.6 and cuDNN 9",)),
    Case("newer-than-the-table", newer_release, {"build": "warning"}, ("not in the table",)),
    Case("rocm", rocm, {"build": "warning", "gpu": "warning"}, ("AMD's GPUs",), NO_GPU),
    Case(
        "no-metadata", no_metadata, {"build": "warning"}, ("no whole package metadata",), ("numpy",)
    ),
    Case(
        "file-in-the-way",
        file_in_the_way,
        {"build": "problem"},
        ("tensorflow.py is found before tensorflow 2.21.0", "my_tensorflow.py"),
        ("numpy",),
    ),
    Case(
        "folder-in-the-way",
        folder_in_the_way,
        {"build": "warning"},
        ("`import tensorflow` loads that",),
    ),
    # A published wheel for Linux: the table knows what it was built for.
    Case(
        "no-build-information",
        partial(no_build_information, name="tensorflow", version="2.21.0"),
        {},
        ("12.5.1", "sm_80"),
    ),
    Case(
        "nightly-without-build-information",
        partial(no_build_information, name="tf-nightly", version="2.22.0.dev20260301"),
        {"build": "warning", "gpu": "could not check"},
        ("cannot be read",),
        NO_GPU,
    ),
    Case("no-folder", no_folder, {"build": "problem"}, ("--force-reinstall",)),
    Case(
        "packages-over-each-other",
        over_each_other,
        {"build": "problem"},
        ("tensorflow 2.21.0 and tensorflow-cpu 2.20.0", "uninstall -y"),
    ),
    Case("same-over-each-other", same_over_each_other, {"build": "warning"}, ("mixture",)),
    Case(
        "copy-that-hides-another", hidden_copy, {"build": "warning"}, ("tensorflow 2.20.0", "hides")
    ),
    Case("wheel-of-another-python", wheel_of_another_python, {"python": "problem"}, ("3.11",)),
    Case(
        "python-not-tested", python_not_tested, {"python": "warning"}, ("tested with", "3.9-3.13")
    ),
    Case(
        "conda-build-without-libraries",
        partial(by_conda, cuda=True),
        {"gpu_cuda": "problem"},
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
        ("on Linux only",),
        NO_GPU,
        {"system": "darwin", "processor": "arm64"},
    ),
)
