"""Lines of pasted logs: each shows its cause, near misses do not, and what is said about some of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_tfguard.diagnosis.catalog import tomllib
from jupyter_tfguard.diagnosis.finding import Confidence
from tests.rigs.examples import best_of

pytestmark = pytest.mark.quick

LINES = tomllib.loads(Path(__file__).with_name("log_lines.toml").read_text(encoding="utf-8"))
CASES = [(t, cause) for causes in LINES.values() for cause, texts in causes.items() for t in texts]
CUDA_OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 23.64 GiB of which 31.00 MiB is free.\n"
LOADED = "Loading checkpoint shards: 100%|██████████| 6/6 [00:09<00:00,  1.55s/it]\n"
NO_HANDLE = "E0511 09:14:22.130426   20611 cuda_dnn.cc:534] Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR\n"


@pytest.mark.parametrize(("text", "cause"), CASES)
def test_a_text_shows_its_cause_and_a_near_miss_does_not(text: str, cause: str) -> None:
    assert best_of(text).cause == cause


def test_the_part_of_cudnn_that_is_missing_is_named() -> None:
    text = "Unable to load any of {libcudnn_graph.so.9.1.0, libcudnn_graph.so.9}\nInvalid handle. Cannot load symbol cudnnCreate"
    assert best_of(text).title == "A part of cuDNN was not found: libcudnn_graph.so.9.1.0."


def test_free_memory_beside_a_library_that_did_not_start_is_quoted() -> None:
    text = f"{NO_HANDLE}E0511 09:14:22.130458   20611 cuda_dnn.cc:538] Memory usage: 6442450944 bytes free, 8589934592 bytes total."
    assert "6.00 GiB of 8.00 GiB GPU memory was free" in best_of(text).title


def test_who_asked_for_memory_need_not_be_the_victim() -> None:
    best = best_of("kernel: python3 invoked oom-killer: gfp_mask=0xd0, order=0, oom_score_adj=0")
    assert best.confidence is Confidence.LIKELY


def test_a_line_after_a_message_that_always_ends_the_program_is_not_certain_progress() -> None:
    text = "Could not locate zlibwapi.dll. Please make sure it is in your library path!\nEpoch 2/9"
    assert best_of(text).confidence is not Confidence.CERTAIN


def test_the_system_log_alone_shows_the_crash() -> None:
    line = "python3[4711]: segfault at 0 ip 00007f sp 00007f error 4 in libfit.so[7f+1]"
    assert best_of("", line).cause == "segfault_native"
    assert best_of("the kernel died", line).cause == "segfault_native"
    assert best_of("the kernel died", line.replace("python3", "gnome-shell")).cause == "unknown"


def test_an_invalid_signature_is_no_kill_by_an_unknown_sender() -> None:
    best = best_of("EXC_CRASH (SIGKILL (Code Signature Invalid))")
    assert best.cause == "abi_mismatch"
    assert "signature" in best.title
    assert "codesign" in (best.advice[0].code or "")


def test_a_missing_zlib_is_not_a_wrong_cudnn() -> None:
    best = best_of("Could not locate zlibwapi.dll. Please make sure it is in your library path!")
    assert best.advice[0].title.startswith("Put zlibwapi.dll")
    assert not any("tensorflow[and-cuda]" in (advice.code or "") for advice in best.advice)


def test_a_text_that_ends_inside_a_traceback_is_no_success() -> None:
    hint = "RTX 3070 with CUDA capability sm_86 is not compatible with the current PyTorch installation."
    cut = 'Traceback (most recent call last):\n  File "fit.py", line 7, in <module>\n    step()'
    assert best_of(f"{hint}\n{cut}").cause == "gpu_arch_unsupported"
    assert best_of(f"WARNING:tensorflow:slow\n{cut}").cause == "unknown"
    assert best_of(f"Epoch 2/9\n{cut}").cause == "unknown"
    assert best_of(f"{hint}\nEpoch 2/9\n9/9 - 1s - loss: 0.1").cause == "no_crash"


def test_the_log_of_the_system_names_the_program_on_an_amd_gpu() -> None:
    line = "amdgpu 0000:03:00.0: amdgpu:  Process NAME pid 4711 thread NAME pid 4711"
    assert best_of("Epoch 1/2", line.replace("NAME", "ipython")).cause == "cuda_illegal_access"
    assert best_of("Epoch 1/2", line.replace("NAME", "firefox")).cause != "cuda_illegal_access"


def test_a_worker_without_memory_and_a_bar_that_is_cut_off_are_not_certain() -> None:
    text = "OSError: [WinError 1455] x\nscan:  97%|█████████▊| 873/900 [00:01<00:01, 9.1it/s]\nEpoch 1/2\n9/9 - loss: 0.2"
    best = best_of(text)
    assert (best.cause, best.confidence) != ("cpu_alloc_failure", Confidence.CERTAIN)


def test_a_sentence_about_a_signal_is_not_certain() -> None:
    best = best_of("The helper is removed once the worker gets SIGKILL from the pool")
    assert best.confidence is not Confidence.CERTAIN
    assert best_of("Signal 9 (SIGKILL) received by PID 811").confidence is Confidence.CERTAIN
    assert best_of("exited due to signal SIGKILL").confidence is Confidence.CERTAIN


@pytest.mark.parametrize(
    "after",
    [
        "Epoch 2:  42%|####      | 42/100 [03:10<04:33, 1.08it/s, loss=0.3]",
        "100%|██████████| 4/4 [00:15<00:00,  3.85s/it]",
        "step 900: loss 0.2",
    ],
)
def test_steps_after_an_exception_may_be_of_another_process(after: str) -> None:
    text = f"{CUDA_OOM}step 899: loss 0.2\n{after}"
    assert best_of(text).confidence is not Confidence.CERTAIN


def test_an_error_that_the_program_handled_is_certainly_no_crash() -> None:
    text = f"CUDA out of memory. Tried to allocate 2.00 GiB, skipping this length\n{LOADED}step 9: loss 0.2"
    best = best_of(text)
    assert (best.cause, best.confidence) == ("no_crash", Confidence.CERTAIN)


def test_the_last_activity_is_named() -> None:
    best = best_of("Culling server for user-7 (inactive since 2026-01-01 05:12:44.318000)")
    assert "since 2026-01-01 05:12" in best.title


def test_the_library_of_the_driver_comes_with_the_driver() -> None:
    best = best_of("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.")
    assert "driver" in best.advice[0].title
