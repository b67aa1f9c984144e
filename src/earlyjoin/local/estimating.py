"""``q.estimate`` of a running join: counts matches of arriving rows, watches the order, says why when it cannot tell.

The driver passes every arrival through :meth:`Estimating.through`. While nothing was spilled, an operator that joins on
arrival has joined all pairs of the rows read, so an arriving batch and its matches are all that
:class:`~earlyjoin.algorithms.estimation.TwoSided` needs. With the first spill the counts stop, and the estimate stays
that of the rows read before: still a random sample. An operator that joins in blocks (PMJ) may have an attribute
``joined_blocks``, the blocks that it has joined completely as (left rows, right rows, matches); then those are used.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from earlyjoin.algorithms.estimation import BetweenBlocks, Estimate, Estimator, OrderCheck, TwoSided
from earlyjoin.algorithms.estimation.order import as_text
from earlyjoin.algorithms.estimation.rates import RateCheck
from earlyjoin.algorithms.join_types import JoinType
from earlyjoin.algorithms.protocol import Matches, Operator, Plan, Step
from earlyjoin.local.sources.base import Source
from earlyjoin.state.budget import Account
from earlyjoin.state.rows import BatchRows

JOINS_ON_ARRIVAL = frozenset({"shj", "nested", "xjoin", "hmj", "rpj", "ehj", "diner"})
"""Algorithms by whom an arriving row is joined at once with all rows in memory, unless they say so themselves."""
MEMORY_SHARE = 1 / 32
COUNTED_ROWS, COUNTED_LATER = 65536, 8
"""The matches of so many rows of a side are counted row by row, later only those of every eighth batch."""
_MOST_COLUMNS = 2
_NAMES = ("left", "right")
_REMEDY = "shuffle it, or read it block-shuffled: open_source(path, name=..., order='shuffled') for Parquet"

Counts = npt.NDArray[np.int64]


class Estimating:
    """The estimate of one run. ``rows_taken`` and ``ended`` are the driver's own lists."""

    def __init__(
        self,
        plan: Plan,
        sources: Sequence[Source],
        operator: Operator,
        account: Account,
        rows_taken: list[int],
        ended: list[bool],
        most_batch_rows: int,
    ) -> None:
        self._sources = sources
        self._operator = operator
        self._account = account
        self._rows_taken, self._ended = rows_taken, ended
        self._lock = threading.Lock()
        self._by_rows, self._by_blocks = TwoSided(), TwoSided()
        self._rates = RateCheck()
        self._columns = [_key_columns(plan, side) for side in range(plan.sides)]
        self._orders = [[OrderCheck() for _ in columns] for columns in self._columns]
        self._blocks: list[_Blocks | None] = [None] * plan.sides
        self._arrivals = [0] * plan.sides
        self._frozen = False
        self._pending = False
        self._refused = self._refusal(plan, most_batch_rows)
        if self._refused is None:
            self._blocks = [_shuffled_blocks(source) for source in sources]

    # What the driver does

    def through(self, side: int, batch: pa.RecordBatch, steps: Iterator[Step]) -> Iterator[Step]:
        """The steps of an arrival, unchanged; what they find is counted."""
        if self._refused is not None:
            yield from steps
            return
        self._watch(side, batch)
        if self._frozen or not self._on_arrival:
            yield from steps
            return
        counts = _RowCounts(side, batch.num_rows) if self._counts_rows(side) else None
        found = 0
        self._pending = True
        for step in steps:
            if step is not None:
                found += len(step)
                if counts is not None:
                    counts.add(step)
            yield step
        self._pending = False
        if self._spilled or (counts is not None and counts.lost):
            self._frozen = True
        else:
            self._commit(side, batch.num_rows, found, counts)

    def close(self) -> None:
        """Give the memory back; what was found out stays."""
        self._account.clear()

    # What the user asks

    def get(self, found: int) -> dict[str, Any] | None:
        """The estimate of the size of the whole result, of which so many rows were found already, or None."""
        estimate = self._answer()[0]
        if estimate is None:
            return None
        low, high = max(math.floor(estimate.low), found), max(math.ceil(estimate.high), found)
        rows = min(max(round(estimate.rows), low), high)
        return {"rows": rows, "low": low, "high": high, "confidence": estimate.confidence}

    @property
    def reason(self) -> str | None:
        """Why there is no estimate; None when there is one."""
        return self._answer()[1]

    def to_values(self) -> dict[str, Any]:
        """Plain values for a pause. Matches of an arrival in hand are not counted: the counts stop there."""
        with self._lock:
            return {
                "frozen": self._frozen or self._pending,
                "arrivals": list(self._arrivals),
                "by_rows": self._by_rows.to_values(),
                "by_blocks": self._by_blocks.to_values(),
                "rates": self._rates.to_values(),
                "orders": [[check.to_values() for check in checks] for checks in self._orders],
                "blocks": [None if blocks is None else blocks.to_values() for blocks in self._blocks],
            }

    def go_on(self, values: dict[str, Any]) -> None:
        """Continue the counts of an earlier process."""
        self._frozen, self._arrivals = values["frozen"], list(values["arrivals"])
        self._by_rows = TwoSided.from_values(values["by_rows"])
        self._by_blocks = TwoSided.from_values(values["by_blocks"])
        self._rates = RateCheck.from_values(values["rates"])
        self._orders = [[OrderCheck.from_values(check) for check in checks] for checks in values["orders"]]
        for blocks, saved in zip(self._blocks, values["blocks"], strict=True):
            if blocks is not None and saved is not None:
                blocks.go_on(saved)

    # How

    @property
    def _on_arrival(self) -> bool:
        return bool(getattr(self._operator, "joins_on_arrival", self._operator.description.name in JOINS_ON_ARRIVAL))

    @property
    def _spilled(self) -> bool:
        counters = self._operator.context.counters
        return counters.tuples_written > 0 or counters.bytes_written > 0 or counters.flushes > 0

    def _refusal(self, plan: Plan, most_batch_rows: int) -> str | None:
        if plan.sides != 2:
            return "sizes are estimated for joins of two inputs"
        if plan.how is not JoinType.INNER:
            return f"sizes are estimated for inner joins: which rows of a {plan.how} join stay alone shows at the end"
        if not self._on_arrival and not hasattr(self._operator, "joined_blocks"):
            return f"{self._operator.description.name} does not join rows when they arrive"
        checks = sum(
            OrderCheck.most_bytes(text=_is_text(plan.schemas[side].field(name).type))
            for side, columns in enumerate(self._columns)
            for name in columns
        )
        needed, limit = 8 * most_batch_rows + checks, self._account.limit.bytes
        if (limit is not None and needed > limit * MEMORY_SHARE) or not self._account.try_reserve(needed):
            return "the memory is too small to keep statistics besides the join"
        return None

    def _watch(self, side: int, batch: pa.RecordBatch) -> None:
        for name, check in zip(self._columns[side], self._orders[side], strict=True):
            start, stop = check.wanted(batch.num_rows)
            if stop > start:
                check.take(_values(batch.column(name).slice(start, stop - start)), stop)
            check.take(np.empty(0), batch.num_rows - stop)

    def _counts_rows(self, side: int) -> bool:
        """Are the matches of the next batch counted row by row? Not of all, once many were."""
        few = self._by_rows.units[side] < COUNTED_ROWS
        return few or self._arrivals[side] % COUNTED_LATER == 0 or self._blocks != [None, None]

    def _commit(self, side: int, rows: int, found: int, counts: _RowCounts | None) -> None:
        with self._lock:
            met = self._by_rows.rows[1 - side]
            self._arrivals[side] += 1
            self._rates.update(side, rows, met, found)
            if counts is None:
                self._by_rows.update_total(side, rows, found)
                return
            matches = counts.matches()
            self._by_rows.update(side, rows, matches)
            if self._blocks != [None, None]:
                self._commit_blocks(side, rows, counts, matches)

    def _commit_blocks(self, side: int, rows: int, counts: _RowCounts, matches: Counts) -> None:
        blocks = self._blocks[side]
        if blocks is None:
            self._by_blocks.update(side, rows, matches)
            return
        goes_on = blocks.inside
        ends, sizes = blocks.cut(rows)
        self._by_blocks.update(side, rows, counts.between(ends), sizes=sizes, goes_on=goes_on)

    def _answer(self) -> tuple[Estimate | None, str | None]:
        if self._refused is not None:
            return None, self._refused
        with self._lock:
            joined = getattr(self._operator, "joined_blocks", None)
            estimator: Estimator = self._by_rows
            if joined is not None:
                estimator = BetweenBlocks(self._totals())
                for left, right, matches in list(joined):
                    estimator.update((left, right), matches)
                alarm = self._order_alarm()
                if alarm is not None:
                    return None, alarm
            else:
                self._by_rows.total_rows = self._by_blocks.total_rows = self._totals()
                if self._by_rows.joined_pairs < self._by_rows.total_pairs:
                    alarm = self._order_alarm()
                    if alarm is not None and not self._alarmed_are_blocks():
                        return None, alarm
                    if alarm is not None:
                        estimator = self._by_blocks
                        alarm = self._same_shuffle()
                    elif max(self._by_rows.fractions) < 1 and not self._rates.agree(*self._by_rows.unit_variances()):
                        alarm = (
                            "matches do not come at an even rate: the orders of the two inputs depend on each other; "
                            "shuffle one of them anew, or read it with order='shuffled' (Parquet) and a seed of its own"
                        )
                    if alarm is not None:
                        return None, alarm
            return estimator.get(), estimator.reason

    def _totals(self) -> tuple[int | None, int | None]:
        left, right = (
            taken if over else source.rows_hint
            for source, taken, over in zip(self._sources, self._rows_taken, self._ended, strict=True)
        )
        return left, right

    def _alarms(self, side: int) -> str | None:
        # The order of an input that was read completely does not matter.
        if self._by_rows.fractions[side] >= 1:
            return None
        return next((check.reason for check in self._orders[side] if check.reason is not None), None)

    def _order_alarm(self) -> str | None:
        for side, source in enumerate(self._sources):
            alarm = self._alarms(side)
            if alarm is not None:
                return (
                    f"the {_NAMES[side]} input ({source.name}) is not in random order ({alarm}), so no interval holds; "
                    f"{_REMEDY}"
                )
        return None

    def _alarmed_are_blocks(self) -> bool:
        return all(blocks is not None or self._alarms(side) is None for side, blocks in enumerate(self._blocks))

    def _same_shuffle(self) -> str | None:
        left, right = self._blocks
        if left is not None and right is not None and left.shuffle == right.shuffle:
            return "both inputs are block-shuffled by the same seed, so their orders agree: give them different seeds"
        return None


