"""Pasted logs: each example tells its cause, near misses do not, and messy input is normal."""

from __future__ import annotations

import json
import random

import pytest

from jupyter_tfguard.diagnosis.diagnose import explain
from jupyter_tfguard.diagnosis.exit_status import exit_status, passed_on_signal
from jupyter_tfguard.diagnosis.finding import Confidence
from jupyter_tfguard.diagnosis.log_lines import log_lines
from jupyter_tfguard.diagnosis.pasted import Pasted
from tests.rigs.examples import EXAMPLES, TextExample, best_of, text_examples

pytestmark = pytest.mark.quick


def example(path: str) -> Pasted:
    return TextExample("", "", EXAMPLES / path).pasted


@pytest.mark.parametrize("case", text_examples("fires"), ids=str)
def test_the_text_reports_its_cause(case: TextExample) -> None:
    best = explain(case.pasted).best
    assert best.cause == case.cause
    assert best.title.endswith(".")
    assert best.because or case.pasted.status


@pytest.mark.parametrize("case", text_examples("quiet"), ids=str)
def test_a_near_miss_in_a_text_does_not_fire(case: TextExample) -> None:
    assert case.cause not in [finding.cause for finding in explain(case.pasted).findings]


def test_evidence_names_its_line() -> None:
    (first, *_) = explain(
        example("cudnn_version_mismatch/fires-a-part-is-missing.txt")
    ).best.because
    assert first.line == 2
    assert "libcudnn_cnn_infer" in first.text


def test_numbers_of_this_run_are_in_the_answer() -> None:
    best = explain(example("cudnn_version_mismatch/fires-older-than-the-build.txt")).best
    assert "8.0.5" in best.title
    assert "8.1.0" in best.title
    best = explain(example("gpu_oom/fires-glued-to-a-progress-bar.txt")).best
    assert "784 MiB" in " ".join(fact.text for fact in best.because)
    assert best.advice[0].code == "model.fit(..., batch_size=128)"


def test_the_older_of_numpy_and_module_is_to_be_upgraded() -> None:
    line = "RuntimeError: module compiled against ABI version {} but this version of numpy is {}"
    older = best_of(line.format("0x2000000", "0x1000009")).advice[0]
    assert older.code == "python -m pip install --upgrade numpy"
    newer = best_of(line.format("0x1000009", "0x2000000")).advice[0]
    assert "numpy<2" in (newer.code or "")


WRAPPINGS = {
    "as it was": lambda text: text,
    "quoted": lambda text: "\n".join(f"> {line}" for line in text.split("\n")),
    "commented": lambda text: "\n".join(f"    # {line}" for line in text.split("\n")),
    "coloured": lambda text: "\n".join(f"\x1b[31m{line}\x1b[0m" for line in text.split("\n")),
    "windows": lambda text: text.replace("\n", "\r\n"),
    "html": lambda text: text.replace("&", "&amp;").replace("<", "&lt;").replace("'", "&#39;"),
    "after a progress bar": lambda text: f"3/9 [==>...] - ETA: 1s - loss: 0.12{text}",
    "begun late": lambda text: f"ter than 11.1. ptxas before\n{text}",
    "with words around": lambda text: f"Hallo zusammen, mein Kernel stirbt:\n\n```\n{text}\n```\nWas tun?",
}  # fmt: skip
MARKS = [
    "2026-05-05 10:00:00,123 - train - ERROR - ", "2026-05-05 10:00:00 ", "2026-05-05T10:00:00.123456789Z stderr F ", "10:00:00 ", "[10:00:00] ",
    "[2026-05-05, 10:00:00 UTC] {subprocess.py:93} INFO - ", "notebook_1    | ", "trainer-1  | ", "0: ", "[1,mpirank:0,algo-1]<stderr>:", "[stderr] ",
    "  12  ", "May 05 10:00:00 lab python3[4711]: ", "\t", "// ",
]  # fmt: skip
MESSY = [
    "cuda_illegal_access/fires-wrapped-in-a-check.txt",
    "cudnn_version_mismatch/fires-older-than-the-build.txt",
    "tf_check_failed/fires-non-ok-status.txt",
]


