"""Rows that are wide for their memory: a join that has begun must not fail for want of room in its clean-up."""

from __future__ import annotations

import pyarrow as pa
import pytest

import earlyjoin as ej
from earlyjoin.algorithms import registry
from earlyjoin.errors import BudgetExceeded

_SORT = ("pmj", "smj")
_HASH = ("xjoin", "hmj", "rpj", "dhj", "dphj", "ehj")


@pytest.mark.parametrize("algorithm", _HASH)
def test_pages_can_be_read_beside_a_full_table(algorithm: str) -> None:
    assert registry.get(algorithm).description.spills
    table = pa.table({"k": range(4000), "s": ["x" * 500] * 4000})
    joined = ej.join(table, table, on="k", memory="500KB", algorithm=algorithm, engine="local").to_arrow()
    assert sorted(joined["k"].to_pylist()) == list(range(4000))


@pytest.mark.parametrize("memory", ["500KB", "1MB"])
@pytest.mark.parametrize("algorithm", ["auto", *_SORT])
def test_a_few_hundred_rows_are_enough_room(algorithm: str, memory: str) -> None:
    table = pa.table({"k": range(2000), "s": ["x" * 500] * 2000})
    joined = ej.join(table, table, on="k", memory=memory, algorithm=algorithm, engine="local").to_arrow()
    assert sorted(joined["k"].to_pylist()) == list(range(2000))


@pytest.mark.parametrize(("width", "memory"), [(60_000, "721KB"), (1_000_000, "16MB")])
@pytest.mark.parametrize("algorithm", ["dhj", "dphj", "ehj"])
def test_page_buffers_of_frozen_partitions_leave_room_for_rows(algorithm: str, width: int, memory: str) -> None:
    table = _wide(60, width)
    joined = ej.join(table, table, on="k", memory=memory, algorithm=algorithm, engine="local").to_arrow()
    assert sorted(joined["k"].to_pylist()) == list(range(60))


def _wide(rows: int, width: int) -> pa.Table:
    return pa.table({"k": range(rows), "s": [f"{number:06d}" * (width // 6) for number in range(rows)]})


def _megabytes(rows: int) -> pa.Table:
    return pa.table({"k": range(rows), "s": [chr(97 + n) * 1_000_000 for n in range(rows)]})


@pytest.mark.parametrize("memory", ["12MB", "16MB", "32MB"])
@pytest.mark.parametrize("algorithm", ["auto", *_HASH, *_SORT])
def test_a_dozen_rows_are_enough_room(algorithm: str, memory: str) -> None:
    table = _megabytes(20)
    joined = ej.join(table, table, on="k", memory=memory, algorithm=algorithm, engine="local").to_arrow()
    found = sorted(zip(joined["k"].to_pylist(), joined["s"].to_pylist(), joined["s_right"].to_pylist(), strict=True))
    assert found == [(k, s, s) for k, s in zip(*table.to_pydict().values(), strict=True)]


@pytest.mark.parametrize("memory", ["4MB", "8MB", "10MB"])
@pytest.mark.parametrize("algorithm", ["auto", *_HASH])
def test_what_does_not_fit_is_refused_before_the_first_row(algorithm: str, memory: str) -> None:
    table = _megabytes(20)
    with pytest.raises(BudgetExceeded, match=r"rows of about 1\.0 MB do not fit so often .* give at least 12\.0 MB"):
        ej.join(table, table, on="k", memory=memory, algorithm=algorithm, engine="local")


def test_a_wide_row_among_narrow_ones_is_told_with_the_part_that_it_does_not_fit() -> None:
    table = pa.table({"k": range(1000), "s": ["x"] * 999 + ["y" * 3_000_000]})
    message = r"a row of about 3\.0 MB .* the memory of 16\.0 MB sets aside for .*, which is .* at least \S+ MB"
    with pytest.raises(BudgetExceeded, match=message):
        ej.join(table, table, on="k", memory="16MB", engine="local").to_arrow()
