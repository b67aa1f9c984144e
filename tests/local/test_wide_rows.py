"""Rows that are wide for their memory: a join that has begun must not fail for want of room in its clean-up."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv

import earlyjoin as ej
from earlyjoin.algorithms import registry
from earlyjoin.errors import BudgetExceeded

_SORT = ("pmj", "smj")
_HASH = ("xjoin", "hmj", "rpj", "dhj", "dphj", "ehj")
_SPILLING = [name for name in registry.names() if registry.get(name).description.spills]


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
    return pa.table({"k": range(rows), "s": [f"row{number:03d}" * (width // 6) for number in range(rows)]})


def _megabytes(rows: int) -> pa.Table:
    return pa.table({"k": range(rows), "s": [chr(97 + n) * 1_000_000 for n in range(rows)]})


@pytest.mark.parametrize("memory", ["12MB", *(pytest.param(more, marks=pytest.mark.slow) for more in ("16MB", "32MB"))])
@pytest.mark.parametrize("algorithm", ["auto", *_HASH, *_SORT])
def test_a_dozen_rows_are_enough_room(algorithm: str, memory: str) -> None:
    table = _megabytes(20)
    joined = ej.join(table, table, on="k", memory=memory, algorithm=algorithm, engine="local").to_arrow()
    found = sorted(zip(joined["k"].to_pylist(), joined["s"].to_pylist(), joined["s_right"].to_pylist(), strict=True))
    assert found == [(k, s, s) for k, s in zip(*table.to_pydict().values(), strict=True)]


@pytest.mark.parametrize("memory", ["4MB", "8MB", "10MB"])
@pytest.mark.parametrize("algorithm", _HASH)
def test_what_does_not_fit_is_refused_before_the_first_row(algorithm: str, memory: str) -> None:
    table = _megabytes(20)
    message = r"needs room for about 11 rows at once, .* rows of about 1\.0 MB do not fit so often .* at least 10\.7 MB"
    with pytest.raises(BudgetExceeded, match=message) as refused:
        ej.join(table, table, on="k", memory=memory, algorithm=algorithm, engine="local")
    assert ("use algorithm pmj" in str(refused.value)) == (memory != "4MB"), "another is named only where it can"


def test_auto_takes_an_algorithm_that_needs_fewer_rows_at_once() -> None:
    table = _wide(12, 1_000_000)
    query = ej.join(table, table, on="k", memory="8MB", engine="local")
    assert query.algorithm == "pmj"
    assert sorted(query.to_arrow()["k"].to_pylist()) == list(range(12))
    with pytest.raises(BudgetExceeded, match=r"pmj needs room for about 8 rows at once, .* at least 7\.8 MB$"):
        ej.join(table, table, on="k", memory="7MB", engine="local")


_WIDTHS = [
    pytest.param(width, memory, unknown, id=f"{width}-{memory}-{form}", marks=pytest.mark.slow if slow else ())
    for width, memory, unknown, form, slow in (
        (10_000, "100KB", False, "table", False),
        (10_000, "100KB", True, "stream", True),
        (40_000, "500KB", False, "table", True),
        (40_000, "500KB", True, "stream", False),
        (60_000, "500KB", False, "table", True),
        (60_000, "500KB", True, "stream", True),
        (200_000, "1.5MB", False, "table", False),
        (200_000, "1.5MB", True, "stream", True),
    )
]


@pytest.mark.parametrize(("width", "memory", "unknown"), _WIDTHS)
@pytest.mark.parametrize("algorithm", ["auto", *_SPILLING])
def test_all_rows_come_or_none_and_what_is_advised_works(
    algorithm: str, unknown: bool, width: int, memory: str
) -> None:
    table = _wide(30, width)
    found, error = _joined(table, memory, algorithm, unknown=unknown)
    if error is not None:
        assert found == []
        advised = re.search(r"at least (\S+ [kM]B)", error)
        assert advised is not None, error
        found, error = _joined(table, advised[1], algorithm, unknown=unknown)
    assert error is None
    assert sorted(found) == list(range(30))


def _joined(table: pa.Table, memory: str, algorithm: str, *, unknown: bool) -> tuple[list[object], str | None]:
    """The keys of the rows that came, and the error that ended the join."""
    found: list[object] = []
    inputs = [table.to_reader(max_chunksize=7) if unknown else table for _ in range(2)]
    try:
        for batch in ej.join(*inputs, on="k", memory=memory, algorithm=algorithm, engine="local"):
            found += batch["k"].to_pylist()
    except BudgetExceeded as error:
        return found, str(error)
    return found, None


@pytest.mark.parametrize(
    "memory", ["500KB", *(pytest.param(more, marks=pytest.mark.slow) for more in ("700KB", "1MB"))]
)
@pytest.mark.parametrize("algorithm", ["auto", *_SPILLING])
def test_keys_may_be_as_wide_as_rows(algorithm: str, memory: str) -> None:
    table = _wide(40, 60_000).select(["s"]).rename_columns(["k"])
    found, error = _joined(table, memory, algorithm, unknown=False)
    if error is not None:
        assert found == []
        advised = re.search(r"at least (\S+ [kM]B)", error)
        assert advised is not None, error
        found, error = _joined(table, advised[1], algorithm, unknown=False)
    assert error is None
    assert sorted(found) == table["k"].to_pylist()


@pytest.mark.parametrize("algorithm", ["hmj", "rpj", "rpj-dd"])
def test_rows_too_wide_for_merges_beside_a_full_table_wait_for_the_clean_up(algorithm: str) -> None:
    table = _wide(60, 60_000)

    def slow() -> Iterator[pa.RecordBatch]:
        for batch in table.to_batches(max_chunksize=20):
            yield batch
            time.sleep(0.1)

    query = ej.join(slow(), slow(), on="k", memory="800KB", algorithm=algorithm, engine="local")
    assert sorted(query.to_arrow()["k"].to_pylist()) == list(range(60))


@pytest.mark.parametrize("memory", ["16MB", "32MB"])
def test_rows_of_texts_are_as_wide_as_those_of_tables(tmp_path: Path, memory: str) -> None:
    table = _wide(12, 1_000_000)
    path = tmp_path / "wide.csv"
    csv.write_csv(table, path)
    joined = ej.join(path, path, on="k", memory=memory, engine="local").to_arrow()
    assert sorted(joined["k"].to_pylist()) == list(range(12))


def test_a_resumed_join_knows_how_wide_its_rows_are(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    csv.write_csv(_wide(40, 60_000), path)
    query = ej.join(path, path, on="k", memory="800KB", algorithm="xjoin", engine="local")
    batches = iter(query)
    found = next(batches)["k"].to_pylist()
    query.pause(tmp_path / "paused")
    found += ej.resume(tmp_path / "paused").to_arrow()["k"].to_pylist()
    assert sorted(found) == list(range(40))


def test_auto_looks_at_rows_of_unknown_width_before_it_begins() -> None:
    table = _wide(12, 1_000_000)
    query = ej.join(table.to_reader(), table.to_reader(), on="k", memory="8MB", engine="local")
    assert query.algorithm == "ehj"
    assert sorted(query.to_arrow()["k"].to_pylist()) == list(range(12))
    assert query.algorithm == "pmj"


def test_a_wide_row_on_a_side_that_is_late_is_refused_before_the_first_row() -> None:
    table = _wide(12, 60_000)

    def late() -> Iterator[pa.RecordBatch]:
        time.sleep(1.3)
        yield from table.to_batches()

    found, error = [], None
    try:
        for batch in ej.join(table.to_reader(), late(), on="k", memory="400KB", engine="local"):
            found += batch["k"].to_pylist()
    except BudgetExceeded as raised:
        error = str(raised)
    assert error is not None
    assert found == []


def test_a_wide_row_among_narrow_ones_is_told_with_the_part_that_it_does_not_fit() -> None:
    table = pa.table({"k": range(1000), "s": ["x"] * 999 + ["y" * 3_000_000]})
    message = r"row of about 3\.0 MB.* the memory of 16\.0 MB sets aside for .* is .* at least \S+ MB"
    with pytest.raises(BudgetExceeded, match=message):
        ej.join(table, table, on="k", memory="16MB", engine="local").to_arrow()
