"""Tries the allocation gate with each TensorFlow from 2.15 on, with old and new NumPy, on Python 3.10 to 3.13.

Each row makes a virtual environment and runs the programs of ``tests/guard/test_gate.py`` in it, each under a memory limit of its own:

    python -m tests.soak.gate_versions [--only NAME ...] [--keep FOLDER] [--json]

A TensorFlow that passes may be added to the tested ones in ``guard/native.py``. Exit code 1 when a row failed.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.guard import test_gate
from tests.rigs.environments import CannotInstall, installed_environment, interpreter
from tests.rigs.trials import Outcome, try_rows

_ANYWHERE: tuple[Callable[[], None], ...] = (
    test_gate.test_numpy_gets_a_memory_error_and_the_process_goes_on,
    test_gate.test_a_huge_sparse_array_is_kept_on_disk,
    test_gate.test_a_block_on_disk_grows_and_shrinks_with_realloc,
    test_gate.test_a_long_call_into_c_gets_a_memory_error,
    test_gate.test_stop_restores_every_pointer_while_a_block_is_on_disk,
    test_gate.test_a_forked_child_is_not_refused_and_does_not_write_to_its_parent,
    test_gate.test_a_fourier_transform_gets_a_memory_error,
    test_gate.test_pandas_parser_reports_that_memory_is_short,
)


@dataclass(frozen=True)
class Row:
    """One combination to try."""

    name: str
    python: str
    packages: tuple[str, ...]


ROWS = (
    Row("2.15", "3.10", ("tensorflow-cpu==2.15.*", "numpy==1.26.*", "pandas==2.2.*")),
    Row("2.16", "3.12", ("tensorflow-cpu==2.16.*", "numpy==1.26.*", "pandas==2.2.*")),
    Row("2.17", "3.11", ("tensorflow-cpu==2.17.*", "numpy==1.26.*", "pandas==2.2.*")),
    Row("2.18", "3.10", ("tensorflow-cpu==2.18.*", "numpy==2.0.*", "pandas==2.2.*")),
    Row("2.19", "3.12", ("tensorflow-cpu==2.19.*", "numpy==2.1.*", "pandas==2.3.*")),
    Row("2.20", "3.13", ("tensorflow-cpu==2.20.*", "numpy==2.3.*", "pandas==2.3.*")),
    Row("2.21", "3.13", ("tensorflow-cpu==2.21.*", "numpy", "pandas")),
    Row("CUDA 2.17", "3.12", ("tensorflow==2.17.*", "pandas==2.2.*")),
    Row("CUDA 2.20", "3.11", ("tensorflow==2.20.*", "pandas")),
)


def _tensorflow() -> None:
    test_gate.check_tensorflow(test_gate.run("tensorflow", limit_mib=1536))


_PROGRAMS = (*_ANYWHERE, _tensorflow)


def main() -> int:
    return try_rows(str(__doc__).splitlines()[0], ROWS, lambda folder: None, _try)


def _try(row: Row, prepared: None, folder: Path) -> Outcome:
    python = interpreter((row.python,))
    if python is None:
        return "not run", f"no Python {row.python} on this machine"
    home = folder / row.name.replace(" ", "-")
    try:
        test_gate.PYTHON = str(
            installed_environment(home, ("psutil", "traitlets", *row.packages), python)
        )
    except CannotInstall as bad:
        return "not run", str(bad)
    return tried_programs()


def tried_programs() -> Outcome:
    """Run the programs with the interpreter ``test_gate.PYTHON``."""
    failed = []
    for program in _PROGRAMS:
        try:
            program()
        except AssertionError as bad:
            failed.append(
                f"{program.__name__}: {bad or traceback.extract_tb(bad.__traceback__)[-1].line}"
            )
    return ("FAILED", "; ".join(failed)) if failed else ("ok", f"{len(_PROGRAMS)} programs")


if __name__ == "__main__":
    sys.exit(main())