@pytest.mark.parametrize("wrapping", WRAPPINGS)
@pytest.mark.parametrize("path", MESSY)
def test_wrapping_changes_no_cause(path: str, wrapping: str) -> None:
    pasted = example(path)
    assert best_of(WRAPPINGS[wrapping](pasted.text)).cause == path.split("/")[0]


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize(
    "path", [*MESSY, "gpu_oom/fires-received-tensor.txt", "illegal_instruction/fires-qemu.txt"]
)
def test_a_mark_before_every_line_changes_no_cause(path: str, mark: str) -> None:
    marked = "\n".join(f"{mark}{line}" for line in example(path).text.split("\n"))
    assert best_of(marked).cause == path.split("/")[0]
    assert best_of(f"{mark}Epoch 2/9\n{mark}Killed").cause == "sigkill_unattributed"


@pytest.mark.parametrize("beside", [{"stream": "stderr", "time": "2026-05-05T10:00:00Z"}, {}])
def test_a_json_object_around_every_line_changes_no_cause(beside: dict[str, str]) -> None:
    texts = ["Epoch 2/9", "Killed"]
    lines = [json.dumps({"log": f"{text}\n", **beside}) for text in texts]
    assert best_of("\n".join(lines)).cause == "sigkill_unattributed"
    assert best_of('{"message": "Killed", "other": 1}').cause == "unknown"
    assert best_of('{"message": 137}\n{"message": }').cause == "unknown"


def test_a_mark_before_some_lines_stays() -> None:
    lines = ["10:00:00 Epoch 2/9", "0: saved", "12:00:00 Epoch 3/9"]
    assert [line.text for line in log_lines("\n".join(lines))] == lines


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("rest", ["library: 5005 (version 5000)", " version 5000) but", "y (shm)."])
def test_the_rest_of_a_cut_line_may_look_like_a_name_or_begin_with_a_space(
    rest: str, width: int
) -> None:
    end = " " if rest.startswith("library") else "a"
    assert len(log_lines(f"{'x' * (width - 1)}{end}\n{rest}\n")) == 1


@pytest.mark.parametrize(
    "line",
    [
        "bash: line 1: 4711 done",
        "python3: can't open file",
        "RuntimeError: no",
        "srun: error: lab-1",
    ],
)
def test_a_line_of_another_program_is_not_joined_to_a_full_line(line: str) -> None:
    assert len(log_lines(f"{'x' * 80}\n{line}")) == 2


AROUND = {
    "noise at the start": lambda text: f"{NOISE}{text}",
    "a bar of Keras": lambda text: f"{NOISE} 3/20 ━━━━━━━━━━ 1s 12ms/step - loss: 0.9123{text}",
    "a bar of tqdm": lambda text: f" 15%|█▌   | 3/20 [00:01<00:08, 2.00it/s, loss=0.9]{text}",
    "an old bar": lambda text: f" 3/20 [===>..........] - ETA: 4s - loss: 0.9123{text}",
    "an exported output": lambda text: "\n".join(
        f"    {line}" for line in f"Epoch 1/2\n{text}".split("\n")
    ),
    "a restart": lambda text: (
        f"{text}\nAsyncIOLoopKernelRestarter: restarting kernel (1/5), keep random ports"
    ),
    "stamps": lambda text: "\n".join(
        f"2026-05-05T10:00:00.123Z {line}" for line in text.split("\n")
    ),
    "containers": lambda text: "\n".join(f"trainer-1  | {line}" for line in text.split("\n")),
    "ranks": lambda text: "\n".join(f"[rank0]: {line}" for line in text.split("\n")),
    "a journal": lambda text: "\n".join(
        f"May 05 10:00:00 lab jupyter[811]: {line}" for line in text.split("\n")
    ),
    "a question": lambda text: f"Hi all, this is what I see:\n```\n{text}\n```\nAny idea? Thanks!",
    "Ray": lambda text: "\n".join(f"(fit pid=4711) {line}" for line in text.split("\n")),
}
NOISE = """2026-05-05 10:00:00.1: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on.
2026-05-05 10:00:00.2: E xla/stream_executor/cuda/cuda_dnn.cc:8454] Unable to register cuDNN factory: Attempting to register factory for
Epoch 1/9
20/20 ━━━━━━━━━━ 1s 12ms/step - loss: 0.9
"""
# Two bars or two indentations in one line, and a sentence that is one only at the start of a line.
NOT_TWICE = {
    "cuda_illegal_access/fires-device-assertion-behind-a-bar",
    "segfault_native/fires-a-handler-that-exits",
    "terminated_by_user_or_manager/fires-in-an-indented-export",
}


