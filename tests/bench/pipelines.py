"""Forms of tf.data pipelines, each with the batch size that ``fit`` will train with: is it known before the fit?

``python -m tests.bench.pipelines`` prints, for each form, the batch size of the panel and whether the estimate
answers. Forms whose batches only running code decides have no answer: their batch size here is None.
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

PREPARE = """
import numpy as np, tensorflow as tf, keras, itertools, os, tempfile
Dataset, experimental = tf.data.Dataset, tf.data.experimental
x, y = np.zeros((200, 8), "float32"), np.zeros((200, 1), "float32")
slices = Dataset.from_tensor_slices((x, y))
one = tf.TensorSpec((8,)), tf.TensorSpec((1,))
batch_spec = tf.TensorSpec((None, 8)), tf.TensorSpec((None, 1))
fixed_spec = tf.TensorSpec((4, 8)), tf.TensorSpec((4, 1))
samples = Dataset.from_generator(lambda: iter([(x[0], y[0])] * 64), output_signature=one)
batched = slices.batch(8)
always = tf.autograph.experimental.do_not_convert(lambda *element: True)
folder = tempfile.mkdtemp(prefix="tfguard-pipelines-")
with open(os.path.join(folder, "a.csv"), "w") as file:
    file.write("a,b\\n" + "1.0,2.0\\n" * 40)
for kind in ("cat", "dog"):
    os.mkdir(os.path.join(folder, kind))
    for number in range(20):
        with open(os.path.join(folder, kind, f"{number}.txt"), "w") as file:
            file.write("text")
