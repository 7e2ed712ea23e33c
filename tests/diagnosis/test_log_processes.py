"""Logs of several processes, launchers, hubs and batch systems: shapes of each kind, and near misses."""

from __future__ import annotations

import pytest

from jupyter_tfguard.diagnosis.diagnose import explain
from jupyter_tfguard.diagnosis.finding import Confidence, Finding
from jupyter_tfguard.diagnosis.pasted import Pasted

pytestmark = pytest.mark.quick

CUDA_OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 23.64 GiB of which 31.00 MiB is free.\n"
LOADED = "Loading checkpoint shards: 100%|██████████| 6/6 [00:09<00:00,  1.55s/it]\n"
NUMPY = "A module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.1.3 as it may crash. To support both 1.x and 2.x\nversions of NumPy, modules must be compiled with NumPy 2.0.\n"
STACK = 'Traceback (most recent call last):  File "<frozen runpy>", line 198, in _run_module_as_main\n  File "/lab/ipykernel_launcher.py", line 18, in <module>\n    app.launch_new_instance()\n'
RECORD = "2026-01-02 03:04:05.1: E xla/stream_executor/cuda/cuda_driver.cc:628] "
SACCT = "JobID|NodeList|State|ExitCode\n77|lab-3|{state}|{code}\n77.batch|lab-3|{state}|{code}\n77.extern|lab-3|COMPLETED|0:0"


def best_of(text: str) -> Finding:
    return explain(Pasted(text)).best


