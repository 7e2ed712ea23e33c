"""The life of tensors in small programs, worked out by hand."""

from __future__ import annotations

import pytest

from jupyter_tfguard.predict.traced.liveness import WAITING_BATCHES, Simulation, Touched
from jupyter_tfguard.predict.traced.program import Linear, Loop, Op, Program, TensorSize

pytestmark = pytest.mark.quick
MIB = 1 << 20
BATCH = 4
# One MiB for each sample.
BATCHED = TensorSize(1, (Linear(0, 1), Linear(MIB)))
FIXED = TensorSize(1, (Linear(3 * MIB),))


def program(*ops: tuple[str, tuple[int, ...], tuple[int, ...]], **more: object) -> Program:
    """A program from kinds, inputs and outputs; every tensor has `BATCHED` size."""
    makers = {tensor: number for number, op in enumerate(ops) for tensor in op[2]}
    found = Program(sizes=[BATCHED] * len(makers))
    for number, (kind, inputs, outputs) in enumerate(ops):
        before = tuple(sorted({makers[tensor] for tensor in inputs}))
        found.ops.append(Op(kind, f"op_{number}", inputs, outputs, before))
    for name, value in more.items():
        setattr(found, name, value)
    return found


def touched(what: Program, batch_size: int = BATCH, free_bytes: int = 0) -> Touched:
    return Simulation(what, batch_size, free_bytes).run(seed=1, workers=1)


def test_a_tensor_is_free_after_its_last_use() -> None:
    chain = program(("Conv2D", (), (0,)), ("Conv2D", (0,), (1,)), ("Conv2D", (1,), (2,)))
    assert touched(chain).live_bytes == 2 * BATCH * MIB


def test_a_branch_is_done_before_the_next_one_begins() -> None:
    branches = program(
        *(("Conv2D", (), (place,)) for place in range(4)),
        *(("Conv2D", (place,), (place + 4,)) for place in range(4)),
        *(("MatMul", (place + 4,), ()) for place in range(4)),
    )
    assert touched(branches).live_bytes == 2 * BATCH * MIB


def test_a_tensor_that_is_used_later_is_kept() -> None:
    kept = program(
        ("Conv2D", (), (0,)), ("Conv2D", (0,), (1,)), ("Conv2D", (1,), (2,)), ("MatMul", (0, 2), ())
    )
    assert touched(kept).live_bytes == 3 * BATCH * MIB


@pytest.mark.parametrize("kind", ["Relu", "Reshape"])
def test_a_result_can_take_the_memory_of_an_input(kind: str) -> None:
    one = program(("Conv2D", (), (0,)), (kind, (0,), (1,)), ("Conv2D", (1,), (2,)))
    assert touched(one).live_bytes == 2 * BATCH * MIB


def test_an_input_that_is_needed_later_is_not_overwritten() -> None:
    both = program(("Conv2D", (), (0,)), ("Relu", (0,), (1,)), ("MatMul", (0, 1), ()))
    assert touched(both).live_bytes == 2 * BATCH * MIB


def test_memory_grows_with_the_batch() -> None:
    chain = program(("Conv2D", (), (0,)), ("Conv2D", (0,), (1,)))
    assert [touched(chain, size).live_bytes for size in (1, 10)] == [2 * MIB, 20 * MIB]


def test_small_tensors_are_not_in_the_pool() -> None:
    small = program(("Conv2D", (), (0,)), sizes=[TensorSize(4, (Linear(100),))])
    assert touched(small) == Touched(pool_bytes=0, small_bytes=400, live_bytes=400)


def changed_variable(*, is_read_later: bool) -> Program:
    found = program(
        ("ReadVariableOp", (), (0,)),
        ("MatMul", (0,), (1,)),
        ("AssignSubVariableOp", (1,), ()),
        *([("MatMul", (0,), ())] if is_read_later else []),
        sizes=[FIXED, FIXED],
        variables={"weight": FIXED},
        existing={"weight"},
    )
    found.ops[0].variable = found.ops[2].variable = "weight"
    if is_read_later:
        found.ops[3].waits_for = (2,)
    return found


