"""Aggregates as the command line writes them: ``sum(price)``, ``revenue=sum(price * (1 - discount))``, ``count()``.

Columns have the names of the output; a name with spaces or operators in it is quoted: ``avg("unit price")``.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow.compute as pc

from earlyjoin.algorithms.aggregates import AggregateOf, avg, count
from earlyjoin.algorithms.aggregates import sum as sum_of
from earlyjoin.errors import InputError

_KINDS: dict[str, Callable[..., AggregateOf]] = {"sum": sum_of, "avg": avg, "count": count}
_AGGREGATE = re.compile(r"\s*(?:([^=()]+?)\s*=\s*)?(\w+)\s*\((.*)\)\s*", re.DOTALL)
_QUOTED = re.compile(r"\s*(?:\"([^\"]+)\"|`([^`]+)`)\s*")
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def aggregates_of(texts: Sequence[str]) -> dict[str, AggregateOf]:
    """Each aggregate by its name, or by its text where it has none.

    >>> for name, aggregate in aggregates_of(["sum(price)", "net=sum(price * (1 - cut))"]).items():
    ...     print(name, "is", aggregate)
    sum(price) is sum(price)
    net is sum(multiply(price, subtract(1, cut)))
    """
    found: dict[str, AggregateOf] = {}
    for text in texts:
        match = _AGGREGATE.fullmatch(text)
        if match is None or match[2].lower() not in _KINDS:
            raise InputError(
                f"--aggregate {text}: write sum(COLUMN), avg(COLUMN) or count(COLUMN), with a name of your own if you "
                "like: revenue=sum(price * quantity)"
            )
        name = match[1] or text.strip()
        if name in found:
            raise InputError(f"--aggregate {text}: there is another aggregate named {name!r}; write NAME={text}")
        inner = match[3].strip()
        found[name] = _KINDS[match[2].lower()](*_arguments(inner, match[2].lower(), text))
    return found


def _arguments(inner: str, kind: str, text: str) -> list[Any]:
    if inner in ("", "*"):
        if kind != "count":
            raise InputError(f"--aggregate {text}: {kind} of what? Write {kind}(COLUMN)")
        return []
    quoted = _QUOTED.fullmatch(inner)
    if quoted is not None:
        return [quoted[1] or quoted[2]]
    try:
        return [_expression(ast.parse(inner, mode="eval").body)]
    except (SyntaxError, ValueError):
        raise InputError(
            f"--aggregate {text}: {inner!r} is neither a column nor columns and numbers with + - * / and parentheses; "
            'quote names that have other characters in them: sum("unit price")'
        ) from None


def _expression(node: ast.expr) -> pc.Expression:
    if isinstance(node, ast.Name):
        return pc.field(node.id)
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return pc.scalar(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return pc.scalar(0) - _expression(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        made: pc.Expression = _OPERATORS[type(node.op)](_expression(node.left), _expression(node.right))
        return made
    raise ValueError(f"{type(node).__name__} is not part of an expression")