KINDS = {
    # Bars of other processes follow the error.
    "gpu_oom": [
        CUDA_OOM + LOADED * 3,
        f"[rank2]: {CUDA_OOM}Fetching weights: 100% 4/4 [00:01<00:00, 3.1it/s]",
        f"{LOADED}{CUDA_OOM}{LOADED}srun: error: lab-3: tasks 0-3: Exited with exit code 1",
        f"Epoch 1:  40%|####      | 40/100 [00:10<00:15, 4.0it/s, loss=0.3]\n{CUDA_OOM}{LOADED}",
        f"{CUDA_OOM}Map (num_proc=4): 100%|####| 400/400 [00:01<00:00, 300.10 examples/s]",
        f"{CUDA_OOM}Generating train split: 100%|####| 400/400 [00:01<00:00, 300.10it/s]",
        f"{CUDA_OOM}Loading model ... 100%",
        "RuntimeError: cublas runtime error : resource allocation failed at /lab/THC/THCGeneral.cpp:250",
        "PxgCudaDeviceMemoryAllocator fail to allocate memory 268435456 bytes!! Result = 2\nPxgNarrowphaseCore.cpp (2155) : internal error : memcpy failed fail! 2  700",
    ],
    "abi_mismatch": [
        f"{NUMPY}{STACK}",
        f'{NUMPY}{STACK}  File "/lab/traitlets/config/application.py", line 1075, in launch_instance\n    app.start()\n',
        f"ImportError                 Traceback (most recent call last)\nFile ~/lab/numpy/core/_multiarray_umath.py:44, in __getattr__(attr_name)\n     43     sys.stderr.write(msg)\n\nImportError: \n{NUMPY}",
        f"ImportError:\n{NUMPY}",
    ],
    "kernel_start_failed": [
        'Traceback (most recent call last):\n  File "/lab/ipykernel_launcher.py", line 18, in <module>\n    app.launch_new_instance()\n  File "/lab/traitlets/config/application.py", line 1074, in launch_instance\n    app.initialize(argv)\nOSError: no such address',
    ],
    "sigkill_unattributed": [
        "[2026-01-02 03:04:05,650] [ERROR] [launch.py:320:sigkill_handler] ['/lab/python', '-u', 'fit.py'] exits with return code = -9",
        "'--log_path', './logs/'\n] exits with return code = -9",
        "  exitcode  : -9 (pid: 4711)",
        "RuntimeError:Dataloader worker (pid 81) is killed by signal:killed",
        "RuntimeError: DataLoader worker (pid 81) is killed by signal: killed.",
        "# Killed111/111",
        "the worker was killed by signal:9",
    ],
    "segfault_native": ["['python', 'fit.py'] exits with return code = -11"],
    "illegal_instruction": ["['python', 'fit.py'] exits with return code = -4"],
    "terminated_by_user_or_manager": [
        "Epoch 1/9\n 54/900 [....] - ETA: 3:42 - loss: 2.4\n\nKeyboardInterruptTraceback (most recent call last)\n<ipython-input-4> in <module>()",
        "Your notebook has been stopped by your request. Please wait.",
        SACCT.format(state="CANCELLED by 1001", code="0:15"),
        SACCT.format(state="TIMEOUT", code="0:0"),
        "77|fit|TIMEOUT|01:00:00|0:0",
        "77|fit|CANCELLED by 1001|00:10:00|0:15",
        "77        fit   gpu  lab  4  CANCELLED+      0:0\n77.batch  batch      lab  4  CANCELLED     0:15\n77.extern extern     lab  4  COMPLETED      0:0",
    ],
    "cgroup_oom": [SACCT.format(state="OUT_OF_MEMORY", code="0:125")],
    "cpu_alloc_failure": [f"MemoryError\n{LOADED}", "MemoryErrorTraceback (most recent call last)\n<ipython-input-4> in <module>()"],
    "culled": [
        "[I 260102 01:23:21 cull_idle_servers:67] Culling server for user-7 (inactive since 2026-01-01 05:12:44.318000)\n[I 2026-01-02 02:31:14.605 JupyterHub proxy:254] Removing user user-7 from proxy (/user/user-7/)",
        "Culling server user-7 (inactive for 01:00:10)",
    ],
    "cuda_library_missing": ["NVIDIA-SMI couldn't find libnvidia-ml.so library in your system."],
    "gpu_arch_unsupported": [
        f'{RECORD}failed to get PTX kernel "add_1" from module: CUDA_ERROR_NOT_FOUND: named symbol not found',
        "".join(
            f"I0102 03:04:05.341448 139724501083904 run_it.py:258] {line}\n"
            for line in (f'{RECORD}failed to get PTX kernel "add_1" from module: CUDA_ERROR_NOT_FOUND: named symbol not found', "Traceback (most recent call last):", 'File "/lab/fit.py", line 9, in <module>', "app.run(main)")
        ),
    ],
    "cuda_illegal_access": [
        "RuntimeError: cublas runtime error : the GPU program failed to execute at /lab/THC/THCBlas.cu:258",
    ],
    "unknown": [
        f"ValueError: the third file is empty\n{LOADED}",
        "['python', 'fit.py'] exits with return code = 1",
        "['python', 'fit.py'] exits with return code = -6",
        # near misses
        "steps = -9",
        "Killed 3 of 111",
        "PxgCudaDeviceMemoryAllocator fail to allocate memory 268435456 bytes!! Result = 700",
        "User user-7: the culler is off; Culling server is a feature",
        "Not culling server user-7, inactive since Monday",
        "failed to get PTX kernel: see the manual",
        "the job was not CANCELLED",
        "a gap in the signal: 9.5 s",
        "CANCELLED|soon",
        f"{NUMPY}rows: 3\nValueError: the third file is empty",
    ],
    "no_crash": [
        f"{CUDA_OOM}Epoch 2:  41%|####      | 41/100 [03:10<04:33, 1.08it/s, loss=0.3]\nEpoch 2:  42%|####      | 42/100 [03:10<04:33, 1.08it/s, loss=0.3]",
        "CUDA out of memory. Tried to allocate 2.00 GiB, skipping this length\nLoading the next file: 100%|###| 4/4 [00:01<00:00, 3.1it/s]",
        "exits with return code = 0\nsaved the model",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "cause"), [(text, cause) for cause, texts in KINDS.items() for text in texts]
)
def test_a_kind_of_log_and_its_near_misses(text: str, cause: str) -> None:
    assert best_of(text).cause == cause


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
