"""The quick estimate with real models: they are unchanged, and its parts and rules hold. test_quick_models.py has kinds of models."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jupyter_tfguard.predict.traced.quick import largest_below
from tests.kernel.rig import GuardedKernel, works
from tests.predict.quick_rig import quick_kernel


@pytest.fixture(scope="module")
def keras_kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKernel]:
    with quick_kernel(tmp_path_factory.mktemp("quick")) as kernel:
        yield kernel


@pytest.mark.quick
@pytest.mark.parametrize("fixed", [0, 700_000])
@pytest.mark.parametrize("each", [1_000, 30_000, 2_000_000])
@pytest.mark.parametrize("page", [1, 1 << 20])
@pytest.mark.parametrize("limit", [100, 1 << 20])
def test_the_largest_number_is_found_with_few_calls(
    fixed: int, each: int, page: int, limit: int
) -> None:
    calls = []

    def need(size: int) -> int:
        calls.append(size)
        return -(-(fixed + each * size) // page) * page

    available = 900_000_000
    found = largest_below(need, available, limit)
    assert found is not None
    assert need(found) <= available
    larger = found + max(1, found // 32) + 1
    assert larger > limit or need(larger) > available
    assert len(calls) < 16
    assert largest_below(need, need(limit), limit) == limit
    assert largest_below(need, need(1) - 1, limit) is None


def test_the_model_is_unchanged(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        def state(model):
            compiled = (model._compile_metrics, model._compile_loss)
            return {
                "weights": [w.numpy().tolist() for w in model.variables],
                "optimizer": [w.numpy().tolist() for w in model.optimizer.variables],
                "optimizer is built": model.optimizer.built,
                "slots": len(vars(model.optimizer).get("_momentums", ())),
                "metrics": [m.name for m in model.metrics],
                "built": [one.built for one in compiled],
                "attributes": [sorted(vars(one)) for one in (model, model.optimizer, *compiled)],
                "layers": [len(layer.losses) for layer in model.layers],
                "train function": model.train_function,
                "random": (random.getstate(), np.random.get_state()[1].tolist()),
                "seeds": [layer.seed_generator.state.numpy().tolist() for layer in model.layers
                          if hasattr(layer, "seed_generator")],
            }

        parts = layers.Dense(50, activity_regularizer="l2"), layers.BatchNormalization(), layers.Dropout(0.5)
        model = seq(*parts, layers.Dense(1), metrics=["mae", keras.metrics.MeanSquaredError()])
        tf.random.set_seed(1)
        following = tf.random.uniform((3,)).numpy().tolist(), tf.random.uniform((3,)).numpy().tolist()
        tf.random.set_seed(1)
        tf.random.uniform((3,))
        before = state(model)
        predicted(model, data(100)).at(32)
        assert state(model) == before
        assert not model.optimizer.built and tf.random.uniform((3,)).numpy().tolist() == following[1]
        assert layers.Dense(1).name == "dense_2"

        model.fit(**data(100), verbose=0)
        before = state(model)
        function = model.train_function
        predicted(model, data(100)).at(32)
        assert state(model) == before and model.train_function is function
        model.fit(**data(100), verbose=0)
        assert model.optimizer.iterations.numpy() == 2
        """,
    )


def test_the_graph_is_free_afterwards(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        import gc
        from tensorflow.python.framework import ops as graphs

        def op_count():
            return sum(type(one).__name__ == "Operation" for one in gc.get_objects())

        @tf.custom_gradient
        def own(x):
            return x, lambda dy: dy

        model = seq(layers.Dense(8), layers.Lambda(own, output_shape=(8,)), layers.Dense(1))
        predicted(model, data(100))
        gc.collect()
        gc.disable()
        names, before = set(graphs.gradient_registry.list()), op_count()
        program = predicted(model, data(100))._program
        assert set(graphs.gradient_registry.list()) == names
        left = op_count() - before
        assert left < len(program.ops) / 2, (left, len(program.ops))
        gc.collect()
        assert op_count() == before
        gc.enable()
        """,
    )


def test_nothing_is_allocated_for_the_slots(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        model = seq(layers.Dense(50_000))
        arguments = data(100, y=(50_000,))
        before = tf.config.experimental.get_memory_info("CPU:0")["current"]
        prediction = alone(model, arguments)
        after = tf.config.experimental.get_memory_info("CPU:0")["current"]
        assert after - before < MB, after - before
        weights = 4 * 101 * 50_000
        assert abs(prediction.at(1).slots_bytes - 2 * weights) < 100
        assert 0 < prediction.at(1).gradients_bytes <= weights
        """,
    )


