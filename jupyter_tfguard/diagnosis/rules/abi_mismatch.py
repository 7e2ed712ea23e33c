"""Native parts other than CUDA do not fit together: NumPy, protobuf, a compiler's library, two copies of one thing."""

from __future__ import annotations

from ..evidence import Evidence
from ..finding import Advice, Finding
from ..rule import rule
from ..told import told


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
        first = Advice(
            "Bring NumPy and the module that was built against it together.",
            "TensorFlow 2.17 and older need NumPy 1; modules built for NumPy 2 run with both.",
            "python -m pip install 'numpy<2'  # or upgrade the module",
        )
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
    return Finding(
        text.confidence,
        title="Native parts do not fit together.",
        short_title="Incompatible native packages",
        because=text.facts,
        advice=(first, Advice("Check what contradicts.", "", "python -m pip check")),
        chips=text.chips,
    )
