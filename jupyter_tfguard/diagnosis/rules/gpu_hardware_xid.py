"""The card, its memory or its link failed, by the driver's own word: an Xid of hardware, or errors that only hardware makes.

Source: NVIDIA's Xid catalogue, in ``catalog/xid.toml``. Xid 45 reports clean-up and is never a cause.
"""

from __future__ import annotations

from ..evidence import Evidence
from ..finding import Advice, Confidence, Fact, Finding, Source
from ..rule import CONSEQUENCES_OF_A_KILL, rule
from ..told import told
from ..xid import HARDWARE, first_xid, xid_row


@rule(
    "gpu_hardware_xid",
    needs=("system_log", "gpu"),
    outranks=("cuda_illegal_access", *CONSEQUENCES_OF_A_KILL),
)
def gpu_hardware_xid(seen: Evidence) -> Finding | None:
    text = told(seen, "gpu_hardware_xid")
    fault = first_xid(seen, HARDWARE)
    if text is None and fault is None:
        return None
    because = list(text.facts) if text is not None else []
    confidence = text.confidence if text is not None else Confidence.LIKELY
    advice = Advice(
        "Reset the card, or restart the machine; if it happens again, have the card looked at.",
        "Power, cooling and the seat of the card are the usual suspects beside the card itself. "
        "https://docs.nvidia.com/deploy/xid-errors/",
        "nvidia-smi -q -d ECC,ROW_REMAPPER,TEMPERATURE,POWER",
    )
    what = "The GPU"
    if fault is not None:
        row = xid_row(fault.number)
        because.insert(0, Fact(Source.SYSTEM_LOG, fault.line.strip()[:400]))
        meaning = row.get("meaning") if row else None
        if meaning:
            because.append(Fact(Source.SYSTEM_LOG, f"Xid {fault.number}: {meaning}"))
        # In a recording the fault must also be this kernel's: by its pid, or of the whole card.
        confidence = Confidence.CERTAIN if seen.pasted is not None else Confidence.LIKELY
        what = f"The GPU {fault.place}"
    return Finding(
        confidence,
        title=f"{what} failed: the card, its memory or its link.",
        short_title="GPU hardware failed",
        because=tuple(because),
        advice=(advice,),
        chips=(f"Xid {fault.number}",) if fault is not None else (),
    )
