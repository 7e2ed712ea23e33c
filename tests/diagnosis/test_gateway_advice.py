"""Who learns nothing of an exit status is not sent to a server that cannot be had."""

from __future__ import annotations

import pytest

from jupyter_tfguard.diagnosis.diagnose import diagnose
from tests.rigs.examples import bundle_of

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("starter", "advice"),
    [
        ("python /opt/env/bin/jupyter-kernelgateway --port=8888", "host of the gateway"),
        ("/opt/env/bin/python -m kernel_gateway", "host of the gateway"),
        ("python /opt/env/bin/papermill in.ipynb out.ipynb", "Jupyter server with"),
        (None, "Jupyter server with"),
    ],
)
def test_the_advice_after_an_unseen_end_fits_the_program_that_started_the_kernel(
    starter: str | None, advice: str
) -> None:
    bundle = bundle_of("unknown/fires-no-trace-at-all.json")
    bundle["kernel"]["header"]["starter_command"] = starter
    best = diagnose(bundle).best
    assert best.cause == "unknown"
    assert advice in best.advice[0].title
