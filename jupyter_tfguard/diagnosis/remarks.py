"""What a whole log says beside its messages: a remark that nothing more came, and traces of a program on a GPU."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .log_lines import LogLine

# "... and then never progresses", "it hangs here": what a person writes under a log that did not go on.
_STUCK = re.compile(
    r"\b(?:(?:then|it|and|training|kernel|cell|program|script|process|that|which) (?:just )?never (?:progress|finish|complet|continu|end|return|start|advanc|mov)(?:e?s|es)?\b"
    r"|never gets? (?:past|beyond|further)\b|no output (?:for (?:\d|an? |hours|minutes|days|ages)|any ?more\b)|(?:just )?sits there\b"
    r"|(?:it|just|then|and|training|kernel|cell|program|script|process) (?:just |simply )?(?:hangs|freezes|froze|stalls|hung)\b|(?:hangs|freezes|stalls|stuck|hung) (?:here|there|forever|indefinitely|at this|on this|in the first|at epoch)\b"
    r"|(?:got|gets|is) stuck\b|no (?:further|more) output\b|nothing (?:more )?happens\b|(?:does not|doesn.t|did not|didn.t) (?:progress|go on|move on|advance)\b)",
    re.IGNORECASE,
)
# device:GPU:0    gpu_executable.cc:12    se_gpu_pjrt_client    GPU_0_bfc    CudaDevice(id=0)
_ON_GPU = re.compile(
    r"device:GPU:\d|\bgpu_(?:executable|compiler|exec)|_gpu_pjrt|GPU_\d{1,2}_bfc|CudaDevice\(|RocmDevice\(|\bxla::gpu::|\bgpu\w{0,40}\.cc:\d"
)


def says_that_it_hung(lines: Iterable[LogLine]) -> bool:
    """True if one of these lines is a remark that the program did not go on."""
    return any(not line.severity and _STUCK.search(line.text[:1000]) for line in lines)


def is_on_gpu(lines: Iterable[LogLine]) -> bool:
    """True if a line shows that the program used a GPU."""
    return any(_ON_GPU.search(line.text) for line in lines)
