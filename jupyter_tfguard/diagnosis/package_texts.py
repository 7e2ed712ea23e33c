"""Words for advice about installed packages: which release a log is from, and which package does not fit.

Published TensorFlow packages bring CUDA along (``tensorflow[and-cuda]``) since 2.14. Older logs need other advice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from packaging.version import Version

from .catalog.tensorflow import series_build
from .ending import TextEvidence
from .evidence import Evidence
from .frameworks import framework_of
from .gpu_stack import recorded_build
from .log_lines import LogLine
from .python_stacks import FAULT_LINE, OWN_STACK

Words = dict[str, str]
_BRINGS_CUDA = (2, 14)
_OLDEST_PYTHON = 9
# tensorflow-gpu==1.15.2      TensorFlow 2.10.1      tf 2.9      tensorflow version: 2.4.0
_RELEASE = re.compile(
    r"(?i)\b(?:tensorflow(?:[-_](?:gpu|cpu|macos|intel))?|tf)(?: version)?(?:==|: ?|[ -]v?)(\d{1,2}\.\d{1,2})\b"
)
# lib/python3.7/      Python 3.6      Python36\      py37
_PYTHON = re.compile(r"(?i)\bpy(?:thon)?[ -]?3\.?(\d{1,2})\b")
_OLD_CUDA = re.compile(
    r"cudart64_(?:[89]\d|1[01]\d)\.dll|libcudart\.so\.(?:[789]|10|11)\b|tensorflow_core/"
)
# cudart64_101.dll      cudnn64_7.dll
_DLL = re.compile(r"(?P<name>cudart|cudnn)64_(?P<version>\d{1,3})\.dll")
# /env/lib/python3.11/site-packages/tensorflow_text/ops/_ops.so: undefined symbol: _ZN10tensorflow
_UNDEFINED = re.compile(r"(?:site|dist)-packages[/\\](?P<package>\w{1,60})[/\\][^\s:]{0,300}\.so")
_PACKAGE = re.compile(r"(?:site|dist)-packages[/\\](?P<package>\w{1,60})")
_OF_NUMPY = re.compile(r"(?i)numpy|module compiled against|_ARRAY_API|static tls")
# Modules whose package has another name at the package registry.
_PACKAGES = {"cv2": "opencv-python", "sklearn": "scikit-learn", "PIL": "pillow", "yaml": "pyyaml"}


def package_words(seen: Evidence, text: TextEvidence) -> Words:
    """Whether to install TensorFlow with CUDA, JAX, PyTorch, or what an old release was built with."""
    lines = seen.story.lines
    sign = seen.verdict.sign if seen.verdict is not None else None
    framework = framework_of(lines, sign.index if sign is not None else None)
    if seen.pasted is not None and framework in ("jax", "pytorch"):
        return {f"of_{framework}": "yes", "tested": ""}
    release = _release(seen, lines)
    whole = "\n".join(line.text[:1000] for line in lines)
    pythons = [int(minor) for minor in _PYTHON.findall(whole)]
    is_old = (
        (release is not None and Version(release).release[:2] < _BRINGS_CUDA)
        or (release is None and any(minor < _OLDEST_PYTHON for minor in pythons))
        or (release is None and _OLD_CUDA.search(whole) is not None)
    )
    words = {"old_build" if is_old else "brings_cuda": "yes", "tested": _tested(release, text)}
    if "dll" in text.details or "driver_dll" in text.details:
        del words["old_build" if is_old else "brings_cuda"]
    return words


def _release(seen: Evidence, lines: Sequence[LogLine]) -> str | None:
    """Series of TensorFlow, ``2.10``; None when the log names none, or several."""
    if (build := recorded_build(seen)) is not None:
        return build.version
    found = {hit for line in lines for hit in _RELEASE.findall(line.text[:1000])}
    return found.pop() if len(found) == 1 else None


def _tested(release: str | None, text: TextEvidence) -> str:
    if (dll := _DLL.search(text.message)) is not None:
        name = "CUDA" if dll["name"] == "cudart" else "cuDNN"
        number = dll["version"]
        version = number if name == "cuDNN" else f"{number[:-1]}.{number[-1]}"
        return f"{dll[0]} belongs to {name} {version}."
    build = (
        series_build(f"{release}.0") if release is not None and release.count(".") == 1 else None
    )
    if build is None:
        return "https://www.tensorflow.org/install/source#gpu lists them."
    return f"TensorFlow {release} was tested with CUDA {build.cuda} and cuDNN {build.cudnn}."


def misfit_words(_: Evidence, text: TextEvidence) -> Words:
    """The package whose native part misses a symbol; ``unfitting`` when the line names no cure of its own."""
    if "redistributable" in text.details or "msvc" in text.details:
        return {}
    missing = _UNDEFINED.search(text.message)
    if "undefined symbol" in text.message and missing is not None:
        package = missing["package"]
        if package not in ("tensorflow", "tensorflow_core"):
            name = _PACKAGES.get(package, package.replace("_", "-"))
            return {"symbol_of": package, "symbol_package": name}
    return {} if _OF_NUMPY.search(text.message) else {"unfitting": "yes"}


def caller_words(seen: Evidence) -> Words:
    """The innermost Python line in a pasted stack of faulthandler, and its package."""
    lines = [line.text for line in seen.story.lines]
    begin = next((n for n, line in enumerate(lines) if OWN_STACK.match(line.strip())), None)
    if begin is None:
        begin = next((n for n, line in enumerate(lines) if FAULT_LINE.match(line.strip())), None)
    frame = (
        next(
            (line.strip() for line in lines[begin:][:8] if line.lstrip().startswith('File "')), None
        )
        if begin is not None
        else None
    )
    if frame is None:
        return {"without_stack": "yes"}
    found = _PACKAGE.search(frame)
    package = (
        f" It is in the package {found['package']}: install it again in another version, and report the crash to its project."
        if found is not None
        else ""
    )
    return {"native_caller": frame, "native_package": package}
