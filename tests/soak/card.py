"""What tfguard tells on a machine with an NVIDIA card: ``python -m tests.soak.card [--only NAME ...] [--keep FOLDER]``.

Real kernels of a real server train with TensorFlow on the first card and end in several ways. Printed: what each cell
showed, what the server told of the card meanwhile, and the report of a crash. ``--keep`` also writes the server's raw answers. To be
read by a person: there is no expected text. Uses the card like any notebook, and changes no setting of it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupyter_tfguard.demo.server import DemoServer
from jupyter_tfguard.report import text
from tests.crash.settings import write_setting

IMPORT = "import os, time, numpy as np, tensorflow as tf, keras\nfrom keras import layers"
FIT = """
model = keras.Sequential([keras.Input((64, 64, 3)), layers.Conv2D(64, 3, activation="relu", padding="same"),
    layers.Conv2D(64, 3, activation="relu", padding="same"), layers.MaxPooling2D(), layers.Flatten(),
    layers.Dense(256, activation="relu"), layers.Dense(10)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
images = np.random.rand({count}, 64, 64, 3).astype("float32")
labels = np.random.randint(0, 10, {count})
history = model.fit(images, labels, batch_size={batch}, epochs={epochs}, verbose=0)
print("loss", history.history["loss"][-1])
"""
# XLA gives the memory of variables to the step that updates them, and frees it when that step does not begin.
KEEP = "before = [np.array(one) for one in model.weights]"
TOO_LARGE = (
    "model.fit(np.zeros((4096, 64, 64, 3), 'float32'), np.zeros(4096), batch_size=4096, verbose=0)"
)
COMPARE = """
others = [tf.random.normal((256, 1024, 256)) for _ in range(2)]
print("weights as before:", all((old == np.array(new)).all() for old, new in zip(before, model.weights)))
print("loss", model.fit(images, labels, verbose=0).history["loss"][-1])
"""
HOLD = "with tf.device('/GPU:0'): kept = tf.zeros([{gib}, 1 << 28])\nprint(kept.device)"
TELL = "%tfguard status"
# Writes through a null pointer on the card, as a wrong custom operation does: Xid 31.
BAD_WRITE = """
import ctypes
driver = ctypes.CDLL("libcuda.so.1")
source = b'''.version 7.0
.target sm_70
.address_size 64
.visible .entry bad() { .reg .u64 %a; .reg .u32 %v; mov.u64 %a, 0; mov.u32 %v, 1; st.global.u32 [%a], %v; ret; }
'''
context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0
assert driver.cuModuleLoadData(ctypes.byref(module), source) == 0
assert driver.cuModuleGetFunction(ctypes.byref(function), module, b"bad") == 0
assert driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None) == 0
"""
_CELL_SECONDS = 120.0
_REPORT_SECONDS = 60.0


@dataclass(frozen=True)
class Scene:
    """One notebook.

    Attributes:
        name: In a few words.
        cells: Run one after the other, with the server's view of the card after each.
        dies: Its last cell ends the process, or `end` does.
        end: What a person does to the process at last; None for nothing.
        environment: Of the kernel, in addition to ours.
    """

    name: str
    cells: tuple[str, ...]
    dies: bool = False
    end: signal.Signals | None = None
    environment: tuple[tuple[str, str], ...] = ()


SCENES = (
    Scene(
        "trains",
        (IMPORT, TELL, FIT.format(count=4096, batch=256, epochs=30), TELL, "%tfguard cells"),
    ),
    Scene(
        "no room in a capped pool",
        (
            IMPORT,
            FIT.format(count=4096, batch=4096, epochs=1),
            TELL,
            FIT.format(count=512, batch=64, epochs=1),
        ),
        environment=(("TF_PER_DEVICE_MEMORY_LIMIT_MB", "2048"),),
    ),
    Scene(
        "weights after no room",
        (IMPORT, FIT.format(count=512, batch=64, epochs=1), KEEP, TOO_LARGE, COMPARE),
        environment=(("TF_PER_DEVICE_MEMORY_LIMIT_MB", "2048"),),
    ),
    Scene(
        "killed while it holds the card",
        (IMPORT, HOLD.format(gib=8)),
        dies=True,
        end=signal.SIGKILL,
    ),
    Scene(
        "a wrong write on the card",
        (
            IMPORT,
            FIT.format(count=512, batch=64, epochs=1),
            BAD_WRITE,
            FIT.format(count=512, batch=64, epochs=1),
        ),
        dies=True,
    ),
    Scene(
        "estimate",
        (
            IMPORT,
            FIT.format(count=512, batch=64, epochs=1),
            "import tfguard\nprint(tfguard.estimate(model, images, labels, batch_size=256))",
            "print(tfguard.estimate(model, images, labels, batch_size=256, measure=True))",
            "print(tfguard.find_batch_size(model, np.zeros((60000, 64, 64, 3), 'float32'), np.zeros(60000)))",
        ),
    ),
)
# One after the other: the second finds the card full.
CROWD = (
    Scene(
        "takes the whole card",
        (IMPORT, HOLD.format(gib=1)),
        environment=(("TF_FORCE_GPU_ALLOW_GROWTH", "false"),),
    ),
    Scene(
        "finds the card full",
        (IMPORT, FIT.format(count=512, batch=64, epochs=1), HOLD.format(gib=8), TELL),
    ),
)


class Notebook:
    """A kernel of the server that plays a scene."""

    def __init__(self, server: DemoServer, scene: Scene, keep: Path | None) -> None:
        self.scene = scene
        self.lines: list[str] = []
        self._server = server
        self._keep = keep
        path = server.write_notebook(scene.name.replace(" ", "_"))
        self._session = server.start_session(path, _kernel(scene))
        self._id = str(self._session["kernel"]["id"])
        self._client = server.connect(self._id)

    def play(self) -> None:
        """Run the cells to the end."""
        for number, code in enumerate(self.scene.cells):
            last = number + 1 == len(self.scene.cells)
            self._say(f"In: {code.strip()[:300]}")
            began = time.monotonic()
            if self.scene.dies and last and self.scene.end is None:
                self._client.execute(code)
            else:
                self._run(code)
            self._say(f"({time.monotonic() - began:.1f} s)")
            self._look(f"{number}")
        if not self.scene.dies:
            return
        if self.scene.end is not None:
            time.sleep(2.5)  # the card is read once a second
            pid = self._server.kernel_pid(self._id)
            assert pid is not None
            os.kill(pid, self.scene.end)
        self._say(self._report())

    def end(self) -> None:
        """Shut the kernel down."""
        self._client.stop_channels()
        self._server.end_session(self._session)

    def _run(self, code: str) -> None:
        try:
            self._client.execute_interactive(
                code, timeout=_CELL_SECONDS, allow_stdin=False, output_hook=self._show
            )
        except TimeoutError:
            self._say(f"The cell did not end within {_CELL_SECONDS:g} s.")

    def _show(self, message: dict[str, Any]) -> None:
        content = message["content"]
        if message["msg_type"] == "stream":
            self._say(content["text"].rstrip())
        elif message["msg_type"] in ("execute_result", "display_data"):
            self._say(content["data"].get("text/plain", ""))
        elif message["msg_type"] == "error":
            self._say("\n".join(content["traceback"])[-3000:])

    def _look(self, step: str) -> None:
        state = self._server.get("tfguard/api/status")
        for device in state["gpus"]["devices"] or ():
            shown = ("name", "memory_total_bytes", "memory_used_bytes", "utilization_fraction")
            shown += ("temperature_celsius", "other_bytes", "holders", "note", "alarms")
            self._say("card: " + json.dumps({name: device.get(name) for name in shown}))
        self._save(step, state)

    def _report(self) -> str:
        ends = time.monotonic() + _REPORT_SECONDS
        while time.monotonic() < ends:
            if (report := self._server.report_of(self._id)) is not None:
                self._save("report", report)
                return text.render(report)
            time.sleep(0.2)
        return f"no report within {_REPORT_SECONDS:g} s:\n{self._server.log_tail()}"

    def _save(self, what: str, answer: dict[str, Any]) -> None:
        if self._keep is not None:
            path = self._keep / f"{self.scene.name.replace(' ', '_')}-{what}.json"
            path.write_text(json.dumps(answer, indent=1))

    def _say(self, line: str) -> None:
        self.lines.append(line)


def _kernel(scene: Scene) -> str:
    """A kernel specification with the environment of the scene; its name."""
    name = f"card-{scene.name.replace(' ', '-')}"
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernels = Path(os.environ["JUPYTER_DATA_DIR"]) / "kernels"
    write_setting(kernels, name, argv, **dict(scene.environment))
    return name


def played(server: DemoServer, scene: Scene, keep: Path | None) -> Notebook:
    """Play a scene in a kernel of its own, and leave it running."""
    found = Notebook(server, scene, keep)
    found.play()
    print(f"\n=== {scene.name}", *found.lines, sep="\n", flush=True)
    return found


def main() -> None:
    """Play the scenes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", metavar="NAME", help="part of a scene's name")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)

    def chosen(scenes: tuple[Scene, ...]) -> list[Scene]:
        return [s for s in scenes if not options.only or any(o in s.name for o in options.only)]

    with tempfile.TemporaryDirectory() as home:
        for name in ("JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR", "TFGUARD_DIR"):
            os.environ[name] = str(Path(home) / name.lower())
        work = Path(home) / "work"
        work.mkdir()
        server = DemoServer(work, lab=False)
        try:
            with ThreadPoolExecutor(len(SCENES)) as pool:
                jobs = [pool.submit(played, server, s, options.keep) for s in chosen(SCENES)]
                for job in jobs:
                    job.result().end()
            crowd = [played(server, scene, options.keep) for scene in chosen(CROWD)]
            for notebook in crowd:
                notebook.end()
        finally:
            server.stop()


if __name__ == "__main__":
    main()
