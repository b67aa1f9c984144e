"""Progressive merge join on conditions without an equality: against DuckDB's best plan, and a NumPy nested loop."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from earlyjoin import predicates
from earlyjoin.api import join
from earlyjoin.errors import InputError
from earlyjoin.predicates.conjunction import Condition
from earlyjoin.report.bench.measuring import Bar, Benchmark, Engine
from earlyjoin.report.experiments import pmj_data

_OUTPUT_ROWS = 65536
_BAND_ROWS = 1_000_000
_CELL_SIZES = (1000, 2000, 5000)
_PAIR_SHARE = 1e-4
_LOOP_ROWS = 256


def _ours(left: pa.Table, right: pa.Table, condition: Condition) -> Iterable[pa.RecordBatch]:
    return join(left, right, on=condition, algorithm="pmj", memory="4GB")


def _numbered(table: pa.Table) -> pa.Table:
    return table.append_column("id", pa.array(np.arange(len(table))))


def _against_duckdb(
    left: pa.Table, right: pa.Table, condition: Condition, queries: dict[str, str]
) -> dict[str, Engine]:
    """Both engines give all columns of both sides, as Arrow batches, from tables in memory."""
    try:
        import duckdb
    except ImportError:
        raise InputError(
            "this benchmark compares with DuckDB, which is not installed; run: pip install duckdb"
        ) from None
    left, right = _numbered(left), _numbered(right)
    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    for name, table in (("l", left), ("r", right)):
        connection.register(f"{name}_given", table)
        connection.execute(f"CREATE TABLE {name} AS FROM {name}_given")
    columns = ", ".join(f'{side}."{name}" AS {side}_{name}' for side in "lr" for name in left.column_names)
    engines: dict[str, Engine] = {"earlyjoin": partial(_ours, left, right, condition)}
    for name, query in queries.items():
        engines[name] = partial(_duckdb, connection, f"SELECT {columns} FROM {query}")
    return engines


def _duckdb(connection: Any, query: str) -> Iterable[pa.RecordBatch]:
    batches: Iterable[pa.RecordBatch] = connection.sql(query).to_arrow_reader(_OUTPUT_ROWS)
    return batches


def _prepare_band(_directory: Path, scale: float) -> dict[str, Engine]:
    rows = int(_BAND_ROWS * scale)
    random = np.random.default_rng(1)
    left, right = (pa.table({"x": random.random(rows)}) for _ in range(2))
    eps = 5 / rows
    # The window lets DuckDB sort; the last part is the predicate itself, with its rounding.
    window = f"l.x >= r.x - {eps!r}::DOUBLE AND l.x <= r.x + {eps!r}::DOUBLE"
    query = f"l, r WHERE {window} AND abs(l.x - r.x) <= {eps!r}::DOUBLE"
    return _against_duckdb(left, right, predicates.band("x", eps=eps), {"duckdb": query})


def _prepare_intervals(_directory: Path, scale: float) -> dict[str, Engine]:
    left, right, _ = pmj_data.intervals(scale, 0)
    query = 'l, r WHERE l.start < r."end" AND r.start < l."end"'
    return _against_duckdb(left, right, predicates.overlaps(("start", "end"), closed=False), {"duckdb": query})


def _prepare_rectangles(_directory: Path, scale: float) -> dict[str, Engine]:
    """DuckDB's own plan for four inequalities takes minutes, so it gets joins by cells, written by hand."""
    left, right, _ = pmj_data.rectangles(scale, 0)
    meet = "l.xmin <= r.xmax AND r.xmin <= l.xmax AND l.ymin <= r.ymax AND r.ymin <= l.ymax"
    queries = {}
    for cell in _CELL_SIZES:
        cells = [
            f"(SELECT *, unnest(range(ymin // {cell}, ymax // {cell} + 1)) AS cy FROM "
            f"(SELECT *, unnest(range(xmin // {cell}, xmax // {cell} + 1)) AS cx FROM {name})) AS {name}"
            for name in "lr"
        ]
        once = f"greatest(l.xmin, r.xmin) // {cell} = l.cx AND greatest(l.ymin, r.ymin) // {cell} = l.cy"
        queries[f"duckdb, cells of {cell}"] = (
            f"{cells[0]}, {cells[1]} WHERE l.cx = r.cx AND l.cy = r.cy AND {meet} AND {once}"
        )
    condition = predicates.intersects(("xmin", "ymin", "xmax", "ymax"))
    return _against_duckdb(left, right, condition, queries)


def _prepare_near(_directory: Path, scale: float) -> dict[str, Engine]:
    tables = pmj_data.vectors(scale, 0, shuffled=True)[:2]
    both = pa.concat_tables(tables)
    points = np.stack([column.to_numpy() for column in both.columns], axis=1).astype(np.float64)
    eps = _selecting(points, _PAIR_SHARE)
    condition = predicates.near(both.column_names, eps=eps)
    table = _numbered(both)
    return {"earlyjoin": partial(_ours, table, table, condition), "numpy loop": partial(_nested_loop, points, eps)}


def _selecting(points: npt.NDArray[np.float64], share: float) -> float:
    """A distance within which at least such a share of the pairs of different rows lies, from a sample of rows."""
    chosen = points[:: max(1, len(points) // 200)]
    squares = ((chosen[:, None, :] - points[None, :, :]) ** 2).sum(axis=2).ravel()
    return float(np.sqrt(np.quantile(squares, share + 1 / len(points))))


def _nested_loop(points: npt.NDArray[np.float64], eps: float) -> Iterable[pa.RecordBatch]:
    """Row by row against all others, with what NumPy has; gives the numbers of the pairs."""
    for start in range(0, len(points), _LOOP_ROWS):
        found = []
        for point in points[start : start + _LOOP_ROWS]:
            steps = points - point
            found.append(np.flatnonzero(np.einsum("ij,ij->i", steps, steps) <= eps * eps))
        rows = np.repeat(np.arange(start, start + len(found)), [len(others) for others in found])
        yield pa.RecordBatch.from_arrays([pa.array(rows), pa.array(np.concatenate(found))], names=["i", "j"])


ALL = (
    Benchmark(
        name="band-join",
        title="band join of two sets of uniform doubles, 10 matches a row",
        prepare=_prepare_band,
        bars=(Bar("first", 1.0), Bar("total", 3.0)),
    ),
    Benchmark(
        name="interval-join",
        title="overlapping intervals (flights)",
        prepare=_prepare_intervals,
        bars=(Bar("total", 2.0),),
    ),
    Benchmark(
        name="rectangle-join",
        title="intersecting rectangles (roads and waters)",
        prepare=_prepare_rectangles,
        bars=(Bar("total", 2.0),),
    ),
    Benchmark(
        name="distance-join",
        title="points in 16 dimensions within a distance that one pair in 10,000 keeps",
        prepare=_prepare_near,
        bars=(Bar("total", 1 / 20),),
    ),
)
