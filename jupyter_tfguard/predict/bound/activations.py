"""Memory for activations in one training step: tensors that the backward pass needs are kept until it uses them.

Adds up only tensors that are in memory at the same time. A layer of unknown size counts as 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from .graph import Call, Size, calls, graph_of

_NAMES_LIMIT = 5


@dataclass(slots=True)
class _Block:
    """A block of memory shared by one or more tensors.

    Attributes:
        scale: Number of copies: one for each frame of TimeDistributed.
        carries: A gradient passes through it in the backward pass.
        is_between: An intermediate result inside a layer, without a gradient.
    """

    size: Size
    scale: int
    carries: bool
    is_input: bool = False
    is_kept: bool = False
    is_between: bool = False

    def bytes(self, batch_size: int) -> int:
        return self.scale * (self.size.fixed_bytes + batch_size * self.size.sample_bytes)


@dataclass(slots=True)
class Activations:
    """The activations of one training step.

    Attributes:
        unknown: Names of layers of unknown size, which count as 0.
        call_count: Number of layer calls.
    """

    unknown: list[str] = field(default_factory=list)
    call_count: int = 0
    _buffers: list[_Block] = field(default_factory=list)

    @classmethod
    def of(cls, model: Any) -> Activations | None:
        """The activations from the graph of a model; None if it has none.

        Raises:
            AttributeError, TypeError, LookupError, ValueError: This version of Keras stores its graph differently.
        """
        if graph_of(model) is None:
            return None
        found = cls()
        found._walk(model, [], 1)
        return found

    def kept_bytes(self, batch_size: int) -> int:
        """Bytes of the batch, and of the tensors kept until the end of the forward pass."""
        return sum(b.bytes(batch_size) for b in self._buffers if b.is_kept or b.is_input)

    def peak_bytes(self, batch_size: int) -> int:
        """Peak bytes: the tensors kept up to a layer, plus its output or the gradient of that output."""
        highest = kept = sum(b.bytes(batch_size) for b in self._buffers if b.is_input)
        for buffer in self._buffers:
            if buffer.is_input:
                continue
            size = buffer.bytes(batch_size)
            kept += size if buffer.is_kept else 0
            is_more = not buffer.is_between and (buffer.carries or not buffer.is_kept)
            # Only one of many frames is processed at a time.
            highest = max(highest, kept + (size // buffer.scale if is_more else 0))
        return highest

    def _walk(self, model: Any, given: list[_Block], scale: int) -> list[_Block]:
        """Process the layer calls of a model. `given`: its inputs, if it is a layer of another model."""
        graph = graph_of(model)
        at: dict[int, _Block] = {}
        for tensor, buffer in zip(graph.inputs, given, strict=False):
            at[id(tensor)] = buffer
        for call in calls(model) or ():
            if kind(call.layer) == "InputLayer" or not call.inputs:
                for name, size in call.outputs:
                    if name not in at:
                        at[name] = self._new(size, scale, carries=False, is_input=True)
            else:
                self._one(call, at, scale)
        return [at[id(tensor)] for tensor in graph.outputs if id(tensor) in at]

    def _one(self, call: Call, at: dict[int, _Block], scale: int) -> None:
        layer, side_by_side = unwrapped(call.layer)
        given = [at[name] for name, _ in call.inputs if name in at]
        outputs = self._nested(call, layer, given, scale)
        if outputs is not None:
            at.update(zip((name for name, _ in call.outputs), outputs, strict=False))
            return
        self.call_count += 1
        is_trained = bool(getattr(call.layer, "trainable_weights", ()))
        reaches = any(buffer.carries for buffer in given)
        if not all(size.is_known for _, size in call.outputs):
            self._add_unknown(call.layer)
        if is_renaming(layer) and given:
            at.update((name, given[0]) for name, _ in call.outputs)
            return
        if needs_input(layer, is_trained=is_trained, reaches_weights=reaches):
            for buffer in given:
                buffer.is_kept = True
        for name, size in call.outputs:
            at[name] = self._new(size, scale, carries=is_trained or reaches)
            at[name].is_kept = at[name].carries and needs_output(layer)
        if is_trained or reaches:
            between = side_by_side * between_bytes(call, layer)
            buffer = self._new(Size(0, between, True, ()), scale, carries=False)
            buffer.is_kept = buffer.is_between = True

    def _nested(
        self, call: Call, layer: Any, given: list[_Block], scale: int
    ) -> list[_Block] | None:
        """The outputs of a layer that is itself a model; None for other layers."""
        graph = graph_of(layer)
        if graph is None:
            return None
        if any(None in tuple(t.shape)[1:] for t in graph.outputs):
            self._add_unknown(layer)  # built for images of any size
            return None
        steps = 1
        if layer is not call.layer:  # TimeDistributed
            steps = call.inputs[0][1].shape[1] or 1
            # The frames are views of the input and need no memory.
            given = [_Block(Size.of(t), 1, False, is_input=True) for t in graph.inputs]
        return self._outputs(call, self._walk(layer, given, scale * steps), steps, scale)

    def _outputs(self, call: Call, found: list[_Block], steps: int, scale: int) -> list[_Block]:
        if steps == 1:
            return found
        carries = any(buffer.carries for buffer in found)
        return [self._new(size, scale, carries=carries) for _, size in call.outputs]

    def _new(self, size: Size, scale: int, *, carries: bool, is_input: bool = False) -> _Block:
        buffer = _Block(size, scale, carries, is_input)
        self._buffers.append(buffer)
        return buffer

    def _add_unknown(self, layer: Any) -> None:
        if len(self.unknown) < _NAMES_LIMIT and layer.name not in self.unknown:
            self.unknown.append(str(layer.name))


# The output shares the memory of the input.
_RENAMES = {"InputLayer", "Flatten", "Reshape", "Identity", "ExpandDims", "Squeeze"}
_RENAMES |= {"ActivityRegularization", "Masking"}
# The gradient of the weights needs the input.
_WEIGHTED = {"Dense", "Conv", "Normalization", "LSTM", "GRU", "SimpleRNN", "Attention"}
# The gradient of the input needs the input.
_PRODUCTS = {"Multiply", "Dot", "Matmul", "Einsum", "MaxPooling1D", "MaxPooling2D", "MaxPooling3D"}
_NEEDS_OUTPUT = {"MaxPooling1D", "MaxPooling2D", "MaxPooling3D", "Softmax", "ReLU", "Relu"}
_NEEDS_OUTPUT |= {"LeakyReLU", "Sigmoid", "Tanh", "ELU"}
# The gradient is computed from the output alone.
_BY_OUTPUT = {"relu", "relu6", "leaky_relu", "sigmoid", "tanh", "softmax", "elu", "selu"}
# Numbers kept per step and unit: gates before and after their activation, state and output.
_RECURRENT_NUMBERS = {"LSTM": 8, "GRU": 6, "SimpleRNN": 2}


def kind(layer: Any) -> str:
    """Name of the layer's Keras class, or of its first Keras base class."""
    for one in type(layer).__mro__:
        if one.__module__.partition(".")[0] in ("keras", "tf_keras"):
            return one.__name__
    return type(layer).__name__


