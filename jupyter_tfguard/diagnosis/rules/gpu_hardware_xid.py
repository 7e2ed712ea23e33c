"""The card, its memory or its link failed, according to the driver: a hardware Xid, or an error that only hardware causes.

Source: NVIDIA's Xid catalogue, in ``catalog/xid.toml``. Xid 45 reports clean-up and is never a cause.
"""

from __future__ import annotations

from ..ending import text_evidence
from ..evidence import Evidence
from ..finding import Advice, Confidence, Fact, Finding, Source
from ..gpu_shares import share_facts, used_cards
from ..gpus import Gpu
from ..rule import CONSEQUENCES_OF_A_KILL, rule
from ..verdict import gave_up
from ..xid import HARDWARE, card_of, first_xid, xid_fact, xid_row

_HOT_SECONDS = 60.0
_ORDER = "Reset the card, or restart the machine. If it happens again, have the card checked."


@rule(
    "gpu_hardware_xid",
    needs=("system_log", "gpu"),
    outranks=("cuda_illegal_access", *CONSEQUENCES_OF_A_KILL),
)
def gpu_hardware_xid(seen: Evidence) -> Finding | None:
    """The graphics card, its memory or its link to the machine failed. The program is not the cause.

    The NVIDIA driver logged a fault (Xid) that hardware causes, the card vanished from the bus, or CUDA reported an error that
    only hardware makes. In a recording, the fault must belong to this kernel's process or to its card. Xid 45 reports clean-up
    after another fault and is never the cause.
    """
    text = text_evidence(seen, "gpu_hardware_xid")
    fault = first_xid(seen, HARDWARE)
    lost = _lost_card(seen) if fault is None else None
    if text is None and fault is None and lost is None:
        return None
    because = list(text.facts) if text is not None else []
    confidence = text.confidence if text is not None else Confidence.LIKELY
    card, what, order = lost, "The GPU", _ORDER
    if fault is not None:
        card, row = card_of(seen, fault), xid_row(fault.number) or {}
        source = Source.SERVER if fault.is_event else Source.SYSTEM_LOG
        because.insert(0, xid_fact(fault))
        if meaning := row.get("meaning"):
            because.append(Fact(source, f"Xid {fault.number}: {meaning}"))
        # In a recording the fault must also belong to this kernel: by its pid, or because it affects the whole card.
        confidence = Confidence.CERTAIN if seen.pasted is not None else Confidence.LIKELY
        what, order = f"The GPU {fault.place}", row.get("advice") or _ORDER
    if card is not None:
        what = card.title
        because += _card_facts(seen, card)
    advice = Advice(
        order,
        "Besides the card itself, the usual causes are its power supply, cooling and slot. "
        "https://docs.nvidia.com/deploy/xid-errors/",
        "nvidia-smi -q -d ECC,ROW_REMAPPER,TEMPERATURE,POWER",
    )
    hot = _heat_fact(seen, card) if card is not None else None
    if hot is not None:
        because.append(hot)
        advice = Advice(
            "Check the cooling of the card first: dust, fans, space between cards.",
            advice.text,
            advice.code,
        )
    return Finding(
        confidence,
        title=f"{what} failed: the card, its memory or its link.",
        short_title="GPU hardware failed",
        because=tuple(because),
        advice=(advice,),
        chips=(f"Xid {fault.number}",) if fault is not None else (),
    )


def _card_facts(seen: Evidence, card: Gpu) -> list[Fact]:
    """The facts that the card is gone, and that this kernel used it."""
    facts = list(share_facts(seen)[:1]) if used_cards(seen) == [card] else []
    if card.lost and gave_up(seen):
        text = f"After the crash, the driver could no longer reach {card.title}: it is lost from the bus"
        facts.insert(0, Fact(Source.SERVER, text))
    return facts


def _lost_card(seen: Evidence) -> Gpu | None:
    """The card that this kernel used and that the driver reports as lost; None for none."""
    if not gave_up(seen):
        return None
    return next((gpu for gpu in seen.gpus if gpu.lost and _used(seen, gpu)), None)


def _used(seen: Evidence, gpu: Gpu) -> bool:
    """True for a card that this kernel used; if that is not visible, for the only card."""
    held = gpu.holds(seen.pid, seen.identity.get("kernel_id"))
    return bool(held) or (held is None and len(seen.gpus) == 1)


def _heat_fact(seen: Evidence, gpu: Gpu) -> Fact | None:
    """How hot the card was in the last minute; None if it was not hot, or not known."""
    last = [
        t for when, t in gpu.series("temperature_celsius") if 0 <= seen.died - when < _HOT_SECONDS
    ]
    limit = gpu.slowdown_celsius
    if not last or limit is None or max(last) < limit:
        return None
    text = (
        f"{gpu.title} was at {max(last):.0f} °C in its last minute; it throttles at {limit:.0f} °C"
    )
    if gpu.shutdown_celsius is not None:
        text += f" and shuts down at {gpu.shutdown_celsius:.0f} °C"
    return Fact(Source.SERVER, text)
