"""What is installed, by metadata alone: damaged, twice, hidden; and the TensorFlow of this very environment."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jupyter_tfguard.collectors.packages import find_package, find_packages, library_owners
from jupyter_tfguard.collectors.versions import build_info, installed_tensorflow
from tests.rigs.made_machine import MadeMachine

pytestmark = pytest.mark.quick
FOLDERS = [Path(folder) for folder in sys.path if Path(folder).is_dir()]


def test_the_tensorflow_of_this_environment_reports_what_it_was_built_for() -> None:
    found = installed_tensorflow(FOLDERS, ("tensorflow", "tensorflow-cpu"))
    if found is None:
        pytest.skip("no TensorFlow here")
    assert found.is_cuda is not None
    assert found.package is not None
    assert found.package.version
    if found.is_cuda:
        assert found.cuda_build_version
        assert found.compute_capabilities


@pytest.mark.parametrize(
    "text",
    [
        "",
        "build_info = collections.OrderedDict([('cuda_version', open('/etc/passwd'))])",
        "(" * 500,
        "\0",
    ],
)
def test_build_information_that_says_nothing_is_unknown(tmp_path: Path, text: str) -> None:
    (tmp_path / "python" / "platform").mkdir(parents=True)
    (tmp_path / "python" / "platform" / "build_info.py").write_text(text)
    assert build_info(tmp_path) == {}


def test_two_copies_are_reported_in_the_order_of_import(tmp_path: Path) -> None:
    machine = MadeMachine(tmp_path)
    machine.package("numpy", "2.0.0")
    machine.package("numpy", "1.26.4", folder=tmp_path)
    found = find_packages("numpy", [tmp_path, machine.site])
    assert [package.version for package in found] == ["1.26.4", "2.0.0"]


def test_metadata_that_is_no_text_is_a_package_of_unknown_version(tmp_path: Path) -> None:
    (tmp_path / "numpy-2.0.0.dist-info").mkdir()
    (tmp_path / "numpy-2.0.0.dist-info" / "METADATA").write_bytes(b"Version: \xff\xfe\n" * 9)
    (tmp_path / "numpy-2.0.0.dist-info" / "RECORD").write_bytes(b"a.so\xff,,\n")
    found = find_package("numpy", [tmp_path])
    assert found is not None
    assert str(found) == "numpy of unknown version"
    assert library_owners([tmp_path]) == {}


def test_a_library_belongs_to_the_packages_that_list_it(tmp_path: Path) -> None:
    machine = MadeMachine(tmp_path)
    machine.package("nvidia-cudnn-cu12", "9.3.0.75", files=["nvidia/cudnn/lib/libcudnn.so.9"])
    machine.package("nvidia-cudnn-cu13", "9.9.0.1", files=["nvidia/cudnn/lib/libcudnn.so.9"])
    link = tmp_path / "lib64"
    link.symlink_to(machine.site)
    owners = library_owners([link])
    library = (link / "nvidia/cudnn/lib/libcudnn.so.9").resolve()
    assert sorted(p.name for p in owners[library]) == ["nvidia-cudnn-cu12", "nvidia-cudnn-cu13"]
