"""What the tables say of TensorFlow builds, drivers, cuDNN and GPUs: exactly the releases that were read, and no other."""

from __future__ import annotations

import pytest
from packaging.version import Version

from jupyter_tfguard.diagnosis.catalog import table, verified
from jupyter_tfguard.diagnosis.catalog.cuda import cudnn_fits, cudnn_libraries, minimum_driver
from jupyter_tfguard.diagnosis.catalog.gpu_arch import Coverage, arch_covered, family_of
from jupyter_tfguard.diagnosis.catalog.tensorflow import (
    build_of,
    builds,
    gpu_code_of,
    series_build,
)

pytestmark = pytest.mark.quick

LAST_SIX = ["2.16.1", "2.16.2", "2.17.0", "2.17.1", "2.18.0", "2.18.1", "2.19.0", "2.19.1", "2.20.0", "2.21.0"]  # fmt: skip
NOT_RELEASES = ["2.22.0.dev20260101", "2.21.0rc1", "2.18.0+local", "2.21.0.post1", "2.22.0", "two"]


@pytest.mark.parametrize("version", LAST_SIX)
def test_the_last_six_series_are_complete(version: str) -> None:
    build = build_of(version)
    assert build is not None
    assert build.tested is not None
    assert build.cuda_build_version.startswith(build.tested.cuda)
    assert build.tested.cudnn.split(".")[0] == str(build.cudnn_major)
    assert build.gpu_code[-1].startswith("compute_")
    assert len(build.and_cuda) == 12
    [cudnn] = [need for need in build.and_cuda if "cudnn" in need.name]
    assert any(spec.version.startswith(build.tested.cudnn) for spec in cudnn.specifier)
    assert minimum_driver(build.cuda_build_version) is not None
    assert all(verified(r) for r in table("tensorflow_builds")["build"] if r["version"] == version)


@pytest.mark.parametrize("version", NOT_RELEASES)
def test_a_nightly_a_home_made_and_an_unread_build_are_not_in_the_table(version: str) -> None:
    assert build_of(version) is None
    assert arch_covered(version, "8.0") is None


def test_a_series_is_known_where_its_wheel_was_not_read() -> None:
    assert build_of("2.9.3") is None
    series = series_build("2.9.3")
    assert series is not None
    assert (series.cuda, series.cudnn) == ("11.2", "8.1")
    assert series_build("2.18.0.dev20240801") is None


@pytest.mark.parametrize(
    ("cuda", "driver", "toolkit_driver"),
    [
        ("13.0", "580", "580.65.06"),
        ("12.9", "525.60.13", "575.51.03"),
        ("12.5.1", "525.60.13", "555.42.06"),
        ("12.3", "525.60.13", "545.23.06"),
        ("11.8", "450.80.02", "520.61.05"),
        (
            "12.7",
            "525.60.13",
            None,
        ),  # there is no such toolkit; the rule of its family holds all the same
        ("10.1", "418.39", "418.39"),
    ],
)
def test_the_minimal_driver_of_a_toolkit(
    cuda: str, driver: str, toolkit_driver: str | None
) -> None:
    found = minimum_driver(cuda)
    assert found is not None
    assert (found.driver, found.toolkit_driver) == (driver, toolkit_driver)
    assert found.fits(driver) is True


def test_a_driver_serves_by_its_family_and_compiles_by_its_toolkit() -> None:
    needed = minimum_driver("12.5.1")
    assert needed is not None
    assert needed.fits("470.256.02") is False
    assert needed.fits("535.104.05") is True
    assert needed.fits("no driver") is None
    assert needed.compiles_ptx("535.104.05") is False
    assert needed.compiles_ptx("560.35.03") is True
    unread = minimum_driver("12.7")
    assert unread is not None
    assert unread.compiles_ptx("999.0") is None


@pytest.mark.parametrize("cuda", ["14.0", "9.0", "twelve", "12.5+local", ""])
def test_an_unread_toolkit_is_not_in_the_table(cuda: str) -> None:
    assert minimum_driver(cuda) is None


@pytest.mark.parametrize(
    ("version", "capability", "coverage", "code"),
    [
        ("2.21.0", "5.2", Coverage.NONE, None),
        ("2.16.2", "5.2", Coverage.NATIVE, "sm_50"),
        ("2.21.0", "7.5", Coverage.NATIVE, "sm_70"),
        ("2.15.1", "7.5", Coverage.NATIVE, "sm_75"),
        ("2.21.0", "8.6", Coverage.NATIVE, "sm_80"),
        ("2.21.0", "9.0", Coverage.NATIVE, "compute_90"),
        ("2.15.1", "9.0", Coverage.PTX, "compute_80"),
        ("2.21.0", "12.0", Coverage.PTX, "compute_90"),
        ("2.14.0", "3.5", Coverage.NATIVE, "sm_35"),
        ("2.15.0", "3.5", Coverage.NONE, None),
    ],
)
def test_which_build_runs_on_which_gpu(
    version: str, capability: str, coverage: Coverage, code: str | None
) -> None:
    found = arch_covered(version, capability)
    assert found is not None
    assert (found.coverage, found.code) == (coverage, code)


def test_what_users_met_on_a_card_is_reported_with_its_coverage() -> None:
    found = arch_covered("2.21.0", "12.0")
    assert found is not None
    assert found.reported is not None
    other = arch_covered("2.21.0", "10.0")
    assert other is not None
    assert other.reported is None
    assert arch_covered("2.21.0", "new") is None


def test_a_family_is_named_by_its_compute_capability() -> None:
    assert family_of("7.5") == "Turing"
    assert family_of("3.7") is None  # Kepler: that row is not verified
    assert family_of("99.0") is None


@pytest.mark.parametrize(
    ("loaded", "built", "fits"),
    [("9.3.0", "9.3", True), ("9.10.2", "9.3", True), ("9.1.1", "9.3", False), ("8.9.7", "9.3", False), ("10.0", "9.3", False), ("9.0.0", "9", True)],
)  # fmt: skip
def test_a_cudnn_serves_its_major_and_older_minor_versions(
    loaded: str, built: str, fits: bool
) -> None:
    assert cudnn_fits(loaded, built) is fits
    assert cudnn_fits("none", built) is None


def test_the_files_of_cudnn_belong_to_a_major_version() -> None:
    for major in (8, 9):
        files = cudnn_libraries(major)
        assert f"libcudnn.so.{major}" in files
        assert all(file.endswith(f".so.{major}") for file in files)
    assert cudnn_libraries(7) == ()


def test_which_packages_hold_gpu_code() -> None:
    names = ("tensorflow", "tensorflow_cpu", "tf-nightly", "my-tensorflow")
    assert [gpu_code_of(name) for name in names] == ["cuda", "none", "unknown", None]


def test_builds_come_newest_first() -> None:
    versions = [Version(build.version) for build in builds()]
    assert versions == sorted(versions, reverse=True)
