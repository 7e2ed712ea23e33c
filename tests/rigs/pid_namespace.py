"""A Jupyter server and one kernel in a pid namespace of their own, as in a container, that answer questions from outside.

``unshare --pid --fork --mount-proc python -m tests.rigs.pid_namespace FOLDER LIBRARY`` starts them, lets the kernel load LIBRARY (which is
called as CUDA's) and prints the kernel's process id as it is in there. Then, for each line on standard input: the devices as
the panel is told them, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tests.conftest import private_jupyter
from tests.crash.conftest import Kernel, RecordingServer
from tests.rigs.nvml.library import SCENARIO


def main(folder: Path, library: str) -> None:
    """Answer until standard input ends."""
    (folder / "work").mkdir()
    with private_jupyter(folder, **{SCENARIO: Path(os.environ[SCENARIO])}):
        server = RecordingServer(folder / "work", folder / "tfguard")
        try:
            kernel = Kernel(server, "inside")
            reply = kernel.run(f"import ctypes; ctypes.CDLL({library!r})")
            assert reply["status"] == "ok", reply
            print(kernel.pid, flush=True)
            for _ in sys.stdin:
                devices = server.get("tfguard/api/status")["gpus"]["devices"]
                print(json.dumps(devices), flush=True)
        finally:
            server.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
