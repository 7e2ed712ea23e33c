"""A fault on the GPU that ends its context: illegal address, launch failure, illegal instruction."""

from __future__ import annotations

from ..catalog.cuda_errors import error_in
from ..ending import text_evidence
from ..evidence import Evidence
from ..finding import Advice, Confidence, Finding
from ..rule import rule
from ..xid import SOFTWARE, first_xid, xid_fact

_DRIVERS = {
    "AMD": "Each tensorflow-rocm release is made for one ROCm release, and each ROCm release for certain cards: "
    "https://rocm.docs.amd.com/projects/install-on-linux/en/latest/reference/system-requirements.html",
    "Apple": "Each tensorflow-metal release is made for certain TensorFlow releases: https://pypi.org/project/tensorflow-metal/",
}


@rule(
    "cuda_illegal_access",
    needs=("kernel.recording", "gpu"),
    outranks=("sys_exit", "segfault_native"),
)
def cuda_illegal_access(seen: Evidence) -> Finding | None:
    """Work on the GPU failed: code on the card used a wrong address, or could not be started. After such a fault the process
    cannot use the GPU any more.

    A CUDA error in the stderr tail or in the log names the fault. Or the NVIDIA driver logged a fault (Xid) that software
    causes.
    """
    text, fault = text_evidence(seen, "cuda_illegal_access"), first_xid(seen, SOFTWARE)
    if text is None and fault is None:
        return None
    because = list(text.facts) if text is not None else []
    if fault is not None:
        because.append(xid_fact(fault))
    error = error_in(text.message) if text is not None else None
    restart: tuple[Advice, ...] = ()
    if error is not None and error.sticky:
        reason = f"{error.name} (error {error.code}) leaves the CUDA context unusable: every later CUDA call of the process also fails."
        restart = (Advice("Restart the kernel before anything else.", reason),)
    assertion = text.details.get("assertion") if text is not None else None
    if assertion is not None:
        reason = (
            f"The check was: {' '.join(assertion.split())[:160]}. An index or label outside the valid range is the usual cause: compare the labels "
            "with the number of classes, and token numbers with the size of the embedding. On the CPU the same step raises an error with the line."
        )
        restart = (Advice("Check the indices and labels of this batch.", reason),)
    card = text.details.get("card", "NVIDIA") if text is not None else "NVIDIA"
    if text is not None and card in _DRIVERS:
        title = (
            f"An operation on the {card} GPU failed, and the program cannot use the GPU any more."
        )
        update = Advice(
            "Compare the versions of the framework and the GPU's driver.", _DRIVERS[card]
        )
        cpu = Advice(
            "Run the same step on the CPU.", "If it fails there too, the error names the line."
        )
        return text.finding(title=title, short_title="GPU fault", advice=(update, cpu))
    return Finding(
        text.confidence if text is not None else Confidence.LIKELY,
        title="An operation on the GPU failed and made its CUDA context unusable.",
        short_title="GPU fault",
        because=tuple(because),
        advice=(
            *restart,
            Advice(
                "Find the operation that fails.",
                "CUDA reports a fault late. With blocking launches, the Python stack shows the right line.",
                "CUDA_LAUNCH_BLOCKING=1  # in the environment, before the kernel starts",
            ),
        ),
        chips=text.chips if text is not None else (),
    )
