"""The process of a trial: trains a received model for some steps and reports its own memory.

Started by ``process.py`` with the descriptor of a socket and the process id of the parent. Imports TensorFlow, then forks for
each trial that it receives: the descriptors of the file to read, and of a pipe, to which the trial writes one JSON object per line.
It is the only part of the package that imports TensorFlow and Keras.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import pickle
import resource
import signal
import socket
import sys
import warnings
from collections.abc import Callable
from typing import Any

_PR_SET_PDEATHSIG = 1  # Source: prctl(2)
_RESET_PEAK = "5"  # Source: proc_pid_clear_refs(5)
_FIRST_FOR_THE_KILLER = "1000"  # Source: proc_pid_oom_score_adj(5)
_MESSAGE_BYTES = 1 << 16
# Thread of the jemalloc in PyArrow, which pandas imports: a fork goes on without it. Source: jemalloc, background_thread.c
_FORK_SAFE = "jemalloc_bg_thd"


def main(socket_descriptor: int, parent_pid: int) -> None:
    """Run the trials that arrive, until the parent closes the socket."""
    _be_expendable(parent_pid)
    connection = socket.socket(fileno=socket_descriptor)
    settings = json.loads(connection.recv(_MESSAGE_BYTES))
    sys.path[:] = settings["path"]
    gc.disable()  # a quarter of the time of the import
    try:
        may_fork = _import_all() and settings["may_fork"]
    except BaseException as error:
        connection.send(json.dumps({"error": f"{type(error).__name__}: {error}"[:2000]}).encode())
        return
    gc.collect()
    gc.enable()
    gc.freeze()  # the collector of a fork copies no page of it
    connection.send(b'{"is_ready": true}')
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, _MESSAGE_BYTES, 2)
        if not message:
            os._exit(0)
        if not descriptors:  # the trial has ended
            _, status = os.wait()
            connection.send(json.dumps({"status": os.waitstatus_to_exitcode(status)}).encode())
            continue
        own_pid = os.getpid()
        pid = os.fork() if may_fork else 0
        if not pid:
            if may_fork:
                _be_expendable(own_pid)
                connection.close()
            else:
                connection.send(json.dumps({"pid": own_pid}).encode())
            _run(*descriptors)
        for one in descriptors:
            os.close(one)
        connection.send(json.dumps({"pid": pid}).encode())


def _import_all() -> bool:
    """Import what a trial needs. False if that started threads, which a fork would not have."""
    warnings.simplefilter("ignore")
    # NumPy and SciPy, which Keras imports with scikit-learn, each bring an OpenBLAS that would start threads now.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    import keras  # noqa: F401
    import tensorflow  # noqa: F401

    import jupyter_tfguard.predict.trial.travel  # noqa: F401

    names = [_thread_name(one) for one in os.listdir("/proc/self/task")]
    return len(names) - names.count(_FORK_SAFE) == 1


def _thread_name(thread: str) -> str:
    with open(f"/proc/self/task/{thread}/comm") as file:
        return file.read().strip()


def _run(file_descriptor: int, descriptor: int) -> None:
    """Run the trial of this file, and end."""

    def report(**fields: Any) -> None:
        os.write(descriptor, json.dumps(fields).encode() + b"\n")

    try:
        with os.fdopen(file_descriptor, "rb") as file:
            settings = pickle.load(file)
            log = _keep_native_text() if settings["uses_gpu"] else None
            _configure(settings)
            _train(file, settings, report, log)
    except BaseException as error:
        kind = type(error).__name__
        report(error=f"{kind}: {error}"[:2000], out_of_memory=kind == "ResourceExhaustedError")
    os._exit(0)  # TensorFlow's threads are not joined


def _be_expendable(parent_pid: int) -> None:
    """End with the parent, and be the first that the OOM killer ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:  # it ended before that call
        os._exit(1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash writes no file
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write(_FIRST_FOR_THE_KILLER)


def _keep_native_text() -> int:
    """Let native libraries write to a file in memory; returns its descriptor."""
    log = os.memfd_create("log")
    os.dup2(log, 2)
    return log


def _configure(settings: dict[str, Any]) -> None:
    import keras
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(settings["intra_op_count"])
    tf.config.threading.set_inter_op_parallelism_threads(settings["inter_op_count"])
    tf.config.run_functions_eagerly(settings["run_eagerly"])
    keras.backend.set_floatx(settings["floatx"])
    keras.backend.set_image_data_format(settings["image_data_format"])
    keras.config.set_dtype_policy(settings["dtype_policy"])


def _train(
    file: Any, settings: dict[str, Any], report: Callable[..., None], log: int | None
) -> None:
    import keras

    from jupyter_tfguard.predict.trial.travel import load

    class Steps(keras.callbacks.Callback):  # type: ignore[misc]
        async_safe = True  # Keras need not wait for the results of each step

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            report(step_count=batch + 1, highest_bytes=highest_bytes())

    model, data = load(file)
    arguments = _fit_arguments(data, settings["batch_size"], settings["step_count"])
    del data
    gc.collect()
    highest_bytes = _host_memory(report) if log is None else _gpu_memory(report, log)
    try:
        model.fit(**arguments, epochs=1, verbose=0, callbacks=[Steps()])
    finally:
        report(highest_bytes=highest_bytes())
    report(done=True)


def _host_memory(report: Callable[..., None]) -> Callable[[], int]:
    """Report the anonymous memory in use; the result reads the highest since then."""
    from jupyter_tfguard.collectors.resident import anonymous_bytes, anonymous_peak_bytes
    from jupyter_tfguard.predict.own_memory import free_in_pool

    pid = os.getpid()
    highest_bytes = anonymous_peak_bytes if _reset_peak() else anonymous_bytes
    report(before_bytes=anonymous_bytes(pid), free_bytes=free_in_pool())
    return lambda: highest_bytes(pid)


def _gpu_memory(report: Callable[..., None], log: int) -> Callable[[], int]:
    """Report the memory in tensors on the first GPU and its limit; the result reads the highest since then."""
    import tensorflow as tf

    from jupyter_tfguard.training.gpu_memory import created_devices

    memory = tf.config.experimental
    memory.reset_memory_stats("GPU:0")
    before_bytes = memory.get_memory_info("GPU:0")["current"]
    text = os.pread(log, os.fstat(log).st_size, 0).decode(errors="replace")
    limits = [one["limit_bytes"] for one in created_devices(text) if one["device"] == "GPU:0"]
    report(before_bytes=before_bytes, gpu_limit_bytes=limits[0] if limits else None)
    return lambda: int(memory.get_memory_info("GPU:0")["peak"])


def _reset_peak() -> bool:
    """Let the kernel count the peak of the resident size from now on; False if it does not."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write(_RESET_PEAK)
    except OSError:
        return False
    return True


def _fit_arguments(data: Any, batch_size: int, step_count: int) -> dict[str, Any]:
    """The arguments of ``fit``, with as many samples as the steps need. A dataset repeats those it has."""
    import numpy as np
    import tensorflow as tf

    if data.is_dataset:
        element = tuple(data.arrays.values())
        samples = tf.data.Dataset.from_tensor_slices(element if len(element) > 1 else element[0])
        dataset = samples.repeat().batch(batch_size).prefetch(tf.data.AUTOTUNE)
        return {"x": dataset, "steps_per_epoch": step_count, **data.others}
    count = batch_size * step_count

    def repeat(array: Any) -> Any:
        return array if len(array) == count else array[np.arange(count) % len(array)]

    repeated = tf.nest.map_structure(repeat, data.arrays)
    return {**repeated, **data.others, "batch_size": batch_size}


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
