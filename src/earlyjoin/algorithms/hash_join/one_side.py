"""Checking that the keys of the one-side of a 1:N join really occur once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.sweep_areas import SweepWords
from earlyjoin.errors import InputError
from earlyjoin.predicates.base import BoundPredicate
from earlyjoin.predicates.encoding.keys import Int64, Keys
from earlyjoin.state.hash_index import Cursor

if TYPE_CHECKING:
    from earlyjoin.algorithms.hash_join.join_state import JoinState
    from earlyjoin.algorithms.hash_join.table.memory_part import MemoryPart


def refuse_repeated(
    state: JoinState, part: MemoryPart, batch: pa.RecordBatch, keys: Keys, *, stored: bool = True
) -> None:
    """Raise InputError if a row of the batch has a key that another row in the part has too.

    ``stored`` says that the rows of the batch are in the part themselves, so that each of them finds itself.
    """
    cursor, found = Cursor(), []
    while cursor.row < len(keys):
        count, _ = part.probe(keys, cursor, state.pairs[0], state.pairs[1], once=False)
        found.append(state.pairs[0, :count].copy())
        rows = np.concatenate(found)
        repeated = rows[:-1][rows[1:] == rows[:-1]] if stored else rows
        if len(repeated):
            raise repeated_key(state.key, part.side, batch, int(repeated[0]))
        found = [rows[-1:]] if stored and len(rows) else []


def repeated_row(key: BoundPredicate, keys: Keys, order: Int64, words: SweepWords) -> int | None:
    """A row that has the key of another, or None: ``order`` puts the rows in the order of their ``words``.

    Equal keys have equal words, so rows are compared with those behind them as far as the words are equal.
    """
    distance, rows = 1, np.flatnonzero(words[1:] == words[:-1])
    while len(rows):
        same = key.holds(keys, order[rows], keys, order[rows + distance])
        if same.any():
            return int(order[rows[same][0] + distance])
        distance += 1
        rows = rows[rows + distance < len(words)]
        rows = rows[words[rows] == words[rows + distance]]
    return None


def repeated_key(key: BoundPredicate, side: int, batch: pa.RecordBatch, row: int) -> InputError:
    """The error that names a key which occurs more than once."""
    names = dict.fromkeys(key.columns[side])
    values = ", ".join(f"{name} = {batch.column(name)[row].as_py()!r}" for name in names)
    return InputError(
        f"the {('left', 'right')[side]} input was declared to have every key once, but {values} occurs more than once; "
        f"leave the declaration of a 1:N join away, or remove the repeated rows"
    )
