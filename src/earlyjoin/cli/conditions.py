"""Join conditions as the command line writes them: ``a=b``, ``a=b:EPS``, ``s,e=s,e``.

::

    LEFT[=RIGHT][:EPS]      LEFT and RIGHT are column names or lists of them, plain or quoted ("a b", `a,b`)
    INPUT.COLUMN=INPUT.COLUMN      with more than two inputs
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from earlyjoin.errors import InputError
from earlyjoin.predicates import band, equal, intersects, near, overlaps, parse_where
from earlyjoin.predicates.conjunction import ALWAYS, Condition, Conjunction
from earlyjoin.predicates.multiway import MultiEqual, multi_equal

_QUOTES = '"`'

Sides = tuple[list[str], list[str] | None]
"""Left names, and right names unless they are the same."""


def condition_of(options: argparse.Namespace) -> Condition:
    """All conditions of a command, joined by AND."""
    conditions = list(_conditions(options))
    if not conditions and options.how == "cross":
        return ALWAYS
    if not conditions:
        raise InputError(
            "no join condition: give at least one of --on, --band, --where, --overlap, --intersect and --near, "
            "such as --on id or --on id=order_id; for every pair of rows, --how cross"
        )
    return Conjunction.of(*conditions)


def multi_condition_of(options: argparse.Namespace, inputs: Sequence[str]) -> MultiEqual:
    """The condition of a command with more than two inputs."""
    for option in ("band", "where", "overlap", "intersect", "near"):
        if getattr(options, option):
            raise InputError(
                f"--{option} is for two inputs, got {len(inputs)}; more are joined on equal columns: --on COLUMN"
            )
    if not options.on:
        raise InputError(
            f"no join condition: give --on COLUMN, which all {len(inputs)} inputs have, or "
            f"--on {inputs[0]}.COLUMN={inputs[1]}.COLUMN and so on"
        )
    form = f"k, or {inputs[0]}.k={inputs[1]}.k with inputs named {', '.join(inputs)}"
    parts: list[str | tuple[str, str]] = []
    for text in options.on:
        for part in split(text, ","):
            left, right = _sides(part, f"--on {text}", form)
            parts.append((left[0], right[0]) if right else left[0])
    return multi_equal(inputs, parts, null_safe=options.null_safe)


def _conditions(options: argparse.Namespace) -> Iterator[Condition]:
    for text in options.on or ():
        for part in split(text, ","):
            left, right = _sides(part, f"--on {text}", "k, a=b or a=b,c=d")
            yield equal(left, right, null_safe=options.null_safe)
    for text in options.band or ():
        (left, right), eps = _with_eps(text, f"--band {text}", "a=b:EPS or a:EPS, with EPS such as 0.5 or 5s")
        if len(left) != 1 or len(right or left) != 1:
            raise InputError(f"--band {text}: compares one column of each side; repeat --band for more")
        yield band(left[0], right[0] if right else None, eps=eps)
    for text in options.where or ():
        yield parse_where(text)
    for text in options.overlap or ():
        yield overlaps(*_sides(text, f"--overlap {text}", "start,end=start,end"))
    for text in options.intersect or ():
        yield intersects(*_sides(text, f"--intersect {text}", "x1,y1,x2,y2=x1,y1,x2,y2"))
    for text in options.near or ():
        (left, right), eps = _with_eps(text, f"--near {text}", "x,y=x,y:EPS or x,y:EPS, with EPS such as 0.5")
        yield near(left, right, eps=eps)


def names(text: str, option: str) -> list[str]:
    """A list of column names, separated by commas."""
    return [_name(part, option, "names separated by commas, such as a,b") for part in split(text, ",")]


def split(text: str, separator: str) -> list[str]:
    """The text cut at each separator that stands outside quotes.

    >>> split('"a,b",c', ",")
    ['"a,b"', 'c']
    """
    parts, start, quote = [], 0, ""
    for at, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in _QUOTES:
            quote = character
        elif character == separator:
            parts.append(text[start:at])
            start = at + 1
    if quote:
        raise InputError(f"{text!r}: the quote {quote} is not closed")
    return [*parts, text[start:]]


def _sides(text: str, option: str, form: str) -> Sides:
    sides = [[_name(part, option, form) for part in split(side, ",")] for side in split(text, "=")]
    if len(sides) > 2:
        raise InputError(f"{option}: write {form}")
    return sides[0], sides[1] if len(sides) == 2 else None


def _with_eps(text: str, option: str, form: str) -> tuple[Sides, str]:
    *columns, eps = split(text, ":")
    if not columns or not eps.strip():
        raise InputError(f"{option}: the distance is missing; write {form}")
    return _sides(":".join(columns), option, form), eps.strip()


def _name(text: str, option: str, form: str) -> str:
    name = text.strip()
    if len(name) > 1 and name[0] in _QUOTES and name[-1] == name[0]:
        name = name[1:-1]
    if not name:
        raise InputError(f"{option}: a column name is missing; write {form}")
    return name