class _RowCounts:
    """Matches of each row of an arriving batch, whatever row numbers the operator uses."""

    def __init__(self, side: int, rows: int) -> None:
        self._side = side
        self._rows = rows
        self._spaces: dict[int, tuple[object, int, Counts]] = {}
        self.lost = False
        """True when the row numbers make no sense as those of a batch."""

    def add(self, step: Matches) -> None:
        """Count the rows of a step."""
        index, rows = step.index[self._side], step.rows[self._side]
        if index is None or rows is None or len(index) == 0 or self.lost:
            return
        # Row numbers of a batch count from 0; those of a store from wherever the batch was put.
        holder = rows.batch if isinstance(rows, BatchRows) else rows
        first = 0 if isinstance(rows, BatchRows) else int(index.min())
        known = self._spaces.get(id(holder))
        if known is not None and first < known[1]:
            known = (holder, first, np.concatenate((np.zeros(known[1] - first, dtype=np.int64), known[2])))
        if known is not None:
            first = known[1]
        found = np.bincount(index - first if first else index, minlength=0 if known is None else len(known[2]))
        if len(found) > 2 * self._rows + 1024:
            self.lost = True
            return
        if known is not None:
            found[: len(known[2])] += known[2]
        self._spaces[id(holder)] = (holder, first, found)

    def matches(self) -> Counts:
        """Matches of each row that has any, in some order; rows without may be among them."""
        counts = [found for _, _, found in self._spaces.values()]
        return np.concatenate(counts) if counts else np.empty(0, dtype=np.int64)

    def between(self, ends: Counts) -> Counts:
        """Matches of the rows up to each of ``ends`` (positions in the batch) since the end before."""
        total = np.zeros(len(ends), dtype=np.int64)
        for _, _, found in self._spaces.values():
            sums = np.concatenate(([0], np.cumsum(found)))
            total += np.diff(sums[np.minimum(ends, len(found))], prepend=0)
            total[-1] += sums[-1] - sums[min(int(ends[-1]), len(found))]
        return total