def unwrapped(layer: Any) -> tuple[Any, int]:
    """The layer inside TimeDistributed or Bidirectional, and how many copies of it run in parallel."""
    name = kind(layer)
    if name == "TimeDistributed":
        return layer.layer, 1
    if name == "Bidirectional":
        return layer.forward_layer, 2
    return layer, 1


def is_renaming(layer: Any) -> bool:
    """True if the output shares the memory of the input."""
    name = kind(layer)
    if name == "Activation":
        return activation(layer) == "linear"
    return name in _RENAMES or ("Dropout" in name and not getattr(layer, "rate", 1))


def needs_input(layer: Any, *, is_trained: bool, reaches_weights: bool) -> bool:
    """True if the backward pass needs the input.

    Args:
        is_trained: The layer has trainable weights.
        reaches_weights: An earlier layer has trainable weights.
    """
    name = kind(layer)
    if any(part in name for part in _WEIGHTED):  # EinsumDense, SeparableConv2D, ...
        return is_trained
    return reaches_weights and name in _PRODUCTS


def needs_output(layer: Any) -> bool:
    """True if the backward pass needs the output of a layer that the gradient passes through."""
    return kind(layer) in _NEEDS_OUTPUT or activation(layer) in _BY_OUTPUT


def activation(layer: Any) -> str | None:
    """Name of the layer's activation; None if it has none."""
    return getattr(getattr(layer, "activation", None), "__name__", None)


def between_bytes(call: Call, layer: Any) -> int:
    """Bytes per sample that are kept in addition to input and output."""
    name = kind(layer)
    _, output = call.outputs[0]
    _, given = call.inputs[0]
    if name in _RECURRENT_NUMBERS:
        steps = given.shape[1] or 1
        return 4 * steps * int(layer.units) * _RECURRENT_NUMBERS[name]
    if name == "MultiHeadAttention":
        return _attention_bytes(call, layer)
    if "Separable" in name:
        channels = math.prod(size or 1 for size in output.shape[1:-1])
        return 4 * channels * (given.shape[-1] or 1) * int(layer.depth_multiplier)
    found = 0
    if "Dropout" in name and not is_renaming(layer):
        found += _numbers(output.shape)  # one byte per number: dropped or kept
    if activation(layer) not in {None, "linear"} | _BY_OUTPUT:
        found += output.sample_bytes  # the values before the activation
    return found


def _attention_bytes(call: Call, layer: Any) -> int:
    query = call.inputs[0][1]
    other = call.inputs[min(1, len(call.inputs) - 1)][1]
    rows, columns = _numbers(query.shape[:-1]), _numbers(other.shape[:-1])
    heads, width = int(layer._num_heads), int(layer._key_dim)
    projected = (2 * rows + 2 * columns) * heads * width
    return 4 * (projected + heads * rows * columns)


def _numbers(shape: tuple[int | None, ...]) -> int:
    return math.prod(size or 1 for size in shape[1:])