@pytest.mark.parametrize(("is_read_later", "count"), [(False, 1), (True, 2)])
def test_a_variable_is_copied_only_if_its_old_value_is_in_use(
    is_read_later: bool, count: int
) -> None:
    found = touched(changed_variable(is_read_later=is_read_later))
    assert found.live_bytes == count * 3 * MIB


def test_new_variables_count_and_existing_ones_do_not() -> None:
    sizes = {"old": FIXED, "new": FIXED}
    found = touched(program(variables=sizes, existing={"old"}))
    assert found == Touched(pool_bytes=3 * MIB, small_bytes=0, live_bytes=3 * MIB)


def test_the_data_count_as_copies_and_as_batches_that_wait() -> None:
    one = program(("Placeholder", (), (0,)), ("Conv2D", (0,), (1,)), data=[0])
    found = Simulation(one, BATCH, copies_bytes=60 * MIB).run(seed=1, workers=1)
    assert found.live_bytes == 60 * MIB + (WAITING_BATCHES + 1) * BATCH * MIB + BATCH * MIB


def test_without_a_pool_malloc_has_all_tensors() -> None:
    chain = program(("Conv2D", (), (0,)), ("Conv2D", (0,), (1,)), ("Conv2D", (1,), (2,)))
    found = Simulation(chain, BATCH, has_pool=False).run(seed=1, workers=1)
    assert found == Touched(0, small_bytes=2 * BATCH * MIB, live_bytes=2 * BATCH * MIB)


@pytest.mark.parametrize(("batch_count", "batches"), [(1, 1), (3, 3), (50, 5), (None, 5)])
def test_no_more_batches_wait_than_there_are(batch_count: int | None, batches: int) -> None:
    one = program(("Placeholder", (), (0,)), ("Relu", (0,), (1,)), data=[0])
    found = Simulation(one, BATCH, batch_count=batch_count)
    assert found.data_bytes == batches * BATCH * MIB
    assert found.run(seed=1, workers=1).live_bytes == (batches + 1) * BATCH * MIB


def test_free_memory_of_the_pool_is_used_first() -> None:
    one = program(("Conv2D", (), (0,)))
    assert touched(one, free_bytes=2 * BATCH * MIB).pool_bytes == 0


def test_what_initializers_left_is_used_whole() -> None:
    sizes = {f"weight_{number}": TensorSize(1, (Linear(4 * MIB),)) for number in range(3)}
    slots = {f"slot_{number}": TensorSize(1, (Linear(4 * MIB),)) for number in range(2)}
    built = program(variables=sizes | slots, existing=set(sizes))
    assert touched(built, free_bytes=8 * MIB).pool_bytes == 0
    assert touched(built).pool_bytes == 8 * MIB


def test_an_operation_needs_its_copies_only_while_it_runs() -> None:
    one = program(("Conv2D", (), (0,)), ("Einsum", (0,), (1,)), ("Conv2D", (1,), (2,)))
    one.ops[1].copied = (0, 1)
    assert touched(one).live_bytes == 4 * BATCH * MIB


def test_a_loop_keeps_what_every_iteration_adds() -> None:
    body = program(("Placeholder", (), (0,)), ("MatMul", (0,), (1,)), ("MatMul", (1,), (2,)))
    looping = program(("EmptyTensorList", (), (0,)), ("While", (0,), (1,)), ("While", (1,), ()))
    looping.sizes = [TensorSize(0)] * 2
    looping.ops[1].loop = Loop(body, Linear(5), pushed={0: [1]}, fixed={0})
    looping.ops[2].loop = Loop(program(), Linear(5))
    # Five results are kept; the last one of an iteration is not.
    assert touched(looping).live_bytes == (5 + 1) * BATCH * MIB
