"""TensorFlow in a process of its own that believes in GPUs, up to the settings that it would start them with.

Only the list of physical devices is made up, at the call that asks the native library for it. Everything above is
TensorFlow's own: the context, the checks of tf.config, the settings that go to the native library.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

_CHILD = """
import json, os, sys
import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import context as contexts
from jupyter_tfguard.training import growth

CALLS = []
growth.gpu_present = lambda root="/": True

# A TensorFlow that was just imported, and a guard that was there before.
def begin(gpus=2, wanted=True, limit=None, **environ):
    names = [b"/physical_device:CPU:0", *(b"/physical_device:GPU:%d" % n for n in range(gpus))]
    CALLS.clear()
    def listed():
        CALLS.append("list")
        return names
    pywrap_tfe.TF_ListPhysicalDevices = listed
    contexts._context = contexts.Context()
    growth._read_once = None
    setting = growth.GrowthSetting(dict(environ), wanted=wanted, limit_mib=limit)
    setting.set()
    return setting

def gpus():
    return tf.config.list_physical_devices("GPU")

def grow(gpu, value):
    tf.config.experimental.set_memory_growth(gpu, value)

def split(device, *limits):
    devices = [tf.config.LogicalDeviceConfiguration(memory_limit=limit) for limit in limits]
    tf.config.set_logical_device_configuration(device, devices)

# What TensorFlow would start its GPUs with.
def options():
    found = contexts.context().config.gpu_options
    limits = [list(virtual.memory_limit_mb) for virtual in found.experimental.virtual_devices]
    return {"growth": found.allow_growth, "limits": limits, "visible": found.visible_device_list}

# This build has no CUDA, so only the processor gets a device; the context is made all the same.
def start():
    contexts.context().ensure_initialized()

def told(setting):
    found = setting.state()
    return [found.state, found.text]

print("ready", flush=True)
for line in sys.stdin:
    names = dict(globals(), out=None)
    try:
        exec(json.loads(line), names)
        answer = {"out": names["out"]}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
"""


class PretendedGpus:
    """The process; each :meth:`ask` runs some code there, with the names of the child above."""

    def __init__(self) -> None:
        foreign = ("TF_", "CUDA_", "PYTEST_")
        environ = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        )
        assert self._read() == "ready"

    def ask(self, code: str) -> Any:
        """What the code left in ``out``.

        Raises:
            RuntimeError: It raised something; that is the text.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(code) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._read())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["out"]

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()
