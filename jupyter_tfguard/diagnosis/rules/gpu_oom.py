"""The program used up the memory of the GPU."""

from __future__ import annotations

from ... import growth_texts as words
from ...batch_place import IN_ARGUMENT, BatchPlace
from ...units import human_bytes
from ..activity import last_fit
from ..allocator_dump import AllocatorDump, allocator_dump
from ..catalog import toml_file
from ..ending import text_evidence
from ..evidence import Evidence
from ..finding import Advice, Fact, Finding, Source
from ..frameworks import TENSORFLOW, framework_of
from ..gpu_numbers import GpuNumbers, gpu_numbers
from ..gpu_oom_lines import LARGEST_BATCH
from ..gpu_shares import alone, share_facts
from ..rule import rule

_MOST = 3
# Messages of TensorFlow alone. The second kind means that a library could not start when the first step needed it.
_AT_THE_FIRST_STEP = {
    "handle-not-created",
    "library-did-not-start",
    "no-blas",
    "no-algorithm-worked",
}
_OF_TENSORFLOW = {"tf-oom-device", "bfc-gpu-ran-out", "dst-tensor", *_AT_THE_FIRST_STEP}
_NO_NVIDIA = ("tpu", "mps", "mlx", "apple")
_GROWTH = Advice(
    "Turn on memory growth.",
    "TensorFlow then takes memory of the card as it needs it, and leaves room for cuDNN, cuBLAS and other programs. This cures errors at the "
    "first step when the model itself would fit. jupyter-tfguard turns it on in every kernel.",
    "TF_FORCE_GPU_ALLOW_GROWTH=true  # in the environment, before TensorFlow starts",
)


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
    place = IN_ARGUMENT if fit is None else fit.batch_place
    advice = _advice(dump, place, is_alone=alone(seen))
    title = "The GPU ran out of memory."
    sign = seen.verdict.sign if seen.verdict is not None else None
    if seen.pasted is not None and sign is not None:
        numbers = gpu_numbers(seen.story.lines, sign.index)
        if not numbers.text:  # the allocator's own line comes first
            numbers = gpu_numbers(seen.story.lines, max(0, sign.index - 2))
        framework = framework_of(seen.story.lines, sign.index)
        if dict(sign.details).get("card") == "Apple" and framework not in _NO_NVIDIA:
            framework = "apple"
        card = "TPU" if framework == "tpu" else "GPU"
        title = f"The {card} ran out of memory" + (f": {numbers.text}." if numbers.text else ".")
        messages = {sign.row.id, *(other.row.id for other in seen.story.signs)}
        advice = _pasted_advice(framework, messages, numbers, advice, dump)
    return Finding(
        text.confidence,
        title=title,
        short_title="GPU out of memory",
        because=(*text.facts, *_dump_facts(seen, dump), *share_facts(seen)),
        advice=advice,
        chips=text.chips,
    )


def _pasted_advice(
    framework: str | None,
    messages: set[str],
    numbers: GpuNumbers,
    of_tensorflow: tuple[Advice, ...],
    dump: AllocatorDump,
) -> tuple[Advice, ...]:
    """Advice for the framework that the log is from; with memory growth, if it is TensorFlow's."""
    found: list[Advice] = []
    if framework == TENSORFLOW or (framework is None and messages & _OF_TENSORFLOW):
        if messages & _AT_THE_FIRST_STEP:
            found = [_GROWTH, *of_tensorflow[:2]]
        elif dump.fragmented:
            found = list(of_tensorflow)
        else:
            found = [*of_tensorflow[:2], _GROWTH]
        return tuple(found[:_MOST])
    for pid, size in numbers.holders:
        if numbers.total and size >= numbers.total / 2:
            text = "If it is not this program itself, stop it, or wait for it. In a container the number may be that of this program."
            found.append(Advice(f"Check process {pid}: it held {human_bytes(size)}.", text))
    found += [
        Advice(row["title"], row.get("text", ""), row.get("code"))
        for row in toml_file(__package__, "gpu_memory")["advice"]
        if framework in row["framework"]
    ]
    if numbers.spare and numbers.asked and numbers.spare > numbers.asked:
        text = f"{human_bytes(numbers.spare)} was reserved but not in use, in pieces that were too small."
        code = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True  # in the environment, before the kernel starts"
        found.insert(0, Advice("Let PyTorch's allocator extend its blocks.", text, code))
    if len(found) < _MOST and framework not in _NO_NVIDIA:
        text = "A notebook keeps its GPU memory until its kernel ends, even when no cell runs."
        tool = {"rocm": "rocm-smi --showpids", "xpu": "xpu-smi ps"}.get(
            framework or "", "nvidia-smi"
        )
        found.append(Advice("Check which other processes hold memory on this card.", text, tool))
    if framework is None:
        text = "The outputs of each layer are kept for the whole batch until the gradients are computed."
        found.insert(0, Advice("Use a smaller batch, or a smaller model.", text))
    return tuple(found[:_MOST])


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
