"""How an installed version lies to the range that TensorFlow asks for."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from jupyter_tfguard.doctor.build import python_was_tested
from jupyter_tfguard.doctor.requirements import Fit, fit_of, highest_major, needs
from tests.rigs.made_machine import MadeMachine

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("version", "wanted", "fit"),
    [
        ("1.26.4", ">=1.26.0,<2.2.0", Fit.FITS),
        ("1.25.2", ">=1.26.0,<2.2.0", Fit.BELOW),
        ("2.2.0", ">=1.26.0,<2.2.0", Fit.ABOVE),
        ("3.0", ">=1.26.0,<2.2.0", Fit.ABOVE_MAJOR),
        ("2.0.0", ">=1.23.5,<2.0.0", Fit.ABOVE_MAJOR),
        ("1.24.4", ">=1.22,<=1.24.3", Fit.ABOVE),
        ("5.0.0", ">=3.20.3,!=4.21.0,<5.0.0dev", Fit.ABOVE_MAJOR),
        ("4.21.0", ">=3.20.3,!=4.21.0,<5.0.0dev", Fit.EXCLUDED),
        ("0.4.0", "~=0.3.1", Fit.ABOVE),
        ("0.3.0", "~=0.3.1", Fit.BELOW),
        ("9.1.0.70", "==9.3.0.75", Fit.BELOW),
        ("2.18.0", "==2.19.*", Fit.BELOW),
        ("2.1.0rc1", ">=1.26.0", Fit.FITS),
        ("7", "", Fit.FITS),
        (None, ">=1", Fit.UNKNOWN),
        ("garbage", ">=1", Fit.UNKNOWN),
    ],
)
def test_a_version_lies_inside_or_on_one_side(version: str | None, wanted: str, fit: Fit) -> None:
    assert fit_of(version, SpecifierSet(wanted)) is fit


@pytest.mark.parametrize(
    ("wanted", "highest"),
    [("<5.0.0dev", 4), ("<2.2.0", 2), ("<=1.24.3", 1), (">=1", None), ("<3,<2.1", 2), ("==2.*", 2)],
)
def test_the_highest_major_version_of_a_range(wanted: str, highest: int | None) -> None:
    assert highest_major(SpecifierSet(wanted)) == highest


@pytest.mark.parametrize(
    ("pythons", "version", "inside"),
    [
        ("3.9-3.12", "3.12.4", True),
        ("3.9-3.12", "3.13.0", False),
        ("2.7, 3.5-3.7", "2.7.18", True),
        ("2.7, 3.5-3.7", "3.4.0", False),
        ("3.10-3.13", "3.9.1", False),
        ("3.10-3.13", "3.14.0rc1", False),
    ],
)
def test_a_python_lies_in_what_was_tested(pythons: str, version: str, inside: bool) -> None:
    assert python_was_tested(pythons, version) is inside


def test_needs_follow_the_markers_of_the_machine_that_is_looked_at(tmp_path: Path) -> None:
    machine = MadeMachine(tmp_path)
    machine.tensorflow("2.17.0")
    for python, lowest in (("3.11.9", ">=1.23.5"), ("3.12.4", ">=1.26.0")):
        (numpy,) = [
            n for n in needs(machine.environment(python_version=python)) if n.name == "numpy"
        ]
        assert numpy.asked == f"{lowest},<2.0.0"
    here = machine.environment()
    assert not [n for n in needs(here) if n.name.startswith("nvidia")]
    assert [n for n in needs(here, "and-cuda") if n.name.startswith("nvidia")]
