"""Native parts other than CUDA do not fit together: NumPy, protobuf, a compiler's library, two copies of one thing."""

from __future__ import annotations

import re

from ..evidence import Evidence
from ..finding import Advice, Finding
from ..rule import rule
from ..told import told

# module compiled against ABI version 0x1000009 but this version of numpy is 0x2000000
_NUMPY_VERSIONS = re.compile(
    r"compiled against A[BP]I version (?P<built>0x[0-9a-f]{1,8}) but this version of numpy is (?P<here>0x[0-9a-f]{1,8})"
)


@rule(
    "abi_mismatch",
    needs=("kernel.recording",),
    outranks=("tf_check_failed", "segfault_native", "sys_exit"),
)
def abi_mismatch(seen: Evidence) -> Finding | None:
    text = told(seen, "abi_mismatch")
    if text is None:
        return None
    low = text.message.lower()
    if "numpy" in low or "module compiled against" in low:
        first = _numpy_advice(text.message)
    elif "static tls" in low:
        first = Advice(
            "Load that library first.",
            "Too many libraries with static thread storage are loaded before it: import it before the others.",
            "export LD_PRELOAD=/path/to/libgomp.so.1",
        )
    else:
        first = Advice(
            "Install the packages anew in a clean environment, from one source.",
            "conda and pip packages in one environment often bring two copies of one library.",
            "python -m venv fresh && fresh/bin/python -m pip install tensorflow",
        )
    return text.finding(
        title="Native parts do not fit together.",
        short_title="Incompatible native packages",
        advice=(first, Advice("Check what contradicts.", "", "python -m pip check")),
    )


def _numpy_advice(message: str) -> Advice:
    found = _NUMPY_VERSIONS.search(message)
    if found is not None and int(found["here"], 16) < int(found["built"], 16):
        return Advice(
            "Upgrade NumPy: it is older than the one that the module was built with.",
            f"Built with {found['built']}, loaded with {found['here']}.",
            "python -m pip install --upgrade numpy",
        )
    return Advice(
        "Bring NumPy and the module that was built against it together.",
        "TensorFlow 2.17 and older need NumPy 1; modules built for NumPy 2 run with both.",
        "python -m pip install 'numpy<2'  # or upgrade the module",
    )
