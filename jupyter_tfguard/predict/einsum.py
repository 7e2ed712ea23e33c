"""The operands that an ``Einsum`` of TensorFlow transposes into a copy, because its product needs the dimensions in order.

The order is: batch, free, contracted, reduced. Source: einsum_op_impl.h of TensorFlow 2.21.
"""

from __future__ import annotations

_BATCH, _FREE, _CONTRACTED, _REDUCED = range(4)
_SWAPPED = {
    _BATCH: 0,
    _CONTRACTED: 1,
    _FREE: 2,
    _REDUCED: 3,
}  # the product can read a matrix transposed


def transposed(equation: str) -> tuple[tuple[int, ...], bool]:
    """Places of the operands that are copied, and True if the result is copied too.

    Args:
        equation: As in ``tf.einsum``, with an output. One with an ellipsis or a repeated label counts as not copied.
    """
    given, _, result = equation.replace(" ", "").partition("->")
    operands = given.split(",")
    if "." in equation or any(len(set(one)) < len(one) for one in (*operands, result)):
        return (), False
    numbers = {label: number for number, label in enumerate(dict.fromkeys("".join(operands)))}
    kinds = {label: _kind(label, operands, result) for label in numbers}
    copied = tuple(
        place for place, one in enumerate(operands) if not _is_in_order(one, kinds, numbers)
    )
    found = sorted((one for one in numbers if kinds[one] == _BATCH), key=numbers.__getitem__)
    for place, operand in enumerate(operands):
        free = [one for one in operand if kinds[one] == _FREE]
        found += sorted(free, key=numbers.__getitem__) if place in copied else free
    return copied, len(operands) > 1 and "".join(found) != result


def _kind(label: str, operands: list[str], result: str) -> int:
    count = sum(label in one for one in operands)
    if label in result:
        return _BATCH if count == len(operands) and count > 1 else _FREE
    return _CONTRACTED if count > 1 else _REDUCED


def _is_in_order(operand: str, kinds: dict[str, int], numbers: dict[str, int]) -> bool:
    keys = [(kinds[label], numbers[label]) for label in operand]
    swapped = [_SWAPPED[kinds[label]] for label in operand]
    return keys == sorted(keys) or swapped == sorted(swapped)
