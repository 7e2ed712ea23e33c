"""Other packages and processors for the doctor that do not go with TensorFlow."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from .made_case import Case, other_version
from .made_machine import MadeMachine


def instead(m: MadeMachine, standin: Path, release: str, name: str, version: str | None) -> None:
    m.tensorflow(release)
    other_version(m, name, version)


def numpy_2_under_an_old_build(m: MadeMachine, standin: Path) -> None:
    """A release for NumPy 1 that sets no upper limit."""
    m.tensorflow("2.21.0", version="2.9.3")


def without_avx(m: MadeMachine, standin: Path) -> None:
    m.processor("fpu sse4_1 sse4_2 hypervisor")
    m.tensorflow("2.21.0")


def nightly_without_avx(m: MadeMachine, standin: Path) -> None:
    without_avx(m, standin)
    m.remove("tensorflow")
    m.tensorflow("2.21.0", name="tf-nightly", version="2.22.0.dev20260301")


CASES = (
    Case(
        "numpy-missing",
        partial(instead, release="2.21.0", name="numpy", version=None),
        {"packages": "problem"},
        ("numpy>=1.26.0 (here: missing)",),
    ),
    Case(
        "without-libclang",  # TensorFlow lists it, and imports it nowhere
        partial(instead, release="2.21.0", name="libclang", version=None),
        {},
    ),
    Case(
        "numpy-2-under-an-old-build",
        numpy_2_under_an_old_build,
        {"packages": "problem"},
        ('"numpy>=1.26.0,<2"',),
    ),
    Case(
        "protobuf-too-old",
        partial(instead, release="2.21.0", name="protobuf", version="5.29.5"),
        {"packages": "problem"},
        ("protobuf>=6.31.1,<8.0.0 (here: 5.29.5)", "does not run"),
    ),
    Case(
        "protobuf-newer",
        partial(instead, release="2.19.0", name="protobuf", version="6.33.0"),
        {"packages": "warning"},
        ("protobuf>=3.20.3,<6.0.0 (here: 6.33.0)", "was not tested"),
    ),
    Case(
        "keras-2",
        partial(instead, release="2.19.0", name="keras", version="2.15.0"),
        {"packages": "problem"},
    ),
    Case("no-avx", without_avx, {"processor": "problem"}, ("SIGILL", "virtual machine")),
    Case("nightly-without-avx", nightly_without_avx, {"processor": "warning"}),
)
