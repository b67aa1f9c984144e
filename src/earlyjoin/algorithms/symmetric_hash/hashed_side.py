"""One input of a symmetric hash join: its rows, keys, index and flags in memory, grown together."""

from __future__ import annotations

from typing import cast

import numpy as np
import pyarrow as pa

from earlyjoin.errors import BudgetExceeded
from earlyjoin.predicates.base import BoundPredicate
from earlyjoin.predicates.encoding.keys import Bool, Keys
from earlyjoin.state.budget import Budget
from earlyjoin.state.growable import Growable
from earlyjoin.state.hash_index import HashIndex
from earlyjoin.state.key_store import KeyStore
from earlyjoin.state.rows.store import RowStore


class HashedSide:
    """Rows of one side that later rows of the other side will probe."""

    def __init__(self, side: int, schema: pa.Schema, key: BoundPredicate, budget: Budget, *, flags: bool) -> None:
        self.side = side
        self.key = key
        self.rows = RowStore(schema, budget.account("payload"))
        self.keys = KeyStore(budget.account("keys"))
        self.index = HashIndex(budget.account("index"))
        self._matched = Growable(np.bool_, budget.account("flags")) if flags else None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        """Bytes really held."""
        flags = self._matched.nbytes if self._matched is not None else 0
        return self.rows.nbytes + self.keys.nbytes + self.index.nbytes + flags

    @property
    def matched(self) -> Bool | None:
        """A flag a row: has it matched? A view that is valid until the next insert; None when nobody asks."""
        return cast(Bool, self._matched.data) if self._matched is not None else None

    def insert(self, batch: pa.RecordBatch, keys: Keys) -> int:
        """Add rows and return the number of the first; on BudgetExceeded nothing has changed."""
        first = len(self.rows)
        stop = first + batch.num_rows
        try:
            self.index.reserve(stop)
            if self._matched is not None:
                self._matched.extend(batch.num_rows)[:] = False
            self.keys.append(keys)
            self.rows.append(batch)
        except BudgetExceeded:
            self.keys.truncate(first)
            if self._matched is not None:
                self._matched.truncate(first)
            raise
        stored = self.keys.keys()
        assert stored is not None
        self.index.insert(stored, first)
        return first

    def clear(self) -> None:
        """Forget all rows and give the memory back."""
        self.rows.clear()
        self.keys.clear()
        self.index.clear()
        if self._matched is not None:
            self._matched.clear()

    def table(self) -> pa.Table:
        """All rows, for a snapshot."""
        return pa.Table.from_batches([self.rows.batch(np.arange(len(self.rows), dtype=np.int64))])
