"""What leaves a machine names nobody, and is still of use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.report.anonymous import Anonymous, Identity
from jupyter_tfguard.report.export import export

pytestmark = pytest.mark.quick

WIRE = Path(__file__).parents[1] / "wire"
ANN = Identity("/home/ann", "ann", "gpu01.cluster.example")

HOMES = [
    ("/home/bob: No space left on device", "~: No space left on device"),
    ("C:\\Users\\bob: quota exceeded, 3 files", "~: quota exceeded, 3 files"),
    ("/home/bob/x.h5", "~/x.h5"),
    ("file:///home/bob/x.h5", "file://~/x.h5"),
    ("sftp://node7/home/bob/x.h5", "sftp://node7~/x.h5"),
    ("/mnt/c/Users/Bob Miller/proj/train.py", "~/proj/train.py"),
    ("/mnt/c/Users/Bob Miller", "~"),
    ("'/mnt/c/Users/Bob Miller'", "'~'"),
    ("/var/home/bob/a", "~/a"),
    ("/nfs/home/bob/x", "~/x"),
    ("/System/Volumes/Data/Users/bob/x", "~/x"),
    ("gcc -L/home/bob/lib -isystem/home/bob/inc", "gcc -L~/lib -isystem~/inc"),
    (r"error:\n/home/bob/x", r"error:\n~/x"),
    (r"see /home/bob\nnext line", r"see ~\nnext line"),
    ("C:\\Users\\Bob Miller\\train.py", "~\\train.py"),
    ("'C:\\\\Users\\\\Bob Miller\\\\t.py'", "'~\\\\t.py'"),
    ("d:/users/Bob Miller/t.py", "~/t.py"),
    ("file:///C:/Users/Bob%20Miller/t.py", "file://~/t.py"),
    ("\\\\wsl$\\Ubuntu\\home\\bob\\t.py", "\\\\wsl$\\Ubuntu~\\t.py"),
    ("path=%2Fhome%2Fann%2Fx", "path=~%2Fx"),
    ("path=%2Fhome%2Fbob%2Fx", "path=~%2Fx"),
    (
        "/nfs/home/bob/env/lib/python3.11/site-packages/keras/home/x.py",
        "~/env/lib/python3.11/site-packages/keras/home/x.py",
    ),
]
NO_HOMES = [
    "Adam optimizer; optimizer='adam'; keras.optimizers.Adam(1e-3)",
    "https://example.org/home/about",
    "/usr/lib/python3/site-packages/flask/home/index.py",
    "src/pages/home/index.ts",
    "the home/office ratio; model.home/x",
    "1/home/2",
    "/opt/tensorflow/core/x.cc",
]


@pytest.mark.parametrize(("text", "left"), HOMES)
def test_a_home_goes_whatever_is_before_it(text: str, left: str) -> None:
    anonymous = Anonymous(ANN)
    assert anonymous.text(text) == left
    assert anonymous.count == max(1, left.count("~"))
    assert anonymous.value({"a": [text]}) == {"a": [left]}


@pytest.mark.parametrize("text", NO_HOMES)
def test_a_folder_home_of_nobody_stays(text: str) -> None:
    assert Anonymous(ANN, Identity("", "", "adam")).text(text) == text


@pytest.mark.parametrize(
    ("home", "text", "left"),
    [
        ("/data/people/li", "/data/people/li/x", "~/x"),
        ("/data/people/li", "/data/people/lisa/x", "/data/people/lisa/x"),
        (
            "/data",
            "/mnt/data/train.csv /opt/app/data/x '/data/x'",
            "/mnt/data/train.csv /opt/app/data/x '~/x'",
        ),
    ],
)
def test_the_own_home_goes_wherever_it_is(home: str, text: str, left: str) -> None:
    assert Anonymous(Identity(home, "", "")).text(text) == left


def _bundle(host: str, cwd: str, prefix: str = "/opt/venv") -> dict[str, Any]:
    """One that a kernel on another machine of a cluster left in the shared folder."""
    header = {"pid": 5, "host": f"{host}/54114300", "cwd": cwd, "prefix": prefix}
    tail = [f"{host}: lost", f"{host.partition('.')[0].upper()} answers 'Bob Miller', bob_9 of C 4"]
    return {
        "id": "x",
        "format": [1, 1],
        "kernel": {"header": header, "events": [], "stderr_tail": tail},
    }


@pytest.mark.parametrize("host", ["gpu07", "gpu07.lab-smith.example"])
def test_an_export_elsewhere_does_not_report_where_the_kernel_ran(host: str) -> None:
    report = json.loads((WIRE / "report.json").read_text()) | {"stderr_tail": [f"at {host}"]}
    made = export(_bundle(host, "/mnt/c/Users/Bob Miller/p"), report, ANN)
    for name, text in made.files.items():
        for word in ("gpu07", "GPU07", "lab-smith", "Miller"):
            assert word not in text, (name, word)
    header = json.loads(made.files["bundle.json"])["kernel"]["header"]
    assert header["host"] == "[host]/54114300"
    assert header["cwd"] == "~/p"


def test_the_name_of_who_ran_the_kernel_is_found_in_its_folders() -> None:
    report = json.loads((WIRE / "report.json").read_text())
    for cwd, prefix in (("/home/bob_9/p", "/opt/venv"), ("/scratch", "/nfs/home/bob_9/venv")):
        made = export(_bundle("n1", cwd, prefix), report, ANN)
        assert "bob_9" not in made.files["bundle.json"]
    for odd in (
        {},
        {"kernel": None},
        {"kernel": {"header": [1]}},
        {"kernel": {"header": {"cwd": 5}}},
    ):
        export(odd, report, ANN)


WORDS = "mode='max'; tf.reduce_max; process.rss_bytes; memory limit; model.fit(data, 'train')"


@pytest.mark.parametrize("name", ["max", "process", "train", "data", "Max"])
def test_a_name_that_is_a_word_goes_only_where_a_name_is_meant(name: str) -> None:
    as_user = Anonymous(Identity("", name, "pc"))
    assert as_user.text(WORDS) == WORDS
    told = f"/scratch/{name}/x, {name}@node: /data/users/{name}; /opt/a/b/c/{name}"
    assert (
        as_user.text(told)
        == f"/scratch/[user]/x, [user]@node: /data/users/[user]; /opt/a/b/c/{name}"
    )
    as_host = Anonymous(Identity("", "ann", name))
    assert as_host.text(WORDS) == WORDS
    assert as_host.text(f"ann@{name}:~$ ") == "[user]@[host]:~$ "


@pytest.mark.parametrize("name", ["max", "bytes", "fit", "cafe"])
def test_the_words_of_the_format_stay_however_somebody_is_called(name: str) -> None:
    told = {
        "id": "20261121-021407-4711-cafe",
        "identity": {"kernel_id": "6f2b8a52-cafe-4c5e-9d0b-3b7c1d4e9a10"},
        "kernel": {
            "events": [{"kind": "fit_start", "t": 1.0, "what": "fit"}],
            "minutes": {"columns": ["time", "process.rss_bytes.max"], "rows": [[1.0, 2e9]]},
            "zed": {"cafe": "own keys too"},
        },
        "cause": "cgroup_oom",
        "memory": {"curves": [{"name": "process.rss_bytes", "unit": "bytes"}]},
    }
    assert Anonymous(Identity("", name, "pc")).value(told) == told
    assert Anonymous(Identity("", "ann", name)).value(told) == told


def test_what_is_no_word_of_the_format_is_text_under_any_key() -> None:
    told = {"kind": "ann was here", "name": "ann.h5", "columns": ["/home/bob/x"], "source": "a@ann"}
    assert Anonymous(ANN).value(told) == {
        "kind": "[user] was here",
        "name": "[user].h5",
        "columns": ["~/x"],
        "source": "a@[user]",
    }


BLOCKS = (
    "/home/", "/home/a", "/Users/a ", "/a", "://", "://a", "C:\\Users\\", "C:\\Users\\a ", "\\home\\", "a ", "/", "%2Fhome%2F",
    "%2F", "-I/home", "a:/users/a a", "/c/Users/", "max@", "ann", " /max", "\\n", ".", "//", "+/",
)  # fmt: skip


@pytest.mark.parametrize("block", BLOCKS)
def test_hostile_texts_end(block: str) -> None:
    """Patterns that backtrack would take hours here."""
    Anonymous(ANN, Identity("/data/li", "max", "memory")).text(block * (200_000 // len(block)))
