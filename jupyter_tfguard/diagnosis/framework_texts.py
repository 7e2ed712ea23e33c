"""Words for advice that depends on the framework a log is from: which build, which driver, how to start workers."""

from __future__ import annotations

from .ending import TextEvidence
from .evidence import Evidence
from .frameworks import framework_of
from .gpu_stack import which_builds_run, which_driver_fits

Words = dict[str, str]
_NAMES = {"jax": "JAX", "pytorch": "PyTorch"}


def _other_framework(seen: Evidence) -> str | None:
    """``jax`` or ``pytorch``, if a pasted log is from one of them."""
    if seen.pasted is None:
        return None
    sign = seen.verdict.sign if seen.verdict is not None else None
    found = framework_of(seen.story.lines, sign.index if sign is not None else None)
    return found if found in _NAMES else None


def forked_words(seen: Evidence, text: TextEvidence) -> Words:
    """``forked``, and the framework whose import starts threads; empty for a mutex that two libraries share."""
    if "mutex" in text.details:
        return {}
    other = _other_framework(seen)
    return {"forked": "yes", f"of_{other or 'tensorflow'}": "yes"}


def driver_words(seen: Evidence, _: TextEvidence) -> Words:
    """What to build for an older CUDA, and for TensorFlow which driver fits which build."""
    other = _other_framework(seen)
    if other is not None:
        return {"program": f"a {_NAMES[other]}"}
    fits = which_driver_fits(seen)
    return {"program": "a TensorFlow"} | ({"driver_that_fits": fits} if fits else {})


def build_words(seen: Evidence, _: TextEvidence) -> Words:
    """For TensorFlow, which published builds contain code for the GPU."""
    other = _other_framework(seen)
    if other is not None:
        return {f"of_{other}": "yes"}
    run = which_builds_run(seen)
    return {"of_tensorflow": "yes"} | ({"builds_that_run": run} if run else {})