@pytest.mark.parametrize("around", AROUND)
def test_no_example_changes_its_cause_in_other_surroundings(around: str) -> None:
    changed = []
    for case in text_examples("fires"):
        if case.cause in ("no_crash", "unknown") or str(case) in NOT_TWICE:
            continue
        pasted = case.pasted
        best = explain(Pasted(AROUND[around](pasted.text), pasted.kernel_log, pasted.status)).best
        changed += [] if best.cause == case.cause else [f"{case}: {best.cause}"]
    assert not changed


BARS = [
    "Processing |████████████▌       | ▅▃▁ 512/1200 [43%] in 12s (41.2/s, eta: 16s) ",
    "  [################--------------------]   44%  00:01:12",
    "|███████-----| 61.02% [188/308 00:41<00:26 0.6123]",
    "Training |################                | 160/320",
    "112:\tlearn: 0.4412\ttotal: 12.1s\tremaining: 1m 35s",
    "[44]\tvalidation_0-logloss:0.39211",
    "{'loss': 0.2, 'epoch': 0.4}",
    "model.h5  44%[=======>      ] 112.1M  10MB/s eta 12s",
    "     ━━━━━━━━━━╸━━━━━━━━━━━━━━ 1.2/3.1 MB 2.1 MB/s eta 0:00:01",
    ".....",
    "Episode 340 reward 12.1",
    "Trial 4 Complete [00h 01m 12s]",
    "Epoch 3 | loss 0.22 | 4.1 it/s ",
    "100/500 [=====>........................] - 12s 20ms/step",
    "Batch 12/400 (3%) Loss: 1.2",
]
ENDS = {
    "Killed": "sigkill_unattributed",
    "Terminated": "terminated_by_user_or_manager",
    "Segmentation fault (core dumped)": "segfault_native",
    "zsh: killed     python a.py": "sigkill_unattributed",
    "run.sh: line 4:  871 Killed                  python a.py": "sigkill_unattributed",
    "MemoryError": "cpu_alloc_failure",
    "KeyboardInterrupt": "terminated_by_user_or_manager",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.": "gpu_oom",
    "free(): invalid pointer": "glibc_abort_heap_corruption",
    "OSError: [Errno 28] No space left on device": "disk_full",
    'Traceback (most recent call last):\n  File "a.py", line 1\nMemoryError': "cpu_alloc_failure",
}


@pytest.mark.parametrize("bar", BARS)
def test_an_end_on_the_line_of_any_programs_bar_is_seen(bar: str) -> None:
    found = {end: best_of(f"Epoch 1/3\n{bar}{end}").cause for end in ENDS}
    assert found == ENDS


@pytest.mark.parametrize(
    "line",
    ["S3UploadFailedError: no such bucket", "json.decoder.JSONDecodeError: Expecting value", "Http404Error: x", "all jobs were Killed by 3"],
)  # fmt: skip
def test_a_name_with_a_digit_or_a_dot_is_not_cut(line: str) -> None:
    assert [found.text for found in log_lines(line)] == [line]


def test_json_of_a_notebook_changes_no_cause() -> None:

    text = example(MESSY[0]).text
    wrapped = ",\n".join(f"    {json.dumps(line + chr(10))}" for line in text.split("\n"))
    assert best_of(wrapped).cause == "cuda_illegal_access"


@pytest.mark.parametrize(
    "name", ["cgroup_oom/fires-grid-engine", "sigkill_unattributed/fires-behind-a-keras-bar"]
)
def test_quotes_and_bars_in_the_json_of_a_notebook_are_read(name: str) -> None:
    lines = example(f"{name}.txt").text.split("\n")
    wrapped = ",\n".join(f"    {json.dumps(line + chr(10))}" for line in lines)
    assert best_of(wrapped).cause == name.split("/")[0]


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize(
    "name",
    ["cpu_alloc_failure/fires-oom-on-the-cpu-device", "memory_daemon/fires-ray", "abi_mismatch/fires-two-protobuf-copies", "gpu_oom/fires-received-tensor"],
)  # fmt: skip
def test_a_terminal_that_cut_lines_changes_no_cause(name: str, width: int) -> None:
    lines = example(f"{name}.txt").text.split("\n")
    cut = [line[at : at + width] for line in lines for at in range(0, max(1, len(line)), width)]
    assert best_of("\n".join(cut)).cause == name.split("/")[0]


