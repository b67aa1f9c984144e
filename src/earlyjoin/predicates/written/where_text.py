"""Conditions as text: ``"a < b"``, ``"left.price >= 10"``, ``"a = b or right.kind = 'x'"``.

::

    condition    comparison, or several with "and" and "or" between them ("and" binds more tightly)
    comparison   operand  < <= > >= = == != <>  operand
    operand      left.COLUMN, right.COLUMN or COLUMN; names are plain, or quoted with double quotes or backticks
                 5, -1.5, 1e3: a number
                 'text': a text, a date, a moment, a time of day or a length of time (in single quotes)

Without ``left.`` or ``right.``, the first of two columns is one of the left input and the second one of the right; a
column beside a constant is one of the input that has it. What is in quotes is a name as it stands, dots included.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow.compute as pc

from earlyjoin.errors import InputError
from earlyjoin.predicates.base import LEFT, RIGHT, Predicate
from earlyjoin.predicates.comparison import greater, greater_equal, less, less_equal, not_equal
from earlyjoin.predicates.conjunction import Condition, Conjunction
from earlyjoin.predicates.disjunction import Disjunction
from earlyjoin.predicates.encoding.columns import SIDES
from earlyjoin.predicates.equality import equal
from earlyjoin.predicates.filters import Filter
from earlyjoin.predicates.one_sided import OneSided, Sign
from earlyjoin.predicates.written.constants import NUMBER

_PREDICATES: dict[Sign, Callable[[str, str], Predicate]] = {
    "<=": less_equal,
    ">=": greater_equal,
    "<>": not_equal,
    "<": less,
    ">": greater,
    "=": equal,
}
_SIGNS: dict[str, Sign] = {"<=": "<=", ">=": ">=", "<>": "<>", "!=": "<>", "==": "=", "<": "<", ">": ">", "=": "="}
_FLIPPED: dict[Sign, Sign] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}

_PREFIX = r"(?:(?P<side>left|right)\.(?=[`\"]))?"
_OPERAND = re.compile(
    rf"{_PREFIX}(?:`(?P<tick>[^`]+)`|\"(?P<quote>[^\"]+)\"|'(?P<text>(?:[^']|'')*)'|(?P<plain>[^\s<>=!`\"']+))"
)
_SIGN = re.compile("|".join(sorted(_SIGNS, key=len, reverse=True)))
_WORD = re.compile(r"(and|or)(?=[\s`\"'])", re.IGNORECASE)
_SPACE = re.compile(r"\s*")


def where(condition: pc.Expression | str) -> Condition:
    """A condition of the join that drives nothing by itself: it says which of the pairs match.

    A text compares columns with each other or with constants: ``"a < b"``, ``"left.price >= 10"``,
    ``"right.day = '2024-02-29'"``, with ``and`` and ``or`` between comparisons; names are those of the inputs, see
    :func:`parse_where`. A ``pyarrow.compute`` expression is evaluated over the joined row, by the names that the
    columns have in the output.

    As in SQL's ``ON``, an outer join keeps rows of its side for which a condition does not hold, unmatched.

    >>> print(where(pc.field("price") > 10))
    (price > 10)
    >>> print(where("left.price > 10 or kind = 'x'"))
    (left.price > 10 OR kind = 'x')
    """
    if isinstance(condition, str):
        return parse_where(condition)
    if not isinstance(condition, pc.Expression):
        raise InputError(f"where takes a pyarrow.compute expression or a text such as 'a < b', got {condition!r}")
    return Filter(condition)


def parse_where(text: str) -> Condition:
    """The condition that a text means; the module says what can be written.

    >>> print(parse_where("start <= stop"))
    left.start <= right.stop
    >>> print(parse_where("right.stop > left.start and price >= 9.5"))
    left.start < right.stop AND price >= 9.5
    """
    return _Text(text).condition()


@dataclass(frozen=True, slots=True)
class _Operand:
    """A column, or a constant."""

    name: str
    side: int | None = None
    constant: bool = False
    quoted: bool = False


class _Text:
    """A text that is read from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def condition(self) -> Condition:
        """All of it."""
        alternatives = [self._all()]
        while self._word("or"):
            alternatives.append(self._all())
        if self._at < len(self._text):
            raise self._wrong()
        return alternatives[0] if len(alternatives) == 1 else Disjunction.of(*alternatives)

    def _all(self) -> Condition:
        parts = [self._comparison()]
        while self._word("and"):
            parts.append(self._comparison())
        return parts[0] if len(parts) == 1 else Conjunction.of(*parts)

    def _comparison(self) -> Condition:
        left = self._operand()
        sign = self._match(_SIGN)
        if sign is None:
            raise self._wrong()
        right = self._operand()
        return self._compared(left, _SIGNS[sign[0]], right)

    def _compared(self, left: _Operand, sign: Sign, right: _Operand) -> Condition:
        if left.constant and right.constant:
            raise InputError(f"{self._text!r} compares two constants; one of them must be a column")
        if left.constant:
            left, sign, right = right, _FLIPPED[sign], left
        if right.constant:
            return OneSided(left.name, sign, constant=right.name, quoted=right.quoted, side=left.side)
        sides = (LEFT if left.side is None else left.side, RIGHT if right.side is None else right.side)
        if sides[0] == sides[1] and (left.side is None or right.side is None):
            unclear = left.name if left.side is None else right.name
            raise InputError(
                f"{self._text!r}: say which input {unclear!r} is a column of: left.{unclear} or right.{unclear}"
            )
        if sides[0] == sides[1]:
            return OneSided(left.name, sign, other=right.name, side=sides[0])
        if sides[0] == RIGHT:
            left, sign, right = right, _FLIPPED[sign], left
        return _PREDICATES[sign](left.name, right.name)

    def _operand(self) -> _Operand:
        found = self._match(_OPERAND)
        if found is None:
            raise self._wrong()
        side = None if found["side"] is None else SIDES.index(found["side"])
        if found["text"] is not None:
            return _Operand(found["text"].replace("''", "'"), constant=True, quoted=True)
        plain = found["plain"]
        if plain is not None and plain.startswith("("):
            raise self._wrong()
        if plain is None:
            return _Operand(found["tick"] or found["quote"], side)
        if NUMBER.fullmatch(plain):
            return _Operand(plain, constant=True)
        for number, name in enumerate(SIDES):
            if plain.startswith(f"{name}.") and len(plain) > len(name) + 1:
                return _Operand(plain[len(name) + 1 :], number)
        return _Operand(plain)

    def _word(self, wanted: str) -> bool:
        at = self._at
        found = self._match(_WORD)
        if found is not None and found[1].lower() == wanted:
            return True
        self._at = at
        return False

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The next thing, if it is one of these; spaces behind it are passed over as well."""
        space = _SPACE.match(self._text, self._at)
        assert space is not None
        found = pattern.match(self._text, space.end())
        if found is not None:
            behind = _SPACE.match(self._text, found.end())
            assert behind is not None
            self._at = behind.end()
        return found

    def _wrong(self) -> InputError:
        hint = (
            " (no parentheses: give several conditions, all of which must hold)" if set("()") & set(self._text) else ""
        )
        return InputError(
            f"{self._text!r} is not a comparison: write a column, one of {' '.join(_SIGNS)}, and a column or a "
            f"constant, such as 'a < b', 'left.a >= 10' or \"b = 'x'\", with 'and' and 'or' between several{hint}"
        )
