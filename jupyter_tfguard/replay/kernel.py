"""The kernel of a replayed notebook: it answers, so that the notebook opens as any other, and runs nothing."""

from __future__ import annotations

from typing import Any

from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel

from .kernel_name import KERNEL_NAME

_NOTHING_RUNS = "This notebook is a replay: its cells were recorded, and do not run.\n"


class ReplayKernel(Kernel):  # type: ignore[misc]
    """Says to each cell that it does not run."""

    implementation = KERNEL_NAME
    implementation_version = "1"
    banner = _NOTHING_RUNS
    language_info = {"name": "python", "mimetype": "text/x-python", "file_extension": ".py"}  # noqa: RUF012

    async def do_execute(
        self, code: str, silent: bool, *args: Any, **kwargs: Any
    ) -> dict[str, Any]:
        """Answer; nothing is run."""
        if not silent and code.strip():
            self.send_response(
                self.iopub_socket, "stream", {"name": "stdout", "text": _NOTHING_RUNS}
            )
        count = self.execution_count
        return {"status": "ok", "execution_count": count, "payload": [], "user_expressions": {}}


if __name__ == "__main__":
    IPKernelApp.launch_instance(kernel_class=ReplayKernel)
