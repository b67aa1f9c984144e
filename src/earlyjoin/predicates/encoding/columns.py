"""Finding the columns that a predicate names, in the schema of one input, and later in its batches."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from earlyjoin.errors import InputError
from earlyjoin.predicates.encoding.buffers import plain

SIDES = ("left", "right")
_TAB = "\t"
_DELIMITERS = (";", _TAB, "|", ",")

Names = str | Sequence[str]

_MOST_LISTED = 30


@dataclass(frozen=True, slots=True)
class InputColumn:
    """A column of one input whose name and type are known."""

    side: int
    name: str
    type: pa.DataType
    input: str | None = None
    """What the user called the input, where inputs have names of their own."""

    def __str__(self) -> str:
        return f"column {self.name!r} of {input_text(self.side, self.input)} ({self.type})"

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """This column's array in a batch, in the plainest layout: no dictionary, no views."""
        index = batch.schema.get_field_index(self.name)
        if index < 0:
            raise InputError(f"{self} is missing from a batch, which has {', '.join(batch.schema.names)}")
        array = batch.column(index)
        if array.type != self.type:
            raise InputError(f"{self} has type {array.type} in a later batch; all batches of an input need one schema")
        return plain(array)


def input_text(side: int, name: str | None = None) -> str:
    """An input as messages call it."""
    return f"the {SIDES[side]} input" if name is None else f"input {name!r}"


def near_name(name: str, names: Sequence[str]) -> str | None:
    """The name that was probably meant: the same in another case, or one that looks alike."""
    folded = {other.casefold(): other for other in reversed(names)}
    close = difflib.get_close_matches(name.casefold(), list(folded), n=1)
    return folded[close[0]] if close else None


def listed(names: Sequence[str]) -> str:
    """Names for a message: not thousands of them."""
    more = len(names) - _MOST_LISTED
    shown = ", ".join(names[:_MOST_LISTED]) or "none"
    return f"{shown} and {more:,} more" if more > 0 else shown


@dataclass(frozen=True, slots=True)
class Advice:
    """What else to do about a column that does not exist: in the words of Python, and of the command line."""

    python: str
    command: str


def find_column(
    schema: pa.Schema, name: str, side: int, input_: str | None = None, advice: Advice | None = None
) -> InputColumn:
    """The column called ``name``, or an InputError that says which columns exist."""
    found = schema.get_all_field_indices(name)
    if len(found) == 1:
        return InputColumn(side, name, schema.field(found[0]).type, input_)
    if found:
        raise InputError(
            f"column {name!r} is ambiguous: {input_text(side, input_)} has {len(found)} columns of that name; "
            f"rename one of them (columns: {listed(schema.names)})"
        )
    close = near_name(name, schema.names)
    hint = f"did you mean {close!r}? " if close else ""
    missing = f"column {name!r} is not in {input_text(side, input_)}: {hint}columns there: {listed(schema.names)}"
    python, command = (_delimiter_hint(schema.names, side, on_command_line=face) for face in (False, True))
    if advice is not None and not python:
        python, command = f"; {advice.python}", f"; {advice.command}"
    raise InputError(missing + python, command=missing + command)


def _delimiter_hint(names: Sequence[str], side: int, *, on_command_line: bool) -> str:
    """What a single column that looks like several means."""
    sign = next((sign for sign in _DELIMITERS if sign in names[0]), None) if len(names) == 1 else None
    if sign is None:
        return ""
    if on_command_line:
        given = f"--delimiter-{(*SIDES, 'more')[min(side, 2)]} {'tab' if sign == _TAB else repr(sign)}"
    else:
        given = f"earlyjoin.source(path, delimiter={sign!r})"
    return f"; that looks like fields separated by {sign!r}: say so with {given}"


def find_columns(
    schema: pa.Schema, names: tuple[str, ...], side: int, advice: Advice | None = None
) -> tuple[InputColumn, ...]:
    """The columns called ``names``, in that order."""
    return tuple(find_column(schema, name, side, advice=advice) for name in names)


def name_tuple(names: Names, what: str) -> tuple[str, ...]:
    """``names`` as a tuple, where one name may stand alone; ``what`` is for the message."""
    result = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, Sequence) else None
    if not result or not all(isinstance(name, str) for name in result):
        raise InputError(f"{what}: expected a column name or a list of column names, got {names!r}")
    return result


def name_pair(
    left: Names, right: Names | None, what: str, *, count: int | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of both sides; ``right=None`` repeats the left ones. Both must have the same length, or ``count``."""
    lefts = name_tuple(left, what)
    rights = lefts if right is None else name_tuple(right, what)
    if count is not None:
        for names in (lefts, rights):
            if len(names) != count:
                columns = "1 column" if count == 1 else f"{count} columns"
                raise InputError(f"{what} takes {columns} of each input, got {len(names)}: {', '.join(names)}")
    if len(lefts) != len(rights):
        raise InputError(
            f"{what} needs as many columns on the left as on the right, got {len(lefts)} ({', '.join(lefts)}) "
            f"and {len(rights)} ({', '.join(rights)})"
        )
    return lefts, rights


def qualified(side: int, name: str) -> str:
    """The name as it appears in the text of a predicate."""
    return f"{SIDES[side]}.{name}"