"""


class Form(NamedTuple):
    """A pipeline.

    Attributes:
        name: For the table.
        code: An expression; ``PREPARE`` makes its names.
        batch_size: What a batch of the fit has; None if it is not known before.
        change: How its batch size is changed to 4.
        sample_count: Number of samples at most; None if unknown.
    """

    name: str
    code: str
    batch_size: int | None
    change: str = ".batch(4) in the pipeline"
    sample_count: int | None = None


_GENERATOR = "batches of 4 from the generator"
FORMS = (
    Form("arrays in slices", "batched", 8, sample_count=200),
    Form("shuffled, repeated", "slices.shuffle(50).repeat(2).batch(8).prefetch(1)", 8, sample_count=200),
    Form("repeated for ever", "slices.repeat().batch(8)", 8, sample_count=200),
    Form("cached, with options", "batched.cache().with_options(tf.data.Options())", 8, sample_count=200),
    Form("mapped", "batched.map(lambda a, b: (a, b), num_parallel_calls=2)", 8, sample_count=200),
    Form("parallel batches", "slices.batch(8, num_parallel_calls=2)", 8, sample_count=200),
    Form("generator", "samples.batch(8)", 8),
    Form("generator, drop_remainder", "samples.batch(8, drop_remainder=True)", 8),
    Form("generator of equal batches", "Dataset.from_generator(lambda: iter([]), output_signature=fixed_spec)", 4, _GENERATOR),
    Form("filter", "slices.filter(always).batch(8)", 8, sample_count=200),
    Form("filter after batch", "batched.filter(always)", 8, sample_count=200),
    Form("interleave", "Dataset.range(4).interleave(lambda n: slices).batch(8)", 8),
    Form("interleave of batches", "Dataset.range(4).interleave(lambda n: slices.batch(8), num_parallel_calls=2)", 8),
    Form("interleave, batches made before", "Dataset.range(4).interleave(lambda n: batched)", 8, sample_count=200),
    Form("flat_map of batches", "Dataset.range(4).flat_map(lambda n: slices.batch(8))", 8),
    Form("unbatch", "slices.batch(16).unbatch().batch(8)", 8, sample_count=200),
    Form("skip", "batched.skip(2)", 8, sample_count=184),
    Form("take", "batched.take(2)", 8, sample_count=16),
    Form("shard", "slices.shard(2, 0).batch(8)", 8, sample_count=100),
    Form("take_while", "batched.take_while(always)", 8, sample_count=200),
    Form("scan", "batched.scan(0, lambda state, element: (state + 1, element))", 8, sample_count=200),
    Form("concatenate", "batched.concatenate(slices.batch(4))", 8, sample_count=400),
    Form("snapshot", "batched.snapshot(os.path.join(folder, 'snapshot'))", 8, sample_count=200),
    Form("ignore_errors", "batched.ignore_errors()", 8, sample_count=200),
    Form("zip", "Dataset.zip((Dataset.from_tensor_slices(x).batch(8), Dataset.from_tensor_slices(y).batch(8)))", 8, sample_count=200),
    Form("sample_from_datasets", "Dataset.sample_from_datasets([batched, batched])", 8, sample_count=400),
    Form("choose_from_datasets", "Dataset.choose_from_datasets([batched, batched], Dataset.range(2).repeat())", 8, sample_count=400),
    Form("rejection_resample", "slices.rejection_resample(lambda a, b: 0, [1.0]).map(lambda c, e: e).batch(8)", 8),
    Form("rebatch", "slices.batch(16).rebatch(64)", 64, ".rebatch(4) in the pipeline", 200),
    Form("window", "slices.window(8).flat_map(lambda a, b: Dataset.zip((a.batch(8), b.batch(8))))", 8),
    Form("group_by_window", "slices.group_by_window(lambda a, b: tf.constant(0, tf.int64), lambda k, w: w.batch(8), window_size=8)", 8),
    Form(
        "bucket_by_sequence_length",
        "slices.bucket_by_sequence_length(lambda a, b: tf.shape(a)[0], [10], [8, 4])",
        8,
        "bucket_batch_sizes of at most 4 in bucket_by_sequence_length",
    ),
    Form("padded_batch", "slices.padded_batch(8)", 8, ".padded_batch(4) in the pipeline", 200),
    Form("ragged_batch", "slices.ragged_batch(8)", 8, ".ragged_batch(4) in the pipeline", 200),
    Form("from_tensors", "Dataset.from_tensors((x, y))", 200, sample_count=200),
    Form("unique", "slices.enumerate().map(lambda n, e: e).batch(8)", 8, sample_count=200),
    Form("records", "tf.data.TFRecordDataset(['none']).map(lambda s: (tf.zeros(8), tf.zeros(1))).batch(8)", 8),
    Form("text lines", "tf.data.TextLineDataset(['none']).map(lambda s: (tf.zeros(8), tf.zeros(1))).batch(8)", 8),
    Form("assert_cardinality", "samples.batch(8).apply(experimental.assert_cardinality(8))", 8),
    Form(
        "data service",
        "batched.apply(experimental.service.distribute('parallel_epochs', SERVER.target))",
        8,
        sample_count=200,
    ),
    Form(
        "make_csv_dataset",
        "experimental.make_csv_dataset(os.path.join(folder, 'a.csv'), 8, label_name='b', num_epochs=1)",
        8,
        "batch_size=4 of make_csv_dataset",
    ),
    Form(
        "text_dataset_from_directory",
        "keras.utils.text_dataset_from_directory(folder, batch_size=8, verbose=False).map(lambda a, b: (tf.zeros((8, 8)), b))",
        8,
        "batch_size=4 of text_dataset_from_directory",
        40,
    ),
    Form(
        "timeseries_dataset_from_array",
        "keras.utils.timeseries_dataset_from_array(x, y, sequence_length=4, batch_size=8)",
        8,
        "batch_size=4 of timeseries_dataset_from_array",
        197,
    ),
    Form("generator of batches of any size", "Dataset.from_generator(lambda: iter([]), output_signature=batch_spec)", None, _GENERATOR),
)  # fmt: skip


def answers(names: dict[str, Any], form: Form) -> tuple[int | None, str]:
    """Batch size of the panel, and the first line of the estimate, in a process with the names of ``PREPARE``."""
    from jupyter_tfguard.errors import TfGuardError
    from jupyter_tfguard.predict.estimate import estimate
    from jupyter_tfguard.training.plan import FitPlan

    arguments = {"x": eval(form.code, names)}
    text = "no answer: its model cannot be made"
    try:
        with contextlib.suppress(ValueError, TypeError):
            text = estimate(_model_of(arguments["x"].element_spec[0]), arguments).headline()
    except TfGuardError as no:
        text = f"no answer: {no}"
    return FitPlan.of(arguments).batch_size, text


def _model_of(spec: Any) -> Any:
    """A model for features of this specification."""
    import keras

    layers = keras.layers
    shapes = spec if isinstance(spec, dict) else {"x": spec}
    inputs = {name: keras.Input(tuple(one.shape[1:]), name=name) for name, one in shapes.items()}
    parts = []
    for one in inputs.values():
        part = layers.Reshape((1,))(one) if len(one.shape) == 1 else one
        parts.append(layers.GlobalAveragePooling1D()(part) if len(part.shape) == 3 else part)
    joined = layers.Concatenate()(parts) if len(parts) > 1 else parts[0]
    model = keras.Model(inputs if isinstance(spec, dict) else inputs["x"], layers.Dense(1)(joined))
    model.compile("sgd", "mse")
    return model


def main() -> None:
    """Print the table."""
    import tensorflow as tf

    service = tf.data.experimental.service
    server = service.DispatchServer()
    names: dict[str, Any] = {"SERVER": server}
    exec(PREPARE, names)
    known = 0
    for form in FORMS:
        size, text = answers(names, form)
        known += not text.startswith("no answer")
        print(f"{form.name:36} {size!s:>5} {form.batch_size!s:>5}  {text[:110]}")
    print(f"{known} of {len(FORMS)} forms have an answer")


if __name__ == "__main__":
    main()