def test_a_larger_batch_needs_more_and_the_largest_that_fits_is_found(
    keras_kernel: GuardedKernel,
) -> None:
    works(
        keras_kernel,
        """
        convolutions = [layers.Conv2D(32, 3, activation="relu") for _ in range(3)]
        model = seq(*convolutions, layers.Flatten(), layers.Dense(1), shape=(64, 64, 3))
        prediction = predicted(model, data(64, 64, 3))
        small, large = prediction.at(8), prediction.at(80)
        assert small.low_bytes < small.best_bytes < small.high_bytes
        live = [prediction.features(batch).live_bytes for batch in (8, 80)]
        assert 8 < live[1] / live[0] < 12, live
        parts = ("gradients", "slots", "activations", "graph", "data")
        assert sum(getattr(large, f"{part}_bytes") for part in parts) == large.best_bytes
        assert large.unknown == ()

        found = prediction.largest_batch(large.high_bytes)
        assert 80 * 0.9 < found and prediction.at(found).high_bytes <= large.high_bytes
        assert prediction.largest_batch(MB) is None

        without = alone(model, data(64, 64, 3))
        without._has_pool = False  # as without oneDNN
        assert without.features(8).pool_bytes == 0 < 10 * MB < without.features(8).small_bytes
        """,
    )


def test_a_loop_keeps_the_states_of_all_steps(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        sizes = []
        for steps in (50, 100):
            model = seq(layers.LSTM(256), layers.Dense(1), shape=(None, 16))
            prediction = predicted(model, data(steps, 16))
            sizes.append(prediction.features(512).live_bytes)
            assert set(prediction.at(512).unknown) <= {model.layers[0].name}
        states = 512 * 256 * 4
        assert sizes[1] - sizes[0] > 5 * 50 * states, sizes
        """,
    )


def test_a_product_with_one_and_a_sum_with_zero_compute_nothing(
    keras_kernel: GuardedKernel,
) -> None:
    works(
        keras_kernel,
        """
        def computed(change):
            model = seq(layers.Dense(500), layers.Lambda(change), layers.Dense(1))
            ops = predicted(model, data(100))._program.ops
            return {op.kind for op in ops if "lambda" in op.name} & {"Mul", "AddV2"}

        assert computed(lambda t: t * 1.0 + 0.0) == set()
        assert computed(lambda t: t * 2.0 + 3.0) == {"Mul", "AddV2"}
        """,
    )


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_needs_less(keras_kernel: GuardedKernel, policy: str) -> None:
    works(
        keras_kernel,
        f"""
        sizes = []
        for policy in ("float32", "{policy}"):
            keras.config.set_dtype_policy(policy)
            model = seq(*(layers.Dense(500, activation="relu") for _ in range(6)), layers.Dense(1))
            sizes.append(step_bytes(model, data(100), 20_000))
        keras.config.set_dtype_policy("float32")
        assert 0.45 < sizes[1] / sizes[0] < 0.75, sizes
        """,
    )


def test_a_weight_changes_as_soon_as_its_gradient_is_there(keras_kernel: GuardedKernel) -> None:
    works(
        keras_kernel,
        """
        model = seq(*(layers.Dense(300) for _ in range(3)), optimizer="sgd")
        program = predicted(model, data(100, y=(300,)))._program
        assert not [op for op in program.ops if op.kind == "IdentityN"]
        needed, waiting = set(), [next(n for n, op in enumerate(program.ops) if op.kind == "AssignSubVariableOp")]
        while waiting:
            if (number := waiting.pop()) not in needed:
                needed.add(number)
                waiting += program.ops[number].waits_for
        others = sum(op.kind == "AssignSubVariableOp" for op in program.ops) - 1
        products = [op.name for op in program.ops if op.kind == "MatMul"]
        used = [program.ops[number].name for number in needed if program.ops[number].kind == "MatMul"]
        assert others == 5 and len(used) < len(products), (products, used)
        """,
    )
