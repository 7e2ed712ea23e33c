"""The tensors that the backward pass needs from each kind of layer: input, output, or intermediate results.

For kinds that are not listed nothing counts as kept, so the sum can be too low but never too high.
"""

from __future__ import annotations

import math
from typing import Any

from .graph import Call

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
