"""Tries the wheel with the oldest and newest TensorFlow, with Keras 2 and 3, and on a Python without TensorFlow.

Apart from the normal tests, because each row makes a virtual environment and downloads a TensorFlow:

    python tests/soak/versions.py [--only NAME ...] [--keep FOLDER] [--json]

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

from tests.rigs.environments import interpreter  # noqa: E402
from tests.rigs.trials import build_wheel, try_rows  # noqa: E402


@dataclass(frozen=True)
class Row:
    """One combination to try."""

    name: str
    pythons: tuple[str, ...]
    packages: tuple[str, ...]
    variables: tuple[tuple[str, str], ...] = ()
    keras: str | None = "tensorflow.keras"


ROWS = (
    Row("oldest: 2.15, Keras 2", ("3.11", "3.10"), ("tensorflow-cpu==2.15.*",)),
    Row("2.16, Keras 3", ("3.12", "3.11", "3.10"), ("tensorflow-cpu==2.16.*",)),
    Row(
        "2.16, tf_keras",
        ("3.12", "3.11", "3.10"),
        ("tensorflow-cpu==2.16.*", "tf_keras==2.16.*"),
        (("TF_USE_LEGACY_KERAS", "1"),),
    ),
    Row("newest", ("3.13", "3.12", "3.11"), ("tensorflow-cpu",)),
    Row("3.14 without TensorFlow", ("3.14",), (), keras=None),
    Row("3.10 without TensorFlow", ("3.10",), (), keras=None),
)

# Runs inside the new environment: a real kernel, a real fit, then what its recording holds.
_TRIAL = """
import json, os, sys
from pathlib import Path
from jupyter_client.manager import KernelManager
manager = KernelManager(kernel_name="python3"); manager.start_kernel()
client = manager.blocking_client(); client.start_channels(); client.wait_for_ready(timeout=120)
printed = []
def run(code):
    def keep(message):
        if message["header"]["msg_type"] == "stream" and message["content"]["name"] == "stdout":
            printed.append(message["content"]["text"])
    reply = client.execute_interactive(code, output_hook=keep, timeout=300)
    assert reply["content"]["status"] == "ok", reply["content"].get("traceback")
run("1 + 1"); assert not printed, printed
run("%load_ext tfguard"); assert "".join(printed).count(chr(10)) == 1, printed
keras = sys.argv[1]
if keras:
    run(f"import numpy as np, {keras} as keras\\nx = np.ones((64, 4), 'float32'); y = np.ones((64, 1), 'float32')\\n"
        "model = keras.Sequential([keras.layers.Dense(3), keras.layers.Dense(1)])\\nmodel.compile('sgd', 'mse')\\n"
        "model.fit(x, y, batch_size=16, epochs=2, validation_data=(x, y), verbose=0)\\nmodel.predict(x, verbose=0)")
from jupyter_tfguard.record.contents import read_recording
from jupyter_tfguard.places import recordings_folder
(folder,) = recordings_folder().iterdir()
contents = read_recording(folder)
fits = [e for e in contents.events if e["kind"] == "fit_start"]
print(json.dumps({"line": "".join(printed).strip(), "versions": contents.header["versions"],
  "fits": [[e["what"], e["batch_size"]] for e in fits],
  "epochs": [e["logs"] for e in contents.events if e["kind"] == "epoch_end"],
  "ends": [e["ok"] for e in contents.events if e["kind"] == "fit_end"],
  "samples": len(contents.samples), "problems": contents.header["guard"]["problems"]}))
client.stop_channels(); manager.shutdown_kernel()
"""


def main() -> int:
    return try_rows(__doc__.splitlines()[0], ROWS, build_wheel, _try)


def _try(row: Row, wheel: Path, folder: Path) -> tuple[str, str]:
    python = interpreter(row.pythons)
    if python is None:
        return "not run", f"no Python {' or '.join(row.pythons)} on this machine"
    home = folder / "".join(c if c.isalnum() else "-" for c in row.name)
    inside = str(home / "bin" / "python")
    try:
        if not home.is_dir():
            subprocess.run([python, "-m", "venv", str(home)], check=True)
            if row.packages:
                _quiet([inside, "-m", "pip", "install", "-q", *row.packages])
        _quiet([inside, "-m", "pip", "install", "-q", str(wheel)])
        _quiet([inside, "-m", "pip", "install", "-q", "--force-reinstall", "--no-deps", str(wheel)])
        data = tempfile.mkdtemp(prefix="data-", dir=folder)
        variables = {
            "TFGUARD_DIR": data,
            "IPYTHONDIR": data,
            "TF_CPP_MIN_LOG_LEVEL": "2",
            **dict(row.variables),
        }
        kept = {k: v for k, v in os.environ.items() if not k.startswith("TFGUARD")}
        done = subprocess.run(
            [inside, "-c", _TRIAL, row.keras or ""],
            env=kept | variables,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    except (subprocess.SubprocessError, OSError) as bad:
        return "FAILED", str(bad)[-600:]
    if done.returncode != 0:
        return "FAILED", (done.stderr or done.stdout)[-1200:]
    return _judge(row, json.loads(done.stdout.splitlines()[-1]))


def _quiet(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(done.stderr[-600:])


def _judge(row: Row, found: dict[str, object]) -> tuple[str, str]:
    wanted = [["fit", 16], ["predict", 32]] if row.keras else []
    epochs = found["epochs"]
    sound = (
        found["fits"] == wanted
        and not found["problems"]
        and (
            not row.keras
            or (isinstance(epochs, list) and len(epochs) == 2 and "val_loss" in epochs[0])
        )
    )
    return ("ok" if sound else "FAILED"), json.dumps(found if not sound else found["versions"])


if __name__ == "__main__":
    sys.exit(main())
