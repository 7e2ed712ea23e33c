"""A call of ``fit`` as text, for ``%tfguard estimate`` and ``%tfguard batch``: its arguments are evaluated, it is not run."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from ..errors import TfGuardError

_TAKE = "_tfguard_take"


class NotAFit(TfGuardError):
    """The text is not a call of ``fit``.

    Args:
        code: The text.
        why: What is wrong with its arguments; empty if it is no call at all.
    """

    def __init__(self, code: str, why: str = "") -> None:
        reason = f" ({why})" if why else ""
        super().__init__(
            f"not a call of fit: {code.strip() or '(nothing)'}{reason}. Write it as you would run it: "
            "%tfguard estimate model.fit(x, y, batch_size=64)"
        )


def planned_fit(code: str, namespace: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The model, and the arguments of its ``fit`` by name.

    Args:
        code: ``model.fit(x, y, batch_size=64)``, with the names of the notebook.
        namespace: The user's global names.

    Raises:
        NotAFit: It is not a call of ``fit``, or has wrong arguments.
        Exception: What the user's own expressions raise.
    """
    call = _fit_call(code)
    if call is None:
        raise NotAFit(code)
    assert isinstance(call.func, ast.Attribute)
    call.args.insert(0, call.func.value)
    call.func = ast.copy_location(ast.Name(_TAKE, ast.Load()), call.func)
    names = namespace | {_TAKE: lambda model, *given, **named: (model, given, named)}
    model, given, named = eval(compile(ast.Expression(call), "<%tfguard>", "eval"), names)
    try:
        bound = inspect.signature(model.fit).bind(*given, **named)
    except (AttributeError, TypeError) as error:
        raise NotAFit(code, str(error)) from None
    return model, dict(bound.arguments)


def _fit_call(code: str) -> ast.Call | None:
    """The call of ``fit`` in a line, with or without ``history =`` before it and ``.history`` after it."""
    try:
        tree = ast.parse(code.strip())
    except SyntaxError:
        return None
    line = tree.body[0] if len(tree.body) == 1 else None
    found = line.value if isinstance(line, (ast.Expr, ast.Assign, ast.AnnAssign)) else None
    while isinstance(found, (ast.Attribute, ast.Subscript)):
        found = found.value
    if not isinstance(found, ast.Call) or not isinstance(found.func, ast.Attribute):
        return None
    return found if found.func.attr == "fit" else None
