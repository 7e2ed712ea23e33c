"""Records a real death for the replay: a fit that keeps what it should let go of, in a kernel with a memory limit.

``python -m tests.rigs.recorded_death FOLDER`` writes ``FOLDER/memory-limit.zip``. Takes about two minutes, and needs the right
to set a memory limit (a cgroup, or systemd).
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

from jupyter_client.blocking import BlockingKernelClient

from jupyter_tfguard.demo.limits import make_limit
from jupyter_tfguard.demo.server import DemoServer
from jupyter_tfguard.places import bundles_folder
from jupyter_tfguard.record.bundle import BUNDLE, BundleStore
from jupyter_tfguard.units import GIB
from tests.conftest import private_jupyter

LIMIT_BYTES = 3 * GIB
_SECONDS = 170.0
# The first characters of a cell are kept: the last one is short enough to be read whole.
_DATA = """\
import numpy as np, tensorflow as tf
rng = np.random.default_rng(7)
labels = rng.integers(0, 2, 6000)
images = rng.random((6000, 64, 64, 3), dtype=np.float32)
images[labels == 1] += 0.02
"""
_MODEL = """\
encoder = tf.keras.layers.Conv2D(16, 3, activation="relu")
model = tf.keras.Sequential([
    tf.keras.layers.Input((64, 64, 3)),
    encoder,
    tf.keras.layers.MaxPooling2D(4),
    tf.keras.layers.Flatten(),
    tf.keras.layers.Dense(32, activation="relu"),
    tf.keras.layers.Dense(2, activation="softmax"),
], name="classifier")
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
features = []
keep = tf.keras.callbacks.LambdaCallback(
    on_train_batch_end=lambda batch, logs: features.append(encoder(images[:2]).numpy())
)
save = tf.keras.callbacks.ModelCheckpoint("checkpoints/classifier.keras", verbose=0)
"""
_FIT = "model.fit(images, labels, epochs=30, verbose=0, callbacks=[keep, save])"


def record(folder: Path) -> Path:
    """The zip, made of a death of now."""
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        work = home / "work"
        work.mkdir()
        with private_jupyter(home):
            server = DemoServer(work, lab=False)
            try:
                report_id = _die(server)
            finally:
                server.stop()
            bundle = BundleStore(bundles_folder()).bundle(report_id)
    header = bundle["kernel"]["header"]
    names = {
        str(home): "/home/ann",
        os.getcwd(): "/home/ann/project",
        # The group that was made for the limit lies in a group of ours, and that in others.
        header["memory_group"]["path"].rpartition("/")[0]: "/machine/jupyter",
        "/" + header["memory_group"]["path"].split("/")[1]: "/machine",
        header["host"]: "workstation",
        header["boot_id"]: "00000000-0000-4000-8000-000000000000",
    }
    text = json.dumps(_without_machine(bundle, names))
    path = folder / "memory-limit.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr(BUNDLE, text)
    return path


def _die(server: DemoServer) -> str:
    notebook = server.write_notebook("train", (_DATA, _MODEL, _FIT))
    session = server.start_session(notebook)
    kernel_id = str(session["kernel"]["id"])
    client = server.connect(kernel_id)
    limit = make_limit(LIMIT_BYTES)
    try:
        limit.add(_pid(server, kernel_id))
        for number, cell in enumerate((_DATA, _MODEL, _FIT)):
            _run(client, cell, f"cell-{number}")
        ends = time.monotonic() + _SECONDS
        while time.monotonic() < ends:
            report = server.report_of(kernel_id)
            if report is not None:
                print(report["title"], report["confidence"])
                return str(report["id"])
            time.sleep(0.5)
        raise SystemExit("The kernel did not die in time.")
    finally:
        client.stop_channels()
        server.end_session(session)
        limit.remove()


def _pid(server: DemoServer, kernel_id: str) -> int:
    while (pid := server.kernel_pid(kernel_id)) is None:
        time.sleep(0.1)
    return pid


def _run(client: BlockingKernelClient, cell: str, cell_id: str) -> None:
    """As JupyterLab runs it: with the id of the cell, and not waiting for the one before."""
    content = {"code": cell, "silent": False, "store_history": True, "allow_stdin": False}
    message = client.session.msg("execute_request", content, metadata={"cellId": cell_id})
    client.shell_channel.send(message)


def _without_machine(value: Any, names: dict[str, str]) -> Any:
    """The same with other words for what names this machine."""
    if isinstance(value, dict):
        return {key: _without_machine(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_machine(one, names) for one in value]
    if isinstance(value, str):
        for ours, other in names.items():
            value = value.replace(ours, other)
    return value


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    print(record(parser.parse_args().folder))
