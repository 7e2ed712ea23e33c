"""A call of ``fit`` as text, for ``%tfguard estimate`` and ``%tfguard batch``: its arguments are evaluated, it is not run."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from ..errors import TfGuardError

_TAKE = "_tfguard_take"


class NotAFit(TfGuardError):
    """The text is not a call of ``fit``."""

    def __init__(self, code: str) -> None:
        super().__init__(
            f"not a call of fit: {code.strip() or '(nothing)'}. Write it as you would run it: "
            "%tfguard estimate model.fit(x, y, batch_size=64)"
        )


def planned_fit(code: str, namespace: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The model, and the arguments of its ``fit`` by name.

    Args:
        code: ``model.fit(x, y, batch_size=64)``, with the names of the notebook.
        namespace: The user's global names.

    Raises:
        NotAFit: It is not a call of ``fit``.
        Exception: What the user's own expressions raise.
    """
    try:
        tree = ast.parse(code.strip(), mode="eval")
    except SyntaxError:
        raise NotAFit(code) from None
    call = tree.body
    if (
        not isinstance(call, ast.Call)
        or not isinstance(call.func, ast.Attribute)
        or call.func.attr != "fit"
    ):
        raise NotAFit(code)
    call.args.insert(0, call.func.value)
    call.func = ast.copy_location(ast.Name(_TAKE, ast.Load()), call.func)
    names = namespace | {_TAKE: lambda model, *given, **named: (model, given, named)}
    model, given, named = eval(compile(tree, "<%tfguard>", "eval"), names)
    bound = inspect.signature(model.fit).bind(*given, **named)
    return model, dict(bound.arguments)
