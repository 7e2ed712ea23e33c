"""Which operands an Einsum copies, worked out by hand from TensorFlow's rules."""

from __future__ import annotations

import pytest

from jupyter_tfguard.predict.traced.graph_def import transposed

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("equation", "operands", "is_result_copied"),
    [
        ("ij,jk->ik", (), False),
        ("ij, kj -> ik", (), False),  # the product reads a matrix transposed
        ("ij,jk->ki", (), True),
        ("btd,edf->btef", (1,), False),
        ("btef,efd->bted", (0,), True),  # e is in both and in the result, so it comes first
        ("bted,bte->btd", (), False),
        ("aecd,abcd->acbe", (0, 1), True),  # scores of attention
        ("btef,bted->efd", (0, 1), False),
        ("...d,df->...f", (), False),  # not worked out
    ],
)
def test_an_operand_out_of_order_is_copied(
    equation: str, operands: tuple[int, ...], is_result_copied: bool
) -> None:
    assert transposed(equation) == (operands, is_result_copied)