class _Blocks:
    """Where the blocks of a block-shuffled input end."""

    def __init__(self, sizes: Sequence[int], shuffle: tuple[int, int]) -> None:
        self._ends = np.cumsum(np.asarray(sizes, dtype=np.int64))
        self.shuffle = shuffle
        self._at = 0

    @property
    def inside(self) -> bool:
        """Has a part of the present block come already?"""
        return self._at > 0 and self._at not in self._ends

    def cut(self, rows: int) -> tuple[Counts, Counts]:
        """Where in the next ``rows`` rows each block's part ends, and how many rows each part has."""
        inside = self._ends[(self._ends > self._at) & (self._ends < self._at + rows)]
        ends = np.append(inside - self._at, rows).astype(np.int64)
        self._at += rows
        return ends, np.diff(ends, prepend=0)

    def to_values(self) -> dict[str, Any]:
        return {"at": self._at}

    def go_on(self, values: dict[str, Any]) -> None:
        self._at = values["at"]


def _shuffled_blocks(source: Source) -> _Blocks | None:
    """The row groups of a Parquet source that is read in shuffled order."""
    from earlyjoin.local.sources.parquet import ParquetSource

    if not isinstance(source, ParquetSource) or source._order != "shuffled":
        return None
    sizes = [source._rows(file, group) for file, group in source._units()]
    return _Blocks(sizes, (source._seed, len(sizes)))


