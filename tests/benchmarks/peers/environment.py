"""The peers' own environment, and what is said about versions and the machine."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from jupyter_tfguard.units import human_bytes
from tests.rigs.environments import installed_environment

PEERS = {
    "jupyter-resource-usage": "1.3.0",
    "jupyterlab-nvdashboard": "0.15.0",
    "memray": "1.20.0",
    "marimo": "0.25.2",
    "papermill": "2.7.0",
}
# The same release on both sides: what differs is the tool alone.
_SAME = (
    "jupyterlab",
    "jupyter_server",
    "jupyter_client",
    "ipykernel",
    "nbclient",
    "tensorflow",
    "keras",
    "numpy",
    "psutil",
)
_VERSIONS = (
    "import importlib.metadata, json, sys\n"
    "print(json.dumps({name: importlib.metadata.version(name) for name in sys.argv[1:]}))"
)


def peers_python(folder: Path) -> str:
    """The interpreter of the peers' environment below `folder`; installed when it is not there.

    Raises:
        CannotInstall: The package index does not answer, or lacks a release.
    """
    same = [f"{name}=={importlib.metadata.version(name)}" for name in _SAME]
    peers = [f"{name}=={version}" for name, version in PEERS.items()]
    return str(installed_environment(folder / "peers", [*same, *peers]))


def versions(peers: str) -> dict[str, str]:
    """Releases in use: ours, then those of the peers' environment."""
    names = [*PEERS, *_SAME]
    done = subprocess.run(
        [peers, "-c", _VERSIONS, *names], capture_output=True, text=True, check=True
    )
    ours = {"jupyter-tfguard": importlib.metadata.version("jupyter-tfguard")}
    return ours | {"Python": platform.python_version()} | json.loads(done.stdout)


def machine() -> dict[str, Any]:
    """Cores, memory, system and date; no name of the machine."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    group = "version 1" if Path("/sys/fs/cgroup/memory").is_dir() else "version 2"
    return {
        "cores": os.cpu_count(),
        "memory": human_bytes(memory),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "cgroup": group,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "command": "python -m tests.benchmarks.comparison " + " ".join(_plain(sys.argv[1:])),
    }


def _plain(arguments: list[str]) -> list[str]:
    """The command line without folders of this machine."""
    return ["FOLDER" if os.path.sep in argument else argument for argument in arguments]