def test_a_line_that_happens_to_fill_a_terminal_is_not_joined() -> None:
    lines = ["x" * 80, "Killed"]
    assert [line.text for line in log_lines("\n".join(lines))] == lines


def test_progress_after_an_alarming_line_acquits_it() -> None:
    text = example("cuda_illegal_access/fires-wrapped-in-a-check.txt").text.split("\n")[0]
    assert best_of(text).cause == "cuda_illegal_access"
    assert best_of(f"{text}\nEpoch 7/9\n10/10 - 1s 80ms/step - loss: 0.1").cause == "no_crash"


def test_the_first_error_explains_the_rest() -> None:
    oom = example("gpu_oom/fires-glued-to-a-progress-bar.txt").text
    text = f"{oom}\nterminate called without an active exception\nAborted (core dumped)\nKernel Restarting"
    assert best_of(text).cause == "gpu_oom"


KILL = "[7.1] Out of memory: Killed process 4711 (python3) total-vm:9kB, anon-rss:8kB, file-rss:0kB"


@pytest.mark.parametrize(
    ("text", "confidence"),
    [
        ("", Confidence.CERTAIN),
        ("MemoryError\nrun.sh: line 3: 4711 Killed    python train.py", Confidence.CERTAIN),
        ("MemoryError\nKilled", Confidence.LIKELY),
        ("MemoryError in step 4711\nKilled", Confidence.LIKELY),
    ],
)
def test_a_kill_in_the_system_log_is_certain_only_where_the_text_names_its_process(
    text: str, confidence: Confidence
) -> None:
    best = best_of(text, KILL)
    assert (best.cause, best.confidence) == ("host_oom", confidence)


def test_a_kill_that_is_wrapped_before_its_name_does_not_name_the_logs_own_process() -> None:
    best = best_of(
        "Killed\nOut of memory: Killed process 4711\n(python3) total-vm:9kB, anon-rss:8kB"
    )
    assert (best.cause, best.confidence) == ("host_oom", Confidence.LIKELY)


def test_the_last_step_of_an_epoch_is_no_certain_end() -> None:
    best = best_of("Epoch 3/10\n938/938 - loss: 0.2")
    assert (best.cause, best.confidence) == ("no_crash", Confidence.LIKELY)


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        ({"code": 137}, "sigkill_unattributed"),
        ({"signal": "kill"}, "sigkill_unattributed"),
        ({"code": 139}, "segfault_native"),
        ({"code": 3221225477}, "segfault_native"),
        ({"signal": "SIGTERM"}, "terminated_by_user_or_manager"),
        ({"code": 3}, "sys_exit"),
        ({"code": 138}, "unknown"),
        ({"code": 0}, "unknown"),
    ],
)
def test_an_exit_status_alone_says_little(status: dict[str, object], cause: str) -> None:
    best = best_of("", **status)
    assert best.cause == cause
    assert best.confidence is not Confidence.CERTAIN


def test_an_unknown_signal_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="SIGKILL"):
        exit_status(signal="SIGNOPE")


def test_any_bytes_in_a_sentence_out() -> None:
    rng = random.Random(7)
    words = [line for case in text_examples("fires") for line in case.pasted.text.split("\n")]
    for _ in range(300):
        parts = [rng.choice(words)[rng.randrange(40) :] for _ in range(rng.randrange(6))]
        noise = bytes(rng.randrange(256) for _ in range(rng.randrange(200))).decode("latin-1")
        text = noise.join(parts) + rng.choice(["", "\x00", "\u202e", "{" * 500, '"\\'])
        best = best_of(text, noise)
        assert best.title
        assert best.cause


@pytest.mark.parametrize(
    ("code", "name"),
    [(137, "SIGKILL"), (143, "SIGTERM"), (247, "SIGKILL"), (250, "SIGABRT")],
)
def test_programs_around_pass_a_signal_on_as_a_code(code: int, name: str) -> None:
    assert passed_on_signal(code) == name


@pytest.mark.parametrize("code", [0, 1, 127, 128, 192, 240, 255])
def test_other_codes_mean_no_signal(code: int) -> None:
    assert passed_on_signal(code) is None
