"""Do the inputs come in random order, as far as the first key columns show? Any type of column can be watched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from earlyjoin.algorithms.estimation import OrderCheck
from earlyjoin.algorithms.estimation.order import as_text
from earlyjoin.algorithms.protocol import Plan
from earlyjoin.local.sources.base import Source
from earlyjoin.predicates.encoding.buffers import fixed_width, plain

_MOST_COLUMNS = 2
_NAMES = ("left", "right")
_REMEDY = "shuffle it, or read it block-shuffled: open_source(path, name=..., order='shuffled') for Parquet"


class OrderWatch:
    """The order checks of all inputs."""

    def __init__(self, plan: Plan, sources: Sequence[Source]) -> None:
        self._sources = sources
        self._columns = [_key_columns(plan, side) for side in range(plan.sides)]
        self._checks = [[OrderCheck() for _ in columns] for columns in self._columns]

    @staticmethod
    def most_bytes(plan: Plan) -> int:
        """Bytes that the checks can hold."""
        return sum(
            OrderCheck.most_bytes(text=_is_text(plan.schemas[side].field(name).type))
            for side in range(plan.sides)
            for name in _key_columns(plan, side)
        )

    def watch(self, side: int, batch: pa.RecordBatch) -> None:
        """A batch came; a few of its rows are looked at."""
        for name, check in zip(self._columns[side], self._checks[side], strict=True):
            start, stop = check.wanted(batch.num_rows)
            if stop > start:
                check.take(_values(batch.column(name).slice(start, stop - start)), stop)
            check.take(np.empty(0), batch.num_rows - stop)

    def alarm(self, side: int) -> str | None:
        """What is wrong with the order of an input."""
        return next((check.reason for check in self._checks[side] if check.reason is not None), None)

    def reason(self, sides: Sequence[int]) -> str | None:
        """What is wrong with any of these inputs, and what to do."""
        for side in sides:
            alarm = self.alarm(side)
            if alarm is not None:
                return (
                    f"the {_NAMES[side]} input ({self._sources[side].name}) is not in random order ({alarm}), "
                    f"so no interval holds; {_REMEDY}"
                )
        return None

    def to_values(self) -> list[list[dict[str, Any]]]:
        """The order checks as plain values, for a pause."""
        return [[check.to_values() for check in checks] for checks in self._checks]

    def go_on(self, values: list[list[dict[str, Any]]]) -> None:
        """The inverse of ``to_values``."""
        self._checks = [[OrderCheck.from_values(check) for check in checks] for checks in values]


def _key_columns(plan: Plan, side: int) -> list[str]:
    """The columns whose order is watched: the first that the condition looks at."""
    names = dict.fromkeys(name for part in plan.condition.parts for name in part.columns[side])
    return [name for name in names if _can_rank(plan.schemas[side].field(name).type)][:_MOST_COLUMNS]


def _plain(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _is_text(type_: pa.DataType) -> bool:
    own = _plain(type_)
    return any(
        test(own)
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
    own = _plain(type_)
    numeric = pa.types.is_integer(own) or pa.types.is_floating(own) or pa.types.is_decimal(own)
    temporal = pa.types.is_temporal(own) and not pa.types.is_interval(own)
    return bool(numeric or temporal or pa.types.is_boolean(own) or _is_text(own))


def _values(column: pa.Array) -> npt.NDArray[Any]:
    """A few values of a column as something to rank; nulls left out."""
    column = plain(column).drop_null()  # Arrow cannot filter views
    if _is_text(column.type):
        return as_text([v.encode() if isinstance(v, str) else v for v in column.to_pylist()])
    if pa.types.is_temporal(column.type) or pa.types.is_boolean(column.type):
        width = pa.int32() if column.type.bit_width == 32 else pa.int64()
        column = column.cast(width if pa.types.is_temporal(column.type) else pa.int8())
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    return fixed_width(column.cast(pa.float64(), safe=False), np.float64)  # to_numpy would import pandas
