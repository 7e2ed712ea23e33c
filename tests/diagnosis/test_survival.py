"""Logs without a failure: which show that nothing ended the program, and which show only its last step."""

from __future__ import annotations

import pytest

from jupyter_tfguard.diagnosis.diagnose import explain
from jupyter_tfguard.diagnosis.finding import Confidence, Finding
from jupyter_tfguard.diagnosis.pasted import Pasted

pytestmark = pytest.mark.quick

START = "2026-01-02 03:04:05.1: I tensorflow/stream_executor/platform/default/dso_loader.cc:44] Successfully opened dynamic library cublas64_100.dll\n"
NOISE = "E0000 00:00:1763690000.1 4711 cuda_dnn.cc:8310] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered\n"
RETRY = "2026-01-02 03:04:05.1: W tensorflow/core/common_runtime/bfc_allocator.cc:237] Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.15GiB with freed_by_count=0. "
LARGE = "2026-01-02 03:04:05.1: W tensorflow/core/framework/cpu_allocator_impl.cc:81] Allocation of 6442450944 exceeds 10% of system memory.\n"


def best_of(text: str) -> Finding:
    return explain(Pasted(text)).best


KINDS = {
    # Steps alone: a program that is killed silently leaves the same log.
    "unknown": [
        f"Epoch 1/5\n{START}412/750 [==========>...................] - ETA: 33s - loss: 2.0472",
        f"{NOISE}Epoch 1/5\n412/750 [==========>...................] - ETA: 33s - loss: 2.0472",
        f"{NOISE}step 23140: loss = 3.8172",
        "Epoch 7:  12%|#2        | 88/700 [00:41<05:01, 2.03it/s, loss=0.41]",
        "INFO:tensorflow:global step 23140: loss = 3.8172 (0.617 sec/step)",
        "Batch [2547/3811] | loss: 0.5214 |",
        "Epoch 1/50\n 3/9 [===>.....] - ETA: 2s - loss: 0.4\nEpoch 2/50",
        f"{START}{START}",
        # Saved on the way
        "INFO:tensorflow:Done running local_init_op.\nINFO:tensorflow:Saving checkpoints for 0 into /tmp/m/model.ckpt.",
        "Epoch 4: val_loss improved from 0.04195 to 0.04172, saving model to trt1",
        # A loading bar is not the program's work.
        "Downloading: 100%|##########| 420M/420M [00:08<00:00, 50.5MB/s]\nSome weights were not used when initializing the model",
        "Loading clouds\n100%|##########| 2/2 [00:14<00:00,  7.34s/it]",
        "Reading shards: 100%|##########| 64/64 [00:02<00:00, 31.1it/s]\nconfig: {'steps': 900}",
        # Large requests are harmless, but nothing follows them.
        f"Epoch 1/300\n{LARGE}{LARGE}tcmalloc: large allo",
        f"Epoch 1/3\ntcmalloc: large alloc 2952790016 bytes == 0x561a20c40000 @  0x7f3a52e1b4c3\n{LARGE}",
        LARGE,
        # Lines of the server, not of the kernel.
        "[I 07:15:42.208 NotebookApp] KernelRestarter: restarting kernel (1/5), keep random ports\nkernel a41c77e2 restarted\n[I 07:18:05.117 NotebookApp] Saving file at /lab/net.ipynb",
        "[I 2026-01-02 07:15:42.208 ServerApp] AsyncIOLoopKernelRestarter: restarting kernel (1/5), keep random ports\n[I 2026-01-02 07:18:05.117 ServerApp] Saving file at /net.ipynb",
        "[I 07:18:05.117 LabApp] Saving file at /lab/net.ipynb",
        # A failure that no message of the table names.
        "iteration: 9000 loss: 18.4 lr: 0.005\n---------------------------------------------------------------------------\nInvalidArgumentError                      Traceback (most recent call last)\nFile session.py:1378, in BaseSession._do_call(self, fn, *args)",
        "Epoch 2/9\n9/9 - loss: 0.4\nNotFoundError                             Traceback (most recent call last)\n<ipython-input-3> in <module>",
        "step 40 loss 0.2\nValueError                                Traceback (most recent call last)",
        "[2026-01-02 05:07:02,550][__main__][INFO] - Epoch: [7] [600/2916] loss: 0.2\n[2026-01-02 05:07:11,062][__main__][ERROR] - Error executing job with overrides: ['epochs=3']",
        "9/9 [====] - 2s 8ms/step - loss: 0.2\n[ERROR] the loader gave up",
        "Epoch 1/15\n1/2 [=====>......] - ETA: 10s - loss: 2.7\nCompilation failure: Asked to propagate a dynamic dimension\n\tTPU compilation failed",
        "Epoch 1/15\n8/8 - loss: 0.2\nTraining failed: the shard is empty",
    ],
    "no_crash": [
        f"{NOISE}Epoch 1/1\n900/900 [==============================] - 9s 10ms/step - loss: 0.2",
        "Epoch 41/200\n1562/1562 [==============================] - 480s - loss: 0.8146 - val_loss: 0.5921",
        "Epoch 44: 100%|##########| 500/500 [02:00<00:00, 4.1it/s, loss=0.3]",
        "Epoch 10/10\n313/313 - 3s - accuracy: 0.91 - loss: 0.22\nTest accuracy: 0.9",
        "step 900: loss 0.2\nModel saved to net.keras",
        "step 900: loss 0.2\ntraining finished",
        # The line is cut, in the middle of the words that make it harmless.
        f"{RETRY}The caller indicate",
        f"{RETRY}T",
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.15GiB.  The caller",
        # An error, and steps after it.
        "RuntimeError: the socket was closed\nEpoch 2:  41%|####      | 205/500 [03:10<04:33, 1.08it/s]\nEpoch 2:  42%|####      | 210/500 [03:15<04:30, 1.07it/s]",
        "trial 3: training failed, CUDA out of memory. Tried to allocate 9.00 GiB\nstep 900: loss 0.2",
        "batch 1024: RuntimeError: CUDA out of memory. Tried to allocate 11.20 GiB (caught)\nstep 3 loss: 0.2",
        "[2026-01-02T13:05:26.914] _job_complete: JobId=215306 WEXITSTATUS 0\nState: COMPLETED (exit code 0)",
        "Test Error: Accuracy: 64.9%, Avg loss: 1.09\nDone!",
        "I had CUDA out of memory. before, so I use batch 8 now\nEpoch 1/1\n9/9 - loss: 0.2",
    ],
    "gpu_oom": [
        "InvalidArgumentError: x\nEpoch 1/150\nResourceExhaustedError                    Traceback (most recent call last)\nsession.py in _do_call(self, fn, *args)\n   1322     try:",
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError  Traceback (most recent call last)",
        "Training...\nEpoch 1/150\n---------------\nResourceExhaustedError   Traceback (most recent call last)",
        # A person names the error above the log.
        "I meet this again today. It says: ran out of memory trying to allocate 4.42GiB\n\nINFO:tensorflow:global step 23140: loss = 3.8172 (0.617 sec/step)\n**2026-01-02 03:04:05.1: W tensorflow/core/common_runtime/bfc_allocator.cc:273] Allocator",
        "I always get CUDA out of memory. after an hour:\nEpoch 3/9\n 12/90 [=>......] - ETA: 9s - loss: 0.3",
        "I got ResourceExhausted OOM on a card with 8 GB\nEpoch 1/9\n 12/90 [=>......] - ETA: 9s - loss: 0.3",
        # Only the list of blocks
        "2026-01-02 03:04:05.1: I tensorflow/core/common_runtime/bfc_allocator.cc:905] InUse at 0x7f21450bb800 next 627 of size 6291456\n2026-01-02 03:04:05.1: I tensorflow/core/common_runtime/bfc_allocator.cc:905] InUse at 0x7f753",
        "2026-01-02 03:04:05.1: I tensorflow/core/common_runtime/bfc_allocator.cc:905] Free  at 0x7f21450bb800 next 18446744073709551615 of size 256",
        "2026-01-02 03:04:05.1: I external/xla/xla/tsl/framework/bfc_allocator.cc:1101] InUse at 7f75320aaa00 next 9 of size 4096",
        # The whole sentence of a failure
        "2026-01-02 03:04:05.1: W tensorflow/core/common_runtime/bfc_allocator.cc:456] Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.15GiB (rounded to 1234803200)requested by op conv",
    ],
    "cpu_alloc_failure": [
        "ResourceExhaustedError   Traceback (most recent call last)\nResourceExhaustedError: OOM when allocating tensor with shape[9,9] and type float on /job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu",
        "MemoryError                               Traceback (most recent call last)",
    ],
    "sigkill_unattributed": [
        "train data: 101 Killedssing: 1 batch / 2 batches.",
        "Epoch 1/3\nKilled/900 [====>....] - ETA: 33s - loss: 1.9",
        "Epoch 1/9\nKilled 3/99 [>....] - ETA: 2s - loss: 0.3",
        "Killed%|####      | 12/30",
        "[2026-01-02T13:05:26.914] _job_complete: JobId=215306 WTERMSIG 9\n[2026-01-02T13:05:26.914] _job_complete: JobId=215306 done",
        "_job_complete: JobId=9_4(13) WTERMSIG 9",
        "slurmctld: _job_complete: JobId=77 WTERMSIG 9",
    ],
    "terminated_by_user_or_manager": [
        "Terminatedng: 3 of 9",
        "^CError in atexit._run_exitfuncs:\nTraceback (most recent call last):\n  File \"util.py\", line 265, in _run_finalizers",
        "Epoch 1/3\n 12/90 [=>......] - ETA: 9s - loss: 0.3^CTraceback (most recent call last):\n  File \"a.py\", line 9, in <module>",
        "^C^CProcess ForkPoolWorker-7:\nTraceback (most recent call last):",
        "_job_complete: JobId=77 WTERMSIG 15\n_job_complete: JobId=77 done",
        "[2026-01-02T13:05:26.914] Time limit exhausted for JobId=77",
    ],
    "segfault_native": ["_job_complete: JobId=77 WTERMSIG 11\n_job_complete: JobId=77 done"],
    "cgroup_oom": ["_job_complete: JobId=77 OOM failure\n_job_complete: JobId=77 done"],
    "glibc_abort_heap_corruption": [
        "Epoch 14:   0% 0/101 [00:00<?, ?it/s]src/tcmalloc.cc:283] Attempt to free invalid pointer 0x1\nRuntimeError: DataLoader worker (pid 4711) is killed by signal: Aborted.",
        "src/tcmalloc.cc:332] Attempt to free invalid pointer 0x55d81192",
        "tcmalloc.cc:278] Attempt to free invalid pointer: 0x1\nAborted (core dumped)",
    ],
}  # fmt: skip
NEAR = {
    "WTERMSIG": "the macro WTERMSIG returns the number",
    "a worker's name": "KilledWorkers: 0\nEpoch 1/1\n9/9 - loss: 0.2",
    "a finished job": "_job_complete: JobId=77 WEXITSTATUS 0\n_job_complete: JobId=77 done",
    "a worker of several": "We have 2 workers. Worker 1 received SIGTERM\nstep 9 loss: 0.2\nstep 10 loss: 0.2",
    "a ^C alone": "Epoch 1/3\n^C",
    "too many files": "ResourceExhaustedError   Traceback (most recent call last)\nResourceExhaustedError: logs/events; Too many open files",
    "a finished run above": "I got CUDA out of memory. yesterday\nEpoch 1/1\n9/9 - loss: 0.2\nModel saved",
}


@pytest.mark.parametrize(
    ("text", "cause"), [(text, cause) for cause, texts in KINDS.items() for text in texts]
)
def test_a_kind_of_log_and_its_near_misses(text: str, cause: str) -> None:
    assert best_of(text).cause == cause


@pytest.mark.parametrize("name", NEAR)
def test_a_near_miss_names_no_cause(name: str) -> None:
    assert best_of(NEAR[name]).cause in ("unknown", "no_crash")


@pytest.mark.parametrize("text", [*KINDS["no_crash"], *NEAR.values()])
def test_only_steps_after_an_alarm_are_certain(text: str) -> None:
    best = best_of(text)
    assert best.confidence is not Confidence.CERTAIN or any(
        mark in text for mark in ("caught", "factory", "trial 3", "Worker 1")
    )


def test_the_last_step_is_quoted() -> None:
    found = best_of("Epoch 1/5\n412/750 [=====>.....] - ETA: 33s - loss: 1.9").because
    assert ["412/750" in fact.text and "last step" in fact.text for fact in found] == [True]
