"""What rules add from the tables: for the TensorFlow, the driver, the GPU and the error that a death names, and for no other."""

from __future__ import annotations

import itertools

import pytest

from jupyter_tfguard.diagnosis.catalog import table
from jupyter_tfguard.diagnosis.catalog.gpu_arch import Coverage, arch_covered
from jupyter_tfguard.diagnosis.catalog.tensorflow import builds
from jupyter_tfguard.diagnosis.diagnose import explain
from jupyter_tfguard.diagnosis.evidence import Evidence
from jupyter_tfguard.diagnosis.finding import Finding
from jupyter_tfguard.diagnosis.gpu_stack import cudnn_package, recorded_build, which_driver_fits
from jupyter_tfguard.diagnosis.pasted import Pasted
from tests.rigs.examples import bundle_of

pytestmark = pytest.mark.quick

NO_IMAGE = "InternalError: CUDA error: no kernel image is available for execution on the device"


def advice_of(finding: Finding) -> str:
    return "\n".join(f"{step.title} {step.text} {step.code}" for step in finding.advice)


def named(text: str, cause: str) -> str:
    best = explain(Pasted(text)).best
    assert best.cause == cause
    return advice_of(best)


@pytest.mark.parametrize(
    ("capability", "said"),
    [
        ("5.2", "5.2: 2.16.2 is the newest published build that contains code for it."),
        ("7.5", "7.5 (Turing): published builds since 2.10.0 contain code for it."),
        ("9.0", "9.0 (Hopper): published builds since 2.16.1 contain code for it."),
        ("12.0", "12.0 (Blackwell, graphics): no published build up to 2.21.0 contains machine code for it"),
        ("3.0", "3.0: no published build from 2.10.0 to 2.21.0 contains code for it."),
    ],
)  # fmt: skip
def test_a_gpu_that_a_line_names_is_held_against_the_builds(capability: str, said: str) -> None:
    device = f"I gpu_device.cc:1928] device: 0, name: GPU, compute capability: {capability}"
    assert said in named(f"{device}\n{NO_IMAGE}\n", "gpu_arch_unsupported")


def test_a_driver_that_a_line_names_is_held_against_cuda() -> None:
    said = named(
        "E cuda_dnn.cc:397] Possibly insufficient driver version: 470.82.1\nAborted (core dumped)\n",
        "cuda_driver_mismatch",
    )
    assert "Driver 470.82.1 supports CUDA 11 and older. 2.14.1 is the newest" in said


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("2.21.0", "TensorFlow 2.21.0 is built with CUDA 12.5.1, which needs driver 525.60.13 or newer."),
        ("2.22.0.dev20260101", ""),
        ("2.21.0+local", ""),
        (None, ""),
    ],
)  # fmt: skip
def test_a_recorded_build_names_its_driver_where_it_is_in_the_table(
    version: str | None, said: str
) -> None:
    bundle = bundle_of("segfault_native/fires-with-python-stack.json")
    bundle["kernel"]["header"]["versions"]["tensorflow"] = version
    seen = Evidence(bundle)
    assert (recorded_build(seen) is not None) == bool(said)
    assert which_driver_fits(seen) == said


def test_the_package_of_a_cudnn_follows_from_the_builds_that_use_it() -> None:
    assert cudnn_package("9.3.0") == "nvidia-cudnn-cu12>=9.3,<10"
    assert cudnn_package("8.9.4") == "nvidia-cudnn-cu12>=8.9,<9"
    assert cudnn_package("8.7") == "nvidia-cudnn-cu11>=8.7,<9"
    assert cudnn_package("8.1.0") is None
    assert cudnn_package("") is None
    said = named(
        "Loaded runtime CuDNN library: 9.1.0 but source was compiled with: 9.3.0.  CuDNN library needs to have matching major version\n",
        "cudnn_version_mismatch",
    )
    assert "pip install 'nvidia-cudnn-cu12>=9.3,<10'" in said


def test_a_sticky_error_needs_another_process() -> None:
    lost = "InternalError: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered\n"
    assert "CUDA_ERROR_ILLEGAL_ADDRESS (error 700) leaves" in named(lost, "cuda_illegal_access")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("free(): double free detected in tcache 2", "freed twice"),
        ("malloc(): corrupted top size", "past the end of a memory block"),
        ("munmap_chunk(): invalid pointer", "from another allocator"),
    ],
)
def test_what_a_heap_check_found_is_reported(line: str, said: str) -> None:
    assert said in named(f"{line}\n", "glibc_abort_heap_corruption")


def test_builds_with_code_for_a_gpu_follow_each_other() -> None:
    """So that "from this one on" and "the newest one" tell them all."""
    for row in table("gpu_arch")["family"]:
        for capability in row["capabilities"]:
            held = [arch_covered(build.version, capability) for build in builds()]
            native = [one is not None and one.coverage is Coverage.NATIVE for one in held]
            changes = sum(a != b for a, b in itertools.pairwise(native))
            assert changes <= 1, capability
