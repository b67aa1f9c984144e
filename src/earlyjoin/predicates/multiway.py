"""Equalities between the columns of several named inputs: ``a.x = b.x``, ``b.y = c.y``.

Equalities are gathered into *classes* of attributes that are all equal to each other. A class with one attribute of
every input is a key that the whole join shares: with it, any number of inputs is joined at once. Several such classes
are one composite key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from earlyjoin.errors import InputError, UnsupportedError
from earlyjoin.predicates.conjunction import BoundConjunction
from earlyjoin.predicates.encoding.columns import find_column
from earlyjoin.predicates.encoding.types import common_domain
from earlyjoin.predicates.equality import BoundEqual

MultiOn = str | Sequence["str | tuple[str, str]"]
"""A column that every input has, or a list of such columns, of texts "a.x = b.y" and of pairs ("a.x", "b.y")."""

_FORMS = 'a column that every input has, "a.x = b.y", or a pair ("a.x", "b.y")'


class Attribute(NamedTuple):
    """A column of one of the inputs."""

    input: int
    column: str


Class = tuple[Attribute, ...]
"""Attributes that are all equal to each other, by input."""


@dataclass(frozen=True, slots=True)
class MultiEqual:
    """A join condition over two or more named inputs; made by :func:`multi_equal`."""

    inputs: tuple[str, ...]
    equalities: tuple[tuple[Attribute, Attribute], ...]
    shared: tuple[str, ...] = ()
    """Columns named once for all inputs: the output carries them once."""
    null_safe: bool = False

    def classes(self) -> list[Class]:
        """The attributes that the equalities bring together, in the order in which they were written."""
        classes: list[list[Attribute]] = []
        for pair in self.equalities:
            touched = [one for one in classes if any(attribute in one for attribute in pair)]
            merged = list(dict.fromkeys([attribute for one in touched for attribute in one] + list(pair)))
            place = classes.index(touched[0]) if touched else len(classes)
            classes = [one for one in classes if one not in touched]
            classes.insert(place, merged)
        return [tuple(sorted(one, key=lambda attribute: attribute.input)) for one in classes]

    def bind(self, schemas: Sequence[pa.Schema]) -> BoundConjunction:
        """One composite equality over all inputs, or UnsupportedError saying what to do instead."""
        classes = self.classes()
        # Names first: a misspelt column is a likelier mistake than a condition of the wrong shape.
        columns = [[find_column(schemas[side], name, side, self.inputs[side]) for side, name in one] for one in classes]
        for one in classes:
            self._check_whole(one)
        domains = tuple(common_domain(one, "equal", equality=True) for one in columns)
        sides = tuple(tuple(one[side] for one in columns) for side in range(len(self.inputs)))
        names = tuple(tuple(column.name for column in side) for side in sides)
        key = BoundEqual(names, str(self), sides, domains, (self.null_safe,) * len(classes), self.shared)
        return BoundConjunction((key,), (), str(self), self.shared)

    def _check_whole(self, one: Class) -> None:
        """Refuse a class that has not exactly one attribute of every input."""
        present = [attribute.input for attribute in one]
        twice = next((side for side in present if present.count(side) > 1), None)
        if twice is not None:
            names = " and ".join(self._text(attribute) for attribute in one if attribute.input == twice)
            raise UnsupportedError(
                f"on: {names} would have to be equal within one row of input {self.inputs[twice]!r}; "
                "filter that input before the join, and name one of them"
            )
        missing = [name for side, name in enumerate(self.inputs) if side not in present]
        if missing:
            equal = " = ".join(self._text(attribute) for attribute in one)
            raise UnsupportedError(
                f"on: {equal} leaves out {', '.join(map(repr, missing))}; this version joins many inputs on the same "
                "attribute: each equality must go through all of them, as in a.x = b.x, b.x = c.x. For different "
                "attributes chain joins of two inputs: join(join(a, b, on=...), c, on=...)"
            )

    def _text(self, attribute: Attribute) -> str:
        return f"{self.inputs[attribute.input]}.{attribute.column}"

    def __str__(self) -> str:
        sign = " <=> " if self.null_safe else " = "
        return " AND ".join(sign.join(self._text(attribute) for attribute in one) for one in self.classes())


def multi_equal(inputs: Sequence[str], on: MultiOn, *, null_safe: bool = False) -> MultiEqual:
    """What ``on=`` means for inputs of these names.

    >>> print(multi_equal(["a", "b", "c"], ["a.x = b.y", ("b.y", "c.z")]))
    a.x = b.y = c.z
    """
    parts = [on] if isinstance(on, str) else list(on) if isinstance(on, Sequence) else None
    if not parts:
        raise InputError(f"on: give {_FORMS}, or a list of these; got {on!r}")
    equalities: list[tuple[Attribute, Attribute]] = []
    shared: list[str] = []
    for part in parts:
        if isinstance(part, tuple) and len(part) == 2 and all(isinstance(text, str) for text in part):
            equalities.append((_attribute(inputs, part[0], part), _attribute(inputs, part[1], part)))
        elif isinstance(part, str) and "=" in part:
            texts = part.split("=")
            if len(texts) != 2:
                raise InputError(f"on: {part!r} has more than one '='; for names with '=' in them write a pair")
            equalities.append((_attribute(inputs, texts[0], part), _attribute(inputs, texts[1], part)))
        elif isinstance(part, str):
            shared.append(part)
            equalities += [(Attribute(0, part), Attribute(side, part)) for side in range(1, len(inputs))]
        else:
            raise InputError(f"on: expected {_FORMS}, got {part!r}")
    return MultiEqual(tuple(inputs), tuple(equalities), tuple(dict.fromkeys(shared)), bool(null_safe))


def _attribute(inputs: Sequence[str], text: str, part: object) -> Attribute:
    """The input and the column that "a.x" names; of two inputs "a" and "a.b", the longer name that fits."""
    text = text.strip()
    fitting = [name for name in inputs if text.startswith(f"{name}.") and len(text) > len(name) + 1]
    if not fitting:
        raise InputError(
            f"on: {text!r} in {part!r} does not name a column of an input; "
            f"write INPUT.COLUMN with one of the inputs {', '.join(inputs)}"
        )
    name = max(fitting, key=len)
    return Attribute(list(inputs).index(name), text[len(name) + 1 :])
