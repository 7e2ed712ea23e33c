"""What the published wheels of four releases of TensorFlow hold: their metadata, build information and NVIDIA's packages.

Written down here once more, from the wheels, and not taken from the tables that the doctor judges by.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

CODE_2_17 = ("sm_60", "sm_70", "sm_80", "sm_89", "compute_90")
_PROTOBUF_5 = "protobuf!=4.21.0,!=4.21.1,!=4.21.2,!=4.21.3,!=4.21.4,!=4.21.5,<6.0.0dev,>=3.20.3"
_PROTOBUF_4 = _PROTOBUF_5.replace("<6", "<5")
_CUDA_12_5 = {
    "cuda-runtime": "12.5.82",
    "cublas": "12.5.3.2",
    "cufft": "11.2.3.61",
    "cusolver": "11.6.3.83",
    "cusparse": "12.5.1.3",
    "cudnn": "9.3.0.75",
}
_CUDA_12_3 = {
    "cuda-runtime": "12.3.101",
    "cublas": "12.3.4.1",
    "cufft": "11.0.12.1",
    "cusolver": "11.5.4.101",
    "cusparse": "12.2.0.103",
    "cudnn": "8.9.7.29",
}
# What each of NVIDIA's packages holds of what TensorFlow opens; their folder is nvidia/<name>/lib.
FILES = {
    "cuda-runtime": ("libcudart.so.12",),
    "cublas": ("libcublas.so.12", "libcublasLt.so.12"),
    "cufft": ("libcufft.so.11",),
    "cusolver": ("libcusolver.so.11",),
    "cusparse": ("libcusparse.so.12",),
}
CUDNN_8 = ("", "_ops_infer", "_ops_train", "_cnn_infer", "_cnn_train", "_adv_infer", "_adv_train")
CUDNN_9 = ("", "_graph", "_ops", "_cnn", "_adv", "_heuristic", "_engines_precompiled")


@dataclass(frozen=True)
class Release:
    """What a published wheel says of itself, and one set of other packages that fits it."""

    version: str
    requires_python: str
    needs: tuple[str, ...]
    fitting: dict[str, str]
    cuda: str
    cudnn: str
    code: tuple[str, ...]
    nvidia: dict[str, str]
    exact_pins: bool


_NUMPY_1 = (
    'numpy<2.0.0,>=1.23.5; python_version <= "3.11"',
    'numpy<2.0.0,>=1.26.0; python_version >= "3.12"',
)
_2_21 = Release(
    version="2.21.0",
    requires_python=">=3.10",
    needs=(
        "absl-py>=1.0.0",
        "numpy>=1.26.0",
        "protobuf<8.0.0,>=6.31.1",
        "keras>=3.12.0",
        "libclang>=13.0.0",
    ),
    fitting={
        "absl-py": "2.3.0",
        "numpy": "2.3.4",
        "protobuf": "6.33.0",
        "keras": "3.12.0",
        "libclang": "18.1.1",
    },
    cuda="12.5.1",
    cudnn="9",
    code=CODE_2_17,
    nvidia=_CUDA_12_5,
    exact_pins=False,
)
_2_20 = replace(
    _2_21,
    version="2.20.0",
    requires_python=">=3.9",
    needs=("absl-py>=1.0.0", "numpy>=1.26.0", "protobuf>=5.28.0", "keras>=3.10.0"),
)
_2_19 = replace(
    _2_20,
    version="2.19.0",
    needs=("absl-py>=1.0.0", "numpy<2.2.0,>=1.26.0", _PROTOBUF_5, "keras>=3.5.0"),
    fitting={"absl-py": "2.3.0", "numpy": "2.0.2", "protobuf": "5.29.5", "keras": "3.12.0"},
    exact_pins=True,
)
_2_17 = replace(
    _2_19,
    version="2.17.0",
    needs=("absl-py>=1.0.0", *_NUMPY_1, _PROTOBUF_4, "keras>=3.2.0"),
    fitting={"absl-py": "2.3.0", "numpy": "1.26.4", "protobuf": "4.25.8", "keras": "3.12.0"},
    cuda="12.3",
    cudnn="8",
    nvidia=_CUDA_12_3,
)
RELEASES = {known.version: known for known in (_2_17, _2_19, _2_20, _2_21)}


def cudnn_files(version: str) -> tuple[str, ...]:
    major = version.split(".")[0]
    return tuple(f"libcudnn{part}.so.{major}" for part in (CUDNN_8 if major == "8" else CUDNN_9))
