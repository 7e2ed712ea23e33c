"""An upgrade under a running server: the next crash is reported by what is loaded, and the page says what to restart."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from traitlets.config import Config

import jupyter_tfguard
from jupyter_tfguard.installed import Installed
from jupyter_tfguard.server import service
from tests.rigs.waiting import wait_until_async

from .conftest import Server

# Runs with a copy of the package, which it removes as an upgrade does.
REPORTS = """
import shutil, sys, time
from pathlib import Path
from jupyter_tfguard.config import TfGuard
from jupyter_tfguard.server import pages, service
from jupyter_tfguard.installed import Installed
from jupyter_tfguard.postmortem.capture import capture
from jupyter_tfguard.postmortem.handle import Postmortem
from jupyter_tfguard.record.bundle import BundleStore
from jupyter_tfguard.record.facts import ExitFacts, ServerFacts, SystemLog, SystemLogLine
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.report import html
from jupyter_tfguard.report.anonymous import Identity
from jupyter_tfguard.report.export import export, shared_markdown

service.rehearse()
installed = Installed()
copy, data = Path(sys.argv[1]), Path(sys.argv[2])
assert Path(service.__file__).is_relative_to(copy)
assert not installed.is_other()
shutil.rmtree(copy)
assert installed.is_other()
store = BundleStore(data / "bundles")
line = SystemLogLine(time.time(), "NVRM: Xid (PCI:0000:01:00): 48, pid=4711, name=python, DBE")
for name in ("SIGKILL", "SIGSEGV", "SIGABRT"):
    facts = ServerFacts(exit=ExitFacts(name, None, "waitid"), died=time.time())
    log = SystemLog(True, None, (line,))
    bundle = capture(identity=ProcessIdentity(4711, 1), kernel_id="k", server=facts, system_log=log)
    bundle["kernel"] = {"stderr_tail": [
        "F tensorflow/core/framework/tensor.cc:733] Check failed: dtype() == expected_dtype (1 vs. 2)",
        "RESOURCE_EXHAUSTED: OOM when allocating tensor with shape[64,64] on /GPU:0 by allocator GPU_0_bfc",
    ], "header": {}, "events": []}
    Postmortem(data / "recordings", store, TfGuard()).report(bundle)
for entry in store.entries():
    report = store.report(entry["id"])
    html.render(report, html.Links("", "", ""))
    shared_markdown(store.bundle(entry["id"]), report, Identity.of_here())
    export(store.bundle(entry["id"]), report, Identity.of_here()).zipped()
html.render_list(store.entries(), str)
print(len(store.entries()))
"""


def test_reports_need_no_file_of_the_package(tmp_path: Path) -> None:
    copy = tmp_path / "site" / "jupyter_tfguard"
    shutil.copytree(Path(jupyter_tfguard.__file__).parent, copy)
    environment = os.environ | {
        "PYTHONPATH": str(copy.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TFGUARD_DIR": str(tmp_path / "data"),
    }
    done = subprocess.run(
        [sys.executable, "-c", REPORTS, str(copy), str(tmp_path / "data")],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "3\n"


def test_the_same_files_installed_again_are_no_other_version(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("x = 1\n")
    installed = Installed(tmp_path)
    file.write_text("x = 1\n")
    os.utime(file, (1.0, 1.0))
    assert not installed.is_other()
    file.write_text("x = 2\n")
    os.utime(file, (2.0, 2.0))
    assert installed.is_other()
    assert installed.is_other()


@pytest.fixture
def loaded(jp_server_config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the server loads at its start; `tmp_path/site` is the package that it has."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "a.py").write_text("x = 1\n")
    monkeypatch.setattr(service, "Installed", lambda: Installed(tmp_path / "site"))
    calls: list[str] = []
    monkeypatch.setattr(service, "rehearse", lambda: calls.append("rehearsed"))
    return calls


async def test_a_server_loads_its_reports_and_notices_an_upgrade(
    loaded: list[str], server: Server, tmp_path: Path, data_folder: Path
) -> None:
    await wait_until_async(lambda: loaded, "the parts of a report")
    assert (await server.get("status"))["problems"] == []
    (tmp_path / "site" / "a.py").write_text("x = 'another version'\n")
    [problem] = (await server.get("status"))["problems"]
    assert problem["fix"].startswith("Restart Jupyter: ")
    # A report that fails now is not for lack of disk space.
    postmortem = server.app.web_app.settings["tfguard_service"]._postmortem
    kernel_id = await server.start_kernel()
    postmortem.report = lambda bundle: (_ for _ in ()).throw(ImportError("cannot import name"))
    os.kill(await server.pid(kernel_id), signal.SIGKILL)

    async def noted() -> list[str]:
        problems = (await server.get("status"))["problems"]
        return [p["fix"] for p in problems if "ImportError" in p["what"]]

    [fix] = await wait_until_async(noted, "the failure")
    assert fix.startswith("Restart Jupyter: ")
