"""Other packages, processors and OpenMP runtimes for the doctor that do not go with TensorFlow."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from .made_case import Case, other_version
from .made_machine import MadeMachine


def instead(m: MadeMachine, standin: Path, release: str, name: str, version: str | None) -> None:
    m.tensorflow(release)
    other_version(m, name, version)


def legacy_keras(m: MadeMachine, standin: Path, version: str | None) -> None:
    m.tensorflow("2.19.0")
    m.environ["TF_USE_LEGACY_KERAS"] = "1"
    if version is not None:
        series = version.rsplit(".", 1)[0]
        following = f"{series.split('.')[0]}.{int(series.split('.')[1]) + 1}"
        m.package("tf_keras", version, requires=[f"tensorflow<{following},>={series}"])


def without_avx(m: MadeMachine, standin: Path) -> None:
    m.processor("fpu sse4_1 sse4_2 hypervisor")
    m.tensorflow("2.21.0")


def nightly_without_avx(m: MadeMachine, standin: Path) -> None:
    without_avx(m, standin)
    m.remove("tensorflow")
    m.tensorflow("2.21.0", name="tf-nightly", version="2.22.0.dev20260301")


def two_openmp(m: MadeMachine, standin: Path) -> None:
    m.tensorflow("2.21.0")
    (m.prefix / "lib" / "libiomp5.so").touch()
    m.package("faiss-cpu", "1.9.0", files=["faiss_cpu.libs/libomp-a1b2c3d4.so.5"])


def openmp_that_goes_together(m: MadeMachine, standin: Path) -> None:
    m.tensorflow("2.21.0")
    (m.prefix / "lib" / "libiomp5.so").touch()
    (m.prefix / "lib" / "libomp.so").symlink_to("libiomp5.so")
    m.package("torch", "2.9.0", files=["torch/lib/libgomp-a34b3233.so.1"])


def openmp_override(m: MadeMachine, standin: Path) -> None:
    m.tensorflow("2.21.0")
    m.environ["KMP_DUPLICATE_LIB_OK"] = "TRUE"


CASES = (
    Case(
        "numpy-missing",
        partial(instead, release="2.21.0", name="numpy", version=None),
        {"numpy": "problem"},
    ),
    Case(
        "protobuf-too-old",
        partial(instead, release="2.21.0", name="protobuf", version="5.29.5"),
        {"protobuf": "problem"},
    ),
    Case(
        "protobuf-next",
        partial(instead, release="2.19.0", name="protobuf", version="6.33.0"),
        {"protobuf": "warning"},
    ),
    Case(
        "protobuf-too-new",
        partial(instead, release="2.17.0", name="protobuf", version="6.33.0"),
        {"protobuf": "problem"},
    ),
    Case(
        "protobuf-left-out",
        partial(instead, release="2.19.0", name="protobuf", version="4.21.3"),
        {"protobuf": "warning"},
    ),
    Case(
        "keras-2",
        partial(instead, release="2.18.0", name="keras", version="2.15.0"),
        {"keras": "problem"},
        ("tf.keras does not work",),
    ),
    Case(
        "keras-missing",
        partial(instead, release="2.18.0", name="keras", version=None),
        {"keras": "problem"},
    ),
    Case(
        "other-package-missing",
        partial(instead, release="2.21.0", name="absl-py", version=None),
        {"requirements": "problem"},
        ("absl-py>=1.0.0 (missing)",),
    ),
    Case(
        "other-package-too-old",
        partial(instead, release="2.21.0", name="absl-py", version="0.9"),
        {"requirements": "warning"},
        ("(here 0.9)",),
    ),
    Case(
        "legacy-keras-missing",
        partial(legacy_keras, version=None),
        {"keras": "problem"},
        ('"tf-keras==2.19.*"',),
    ),
    Case(
        "legacy-keras-of-another-series",
        partial(legacy_keras, version="2.18.0"),
        {"keras": "problem"},
    ),
    Case("legacy-keras", partial(legacy_keras, version="2.19.0"), {}, ("tf_keras 2.19.0",)),
    Case("no-avx", without_avx, {"processor": "problem"}, ("SIGILL", "virtual machine")),
    Case("nightly-without-avx", nightly_without_avx, {"build": "warning", "processor": "warning"}),
    Case("two-openmp", two_openmp, {"openmp": "warning"}, ("OMP: Error #15", "libiomp5.so")),
    Case("openmp-that-goes-together", openmp_that_goes_together, {}),
    Case(
        "openmp-override", openmp_override, {"openmp": "warning"}, ("unset KMP_DUPLICATE_LIB_OK",)
    ),
)
