"""Where the batch size of a run is set, and the words that change it there.

``fit`` ignores ``batch_size`` for data that come in batches, so each kind of data has its own words. All texts that name
another batch size take them from here: refusal, stop, report, estimate.
"""

from __future__ import annotations

from dataclasses import dataclass

from .decode import dict_of

_NAME_LIMIT = 60


@dataclass(frozen=True, slots=True)
class BatchPlace:
    """The place in the user's code that decides the batch size.

    Attributes:
        kind: One of the constants below; a kind that is not known is read as :data:`ARGUMENT`.
        name: The method of the pipeline, the function or the class; empty for the others.
    """

    kind: str
    name: str = ""

    @classmethod
    def of(cls, recorded: object) -> BatchPlace:
        """The place that a recording names; the argument if it names none, as those of earlier versions."""
        fields = dict_of(recorded)
        kind, name = fields.get("kind"), fields.get("name")
        if kind not in _CHANGES or not isinstance(name, str) or not name.isprintable():
            return IN_ARGUMENT
        return cls(kind, name[:_NAME_LIMIT])

    def change(self, what: str, size: int | None = None) -> str:
        """The change that makes batches of this size, to be put into a sentence.

        Args:
            what: ``fit``, ``evaluate`` or ``predict``.
            size: Number of samples; None for any smaller one.
        """
        exact, smaller = _CHANGES[self.kind]
        words = smaller if size is None else exact
        return words.format(what=what, size=size, name=self.name)

    def code(self, what: str, size: int) -> str | None:
        """The same as a line of code; None if it is in code of the user's own."""
        line = _CODE.get(self.kind)
        return None if line is None else line.format(what=what, size=size, name=self.name)

    def stated(self, size: int) -> str:
        """The batch as it is set now, to be put into a sentence."""
        return f"batch_size={size}" if self.kind in _BY_ARGUMENT else f"a batch of {size}"


ARGUMENT = "argument"  # of fit, evaluate or predict
PIPELINE = "pipeline"  # a step of a tf.data pipeline
FUNCTION = "function"  # an argument of the function that makes the dataset
BUCKETS = "buckets"  # several sizes, by the length of the samples
METHOD = "method"  # __getitem__ of a PyDataset or Sequence
LOADER = "loader"  # torch's DataLoader
GENERATOR = "generator"
IN_ARGUMENT = BatchPlace(ARGUMENT)

# By kind: for a certain size, and for any smaller one.
_CHANGES = {
    ARGUMENT: ("model.{what}(..., batch_size={size})", "a smaller batch_size"),
    PIPELINE: (".{name}({size}) in the pipeline", "a smaller .{name}() in the pipeline"),
    FUNCTION: ("batch_size={size} of {name}", "a smaller batch_size of {name}"),
    BUCKETS: (
        "bucket_batch_sizes of at most {size} in {name}",
        "smaller bucket_batch_sizes in {name}",
    ),
    METHOD: ("batches of {size} in {name}.__getitem__", "smaller batches in {name}.__getitem__"),
    LOADER: ("{name}(..., batch_size={size})", "a smaller batch_size of {name}"),
    GENERATOR: ("batches of {size} from the generator", "smaller batches from the generator"),
}
_CODE = {
    ARGUMENT: "model.{what}(..., batch_size={size})",
    PIPELINE: "dataset = dataset.{name}({size})",
    FUNCTION: "{name}(..., batch_size={size})",
    LOADER: "{name}(..., batch_size={size})",
}
_BY_ARGUMENT = (ARGUMENT, FUNCTION, LOADER)
