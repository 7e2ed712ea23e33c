"""`jupyter tfguard enable` across real environments: server here, kernel there, with other versions of everything.

The server's environment has the wheel and the newest TensorFlow, the kernel's an older Python, ipykernel and TensorFlow
and no tfguard. Apart from the normal tests, because each downloads a TensorFlow:

    python tests/rigs/enabled.py [--only NAME ...] [--keep FOLDER] [--json]

A row needs an interpreter it can work with; where there is none, the row says so. Exit code 1 when a row failed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.rigs.environments import (  # noqa: E402
    CannotInstall,
    installed_environment,
    interpreter,
    write_kernel,
)
from tests.rigs.trials import build_wheel, try_rows  # noqa: E402


@dataclass(frozen=True)
class Row:
    """The environment of a kernel."""

    name: str
    pythons: tuple[str, ...]
    packages: tuple[str, ...]


ROWS = (
    Row("ipykernel 6.29, TensorFlow 2.15", ("3.10",), ("ipykernel==6.29.*", "tensorflow-cpu==2.15.*")),
    Row("ipykernel 7.0, TensorFlow 2.18", ("3.12", "3.11"), ("ipykernel==7.0.*", "tensorflow-cpu==2.18.*")),
)  # fmt: skip

# Runs in the server's environment: enable, a real server, a fit in the kernel, kill -9, the report; --off, and once more.
_TRIAL = """
import json, os, signal, subprocess, sys, time
from pathlib import Path
from jupyter_tfguard.demo.server import DemoServer
kernel_json = Path(sys.argv[1]); before = kernel_json.read_bytes()
def tfguard(*words):
    done = subprocess.run([sys.executable, "-m", "jupyter_tfguard", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
FIT = '''
import os, sys, numpy as np, tensorflow as tf
assert os.environ["OWN"] == "1" and os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"
assert "jupyter_tfguard" in sys.modules or not GUARDED
x = np.ones((64, 4), "float32"); y = np.ones((64, 1), "float32")
model = tf.keras.Sequential([tf.keras.layers.Dense(1)]); model.compile("sgd", "mse")
class Slow(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        import time; time.sleep(0.05)
model.fit(x, y, batch_size=16, epochs=1000, verbose=0, callbacks=[Slow()])
'''
def die(name, guarded):
    session = server.start_session(server.write_notebook(name), "other")
    kernel = session["kernel"]["id"]; client = server.connect(kernel)
    client.execute(FIT.replace("GUARDED", str(guarded)))
    ends = time.monotonic() + 120
    while True:
        found = next((k for k in server.get("tfguard/api/status")["kernels"] if k["kernel_id"] == kernel and k["pid"]), None)
        if found and (found.get("training") or not guarded and found["execution_state"] == "busy"): break
        assert time.monotonic() < ends, found
        time.sleep(0.2)
    time.sleep(3)
    killed = time.monotonic(); os.kill(found["pid"], signal.SIGKILL)
    while (report := server.report_of(kernel)) is None:
        assert time.monotonic() < killed + 60
        time.sleep(0.05)
    client.stop_channels(); server.end_session(session)
    return report, time.monotonic() - killed
change = tfguard("enable", "--kernel", "other", "--json")
work = Path(os.environ["TFGUARD_DIR"]).parent / "work"; work.mkdir()
server = DemoServer(work, lab=False)
try:
    with_guard, seconds = die("guarded", True)
    off = tfguard("enable", "--kernel", "other", "--off", "--json")
    same = kernel_json.read_bytes() == before
    without, _ = die("bare", False)
finally:
    server.stop()
print(json.dumps({"change": change["done"], "versions": change["versions"], "off": off["done"], "same": same,
  "cause": with_guard["cause"], "activity": with_guard["activity"], "seconds": round(seconds, 1),
  "not_checked": with_guard["not_checked"], "bare_cause": without["cause"], "bare_activity": without["activity"],
  "bare_not_checked": without["not_checked"]}))
"""


def main() -> int:
    return try_rows(__doc__.splitlines()[0], ROWS, _server, _try)


def _server(folder: Path) -> Path:
    """The server's environment, with the wheel as it is now."""
    wheel = build_wheel(folder)
    python = installed_environment(folder / "server", [str(wheel), "tensorflow-cpu"])
    again = ["-m", "pip", "install", "-q", "--force-reinstall", "--no-deps", str(wheel)]
    subprocess.run([str(python), *again], check=True)
    return python


def _try(row: Row, server: Path, folder: Path) -> tuple[str, str]:
    python = interpreter(row.pythons)
    if python is None:
        return "not run", f"no Python {' or '.join(row.pythons)} on this machine"
    home = folder / "".join(c if c.isalnum() else "-" for c in row.name)
    try:
        inside = installed_environment(home, row.packages, python)
    except CannotInstall as bad:
        return "FAILED", str(bad)
    private = Path(tempfile.mkdtemp(prefix="data-", dir=folder))
    kernel = private / "data" / "kernels" / "other"
    write_kernel(kernel, inside)
    variables = {
        "TFGUARD_DIR": str(private / "tfguard"),
        "JUPYTER_DATA_DIR": str(private / "data"),
        "JUPYTER_CONFIG_DIR": str(private / "config"),
        "IPYTHONDIR": str(private / "ipython"),
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
    foreign = ("TFGUARD", "TF_FORCE", "JUPYTER", "PYTHON")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
    done = subprocess.run(
        [str(server), "-c", _TRIAL, str(kernel / "kernel.json")],
        env=kept | variables,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    if done.returncode != 0:
        return "FAILED", (done.stderr or done.stdout)[-1500:]
    return _judge(json.loads(done.stdout.splitlines()[-1]))


def _judge(found: dict[str, object]) -> tuple[str, str]:
    activity = " ".join(map(str, found["activity"])) if isinstance(found["activity"], list) else ""
    sound = (
        found["change"] == "enabled"
        and found["off"] == "disabled"
        and found["same"]
        and found["cause"] == found["bare_cause"] == "sigkill_unattributed"
        and "epoch" in activity
        and not found["bare_activity"]
    )
    short = {k: found[k] for k in ("versions", "seconds", "same")}
    return ("ok" if sound else "FAILED"), json.dumps(short if sound else found)


if __name__ == "__main__":
    sys.exit(main())
