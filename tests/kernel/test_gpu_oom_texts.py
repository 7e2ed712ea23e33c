"""Which errors are told as a GPU's memory that ran out, and in which words; without a kernel."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from jupyter_tfguard.batch_place import IN_ARGUMENT
from jupyter_tfguard.kernel.cells.gpu_oom import (
    Beginning,
    GpuOomNotice,
    out_of_memory_text,
    speaks_of_gpu,
)
from jupyter_tfguard.record.events import Event, GpuOom
from tests.kernel.gpu_oom_rig import (
    COPY,
    FULL,
    ON_CPU,
    ON_GPU,
    PINNED,
    TENSOR,
    XLA,
    XLA_LOG,
    XLA_RAISED,
)


def error(message: str, name: str = "ResourceExhaustedError") -> Exception:
    """An error of a class that looks like TensorFlow's."""
    module = "tensorflow.python.framework.errors_impl"
    kind = type(name, (Exception,), {"__module__": module, "message": message})
    made: Exception = kind(message)
    return made


@pytest.mark.quick
class TestFinding:
    def test_the_text_is_taken_from_the_error_and_what_it_came_from(self) -> None:
        assert out_of_memory_text(error(ON_GPU)) == ON_GPU
        wrapped = RuntimeError("mine")
        wrapped.__cause__ = error(ON_GPU)
        assert out_of_memory_text(wrapped) == ON_GPU
        hidden = KeyError("mine")
        hidden.__context__ = error(ON_GPU)
        assert out_of_memory_text(hidden) == ON_GPU
        hidden.__suppress_context__ = True  # raise ... from None
        assert out_of_memory_text(hidden) is None

    def test_errors_that_lead_to_each_other_end(self) -> None:
        one, other = RuntimeError("a"), RuntimeError("b")
        one.__cause__, other.__cause__ = other, one
        assert out_of_memory_text(one) is None
        for _ in range(100):
            deeper = RuntimeError("c")
            deeper.__cause__ = one
            one = deeper
        assert out_of_memory_text(one) is None

    def test_a_class_of_the_users_with_that_name_is_not_tensorflows(self) -> None:
        mine = type("ResourceExhaustedError", (Exception,), {"__module__": "__main__"})
        assert out_of_memory_text(mine("no disk")) is None

    def test_a_copy_to_the_gpu_that_failed_is_one_too(self) -> None:
        assert out_of_memory_text(error(COPY, "InternalError")) == COPY
        assert out_of_memory_text(error("Blas GEMM launch failed", "InternalError")) is None

    @pytest.mark.parametrize(
        ("message", "native", "made", "gpu"),
        [
            (ON_GPU, "", False, True),
            (TENSOR.format(device="GPU:3", allocator="gpu_async_3"), "", True, True),
            (ON_CPU, FULL, True, False),
            (TENSOR.format(device="CPU:0", allocator="mklcpu"), "", True, False),
            (PINNED, "", True, False),
            (XLA, "", False, False),
            (XLA, "", True, True),
            (XLA, FULL, False, True),
            (XLA_RAISED, XLA_LOG, True, True),
            (XLA_RAISED, "", False, False),
            (COPY, "", True, True),
            ("failed to allocate memory [Op:Mul]", "", True, False),
            ("failed to allocate memory [Op:Mul]", FULL, True, True),
            ("No space left on device", "", True, False),
            (
                "quota of the data service",
                "Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.25GiB with freed_by_count=0. The caller "
                "indicates that this is not a failure, but may mean that there could be performance gains.",
                True,
                False,
            ),
        ],
    )
    def test_it_is_the_gpus_memory_only_where_the_text_says_so(
        self, message: str, native: str, made: bool, gpu: bool
    ) -> None:
        assert speaks_of_gpu(message, native, gpu_made=made) is gpu


@pytest.mark.quick
class TestTelling:
    def notice(self, events: list[Event], native: str, *, prints: bool = True) -> GpuOomNotice:
        return GpuOomNotice(
            events.append,
            lambda: 8192,
            lambda place: native,
            lambda seconds: None,
            lambda: SimpleNamespace(started=10.0, batch_size=64, batch_place=IN_ARGUMENT),  # type: ignore[arg-type,return-value]
            lambda: True,
            prints=prints,
        )

    def test_switched_off_it_prints_nothing_and_the_panel_hears_of_it(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        events: list[Event] = []
        notice = self.notice(events, FULL, prints=False)
        notice.report(error(ON_GPU), Beginning(0, 9.0), 7)
        assert capsys.readouterr() == ("", "")
        assert [event.kind for event in events] == ["gpu_oom"]

    def test_only_the_fit_of_this_cell_counts(self, capsys: pytest.CaptureFixture[str]) -> None:
        events: list[Event] = []
        notice = self.notice(events, FULL)
        notice.report(error(ON_GPU), Beginning(0, 9.0), 7)
        assert "batch_size=32) instead of 64" in capsys.readouterr().err
        notice.report(error(ON_GPU), Beginning(0, 11.0), 8)
        assert "batch_size" not in capsys.readouterr().err
        assert [event.execution_count for event in events if isinstance(event, GpuOom)] == [7, 8]

    def test_a_fit_that_xla_compiled_gets_its_lines_too(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        notice = self.notice([], XLA_LOG)
        notice.report(error(XLA_RAISED), Beginning(0, 9.0), 7)
        first, second, third = capsys.readouterr().err.splitlines()
        assert first == "tfguard: the GPU ran out of memory: requested 4.02 GiB, limit 2.00 GiB."
        assert second == "Largest blocks: unknown (XLA does not log them)."
        assert "batch_size=32) instead of 64" in third

    def test_text_from_outside_makes_no_line_longer_than_a_line(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        events: list[Event] = []
        long = FULL.replace("Conv2D", "x" * 5000).replace(" next 1", f" by op {'y' * 5000} next 1")
        self.notice(events, long).report(error(ON_GPU), Beginning(0, 9.0), 7)
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 3
        assert max(map(len, lines)) <= 401