def _key_columns(plan: Plan, side: int) -> list[str]:
    """The columns whose order is watched: the first that the condition looks at."""
    names = dict.fromkeys(name for part in plan.condition.parts for name in part.columns[side])
    return [name for name in names if _can_rank(plan.schemas[side].field(name).type)][:_MOST_COLUMNS]


def _plain(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _is_text(type_: pa.DataType) -> bool:
    plain = _plain(type_)
    return any(
        test(plain)
        for test in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_fixed_size_binary,
            pa.types.is_string_view,
            pa.types.is_binary_view,
        )
    )


def _can_rank(type_: pa.DataType) -> bool:
    plain = _plain(type_)
    numeric = pa.types.is_integer(plain) or pa.types.is_floating(plain) or pa.types.is_decimal(plain)
    temporal = pa.types.is_temporal(plain) and not pa.types.is_interval(plain)
    return bool(numeric or temporal or pa.types.is_boolean(plain) or _is_text(plain))


def _values(column: pa.Array) -> npt.NDArray[Any]:
    """A few values of a column as something to rank; nulls left out."""
    column = column.drop_null()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if _is_text(column.type):
        return as_text([v.encode() if isinstance(v, str) else v for v in column.to_pylist()])
    if pa.types.is_temporal(column.type) or pa.types.is_boolean(column.type):
        width = pa.int32() if column.type.bit_width == 32 else pa.int64()
        column = column.cast(width if pa.types.is_temporal(column.type) else pa.int8())
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    values: npt.NDArray[np.float64] = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return values
