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
# "I got CUDA out of memory after an hour", "It says: ...": what a person writes about the end.
_RETOLD = re.compile(
    r"\b(?:i|we)(?:'m| am| are|'ve| have)? (?:still |always |now |also |just |keep |kept |often |then )?(?:get|got|getting|see|saw|seeing|meet|met|hit|face|faced|facing|receive|received|run into|ran into)\b|\bi (?:always |often |still )?(?:have|had)\b"
    r"|\bit (?:then |always |just |now |still )?(?:says?|said|crash(?:es|ed)|dies|died|fails|failed|stops|stopped|ends|ended)\b"
    r"|\b(?:the|this|following) (?:error|problem|issue|exception)(?: message)? (?:is|says|was)\b|\bwith (?:the|this|following) error\b|\bgives? me\b",
    re.IGNORECASE,
)
# It was another run.
_OTHER_RUN = re.compile(
    r"\b(?:solved|fixed|no longer|not? any ?more|used to|before|earlier|previous(?:ly)?|yesterday|last (?:week|time|month|run)|instead|so i|so we|therefore|until|unless|never|did not|didn.t|don.t|do not|without|if)\b",
    re.IGNORECASE,
)
# device:GPU:0    gpu_executable.cc:12    se_gpu_pjrt_client    GPU_0_bfc    CudaDevice(id=0)
_ON_GPU = re.compile(
    r"device:GPU:\d|\bgpu_(?:executable|compiler|exec)|_gpu_pjrt|GPU_\d{1,2}_bfc|CudaDevice\(|RocmDevice\(|\bxla::gpu::|\bgpu\w{0,40}\.cc:\d"
)
# "CUDA out of memory. Tried to allocate 9.00 GiB, skipping this length": the program caught the error.
_HANDLED = re.compile(
    r"\b(?:skipp(?:ing|ed)|(?:will retry|retrying|retried)|caught|handled|halv(?:ing|ed)|falling back|fell back|(?<!Exception )ignor(?:ing|ed)(?! \(for causing)|continuing"
    r"|(?<!or )(?<!by )(?<!try )(?<!der )(?<!ing )(?:reduc|lower|decreas|shrink)ing|trying (?:again|with|a smaller|half)|trying \d|next (?:trial|size|batch|config\w*))\b",
    re.IGNORECASE,
)
_HANDLED_CHARACTERS = 1000


def says_that_it_hung(lines: Iterable[LogLine]) -> bool:
    """True if one of these lines is a remark that the program did not go on."""
    return any(not line.severity and _STUCK.search(line.text[:1000]) for line in lines)


def is_handled(line: LogLine) -> bool:
    """True if the line says that the program handled an error."""
    return _HANDLED.search(line.text[:_HANDLED_CHARACTERS]) is not None


def is_retold(text: str) -> bool:
    """True for a sentence in which a person reports an error."""
    return _RETOLD.search(text[:400]) is not None


def is_of_another_run(text: str) -> bool:
    """True for a sentence about an error that is past or was avoided."""
    return _OTHER_RUN.search(text[:1000]) is not None


def is_on_gpu(lines: Iterable[LogLine]) -> bool:
    """True if a line shows that the program used a GPU."""
    return any(_ON_GPU.search(line.text) for line in lines)
