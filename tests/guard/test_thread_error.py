"""An exception that is raised in another thread."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.quick

PROGRAM = """
import sys, threading, time
from jupyter_tfguard.guard.thread_error import raise_in
until, caught = threading.Event(), []
def wait():
    try:
        until.wait()
        while True:
            time.sleep(0.001)
    except MemoryError:
        caught.append(True)
spared, stopped = (threading.Thread(target=until.wait if one else wait, daemon=True) for one in (True, False))
spared.start(), stopped.start()
raise_in(spared.ident, MemoryError)
raise_in(spared.ident, None)
raise_in(stopped.ident, MemoryError)
def call():
    pass
sys.setprofile(lambda *_: None)
for _ in range(100):
    call()
sys.setprofile(None)
until.set()
spared.join(), stopped.join()
print(caught)
"""


def test_code_under_a_profile_function_goes_on_while_a_thread_has_not_raised_its_exception() -> (
    None
):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[True]\n"
