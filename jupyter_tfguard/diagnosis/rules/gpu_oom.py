"""The program used up the memory of the GPU."""

from __future__ import annotations

from ... import growth_words as words
from ...batch_place import IN_ARGUMENT, BatchPlace
from ..activity import last_fit
from ..allocator_dump import AllocatorDump, allocator_dump
from ..ending import text_evidence
from ..evidence import Evidence
from ..finding import Advice, Fact, Finding, Source
from ..gpu_oom_lines import LARGEST_BATCH
from ..gpu_shares import alone, share_facts
from ..rule import rule


@rule("gpu_oom", needs=("kernel.recording", "gpu"), outranks=("sys_exit", "segfault_native"))
def gpu_oom(seen: Evidence) -> Finding | None:
    """TensorFlow asked for memory of the GPU, and too little was free.

    TensorFlow's own message says so, often as `ResourceExhaustedError`. The table that its allocator prints shows what was in
    use, what was free, and whether the free memory was in pieces that are too small.
    """
    text = text_evidence(seen, "gpu_oom")
    if text is None:
        return None
    dump, fit = allocator_dump(seen.story.lines), last_fit(seen)
    return Finding(
        text.confidence,
        title="The GPU ran out of memory.",
        short_title="GPU out of memory",
        because=(*text.facts, *_dump_facts(seen, dump), *share_facts(seen)),
        advice=_advice(dump, IN_ARGUMENT if fit is None else fit.batch_place, is_alone=alone(seen)),
        chips=text.chips,
    )


def _dump_facts(seen: Evidence, dump: AllocatorDump) -> tuple[Fact, ...]:
    texts = [f"TensorFlow's allocator: {dump.numbers}"] if dump.numbers else []
    if dump.holders:
        texts.append(f"The largest blocks: {dump.holders_text}")
    source = Source.KERNEL if seen.pasted is None else Source.TEXT
    return tuple(Fact(source, text) for text in texts)


def _advice(dump: AllocatorDump, place: BatchPlace, *, is_alone: bool) -> tuple[Advice, ...]:
    found = []
    others = Advice(
        "Check which other processes hold memory on this card.",
        "Without memory growth, TensorFlow allocates nearly the whole card at its start and leaves nothing for another notebook. "
        f"{words.LIMIT_OPTION} gives each notebook its share.",
        "nvidia-smi",
    )
    if dump.fragmented:
        found.append(
            Advice(
                "Use the driver's own allocator.",
                "Enough memory was free in total, but in blocks that were too small (fragmentation). Memory growth does not help against that. "
                f"Limits: {words.ASYNC_NEEDS}, and {words.ASYNC_NO_CAP}.",
                "TF_GPU_ALLOCATOR=cuda_malloc_async  # in the environment, before the kernel starts",
            )
        )
    elif dump.refused_by_card and not is_alone:
        found.append(others)
    first = dump.shape[0] if dump.shape and len(dump.shape) > 1 else 0
    if 1 < first <= LARGEST_BATCH:
        text = f"The tensor's first dimension is {first}. If that is the batch size, half of it needs about half the memory."
        half = max(1, first // 2)
        code = place.code("fit", half)
        text += "" if code else f" To set it: {place.change('fit', half)}."
        found.append(Advice("Use a smaller batch.", text, code))
    else:
        text = "The outputs of each layer are kept for the whole batch until the gradients are computed."
        found.append(Advice("Use a smaller batch, or a smaller model.", text))
    if others not in found and not is_alone and not dump.fragmented:
        found.append(others)
    text = (
        "They free no tensor that is in use, and TensorFlow returns memory to the card only when its process ends. "
        "clear_session() helps only in a loop that builds a new model each time."
    )
    found.append(Advice("Do not call gc.collect() or clear_session() in the training loop.", text))
    return tuple(found[:3])
