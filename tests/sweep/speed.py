"""How fast whole sweep joins are beside DuckDB and a NumPy nested loop, in one run.

``PYTHONPATH=src:tests python -m sweep.speed [band] [intervals] [rectangles] [near]``; not a test. Every part is run
``TIMES`` times on both sides, alternating, and the best is taken; kernels are compiled before the clock starts.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import earlyjoin.predicates as predicates
from earlyjoin.algorithms.sweep import sweep_join
from earlyjoin.predicates.base import Predicate

DATA = Path(os.environ.get("EARLYJOIN_DATA", "no-data"))
"""Where the real data sets are."""
TIMES = 3
BAND_ROWS = 1_000_000


def count_sweep(condition: Predicate, left: pa.Table, right: pa.Table) -> int:
    """Encode, sort, sweep, and count the pairs."""
    bound = condition.bind(left.schema, right.schema)
    keys = [bound.encode(side, one_batch(table)) for side, table in enumerate((left, right))]
    return sum(len(pairs[0]) for pairs in sweep_join(bound, *keys))


def one_batch(table: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([column.combine_chunks() for column in table.columns], schema=table.schema)


def flights() -> tuple[pa.Table, pa.Table]:
    table = pq.read_table(DATA / "intervals_flights.parquet")
    return tuple(table.filter(pc.equal(table["origin"], code)).select(["start", "end"]) for code in ("EWR", "JFK"))


def rectangles() -> tuple[pa.Table, pa.Table]:
    names = ["xmin", "ymin", "xmax", "ymax"]
    return tuple(pq.read_table(DATA / f"spatial_{name}.parquet", columns=names) for name in ("roads", "linearwater"))


def trades() -> tuple[pa.Table, pa.Table]:
    table = pq.read_table(DATA / "stock_ibm_trades.parquet")
    return tuple(table.filter(pc.equal(table["side"], side)).select(["price"]) for side in ("B", "S"))


def letters() -> pa.Table:
    return pq.read_table(DATA / "vectors_letter16.parquet").drop_columns(["letter"])


def _best(runs: dict[str, Callable[[], int]]) -> dict[str, tuple[float, int]]:
    best: dict[str, tuple[float, int]] = {}
    for _ in range(TIMES):
        for name, run in runs.items():
            begin = time.perf_counter()
            rows = run()
            seconds = time.perf_counter() - begin
            best[name] = (min(seconds, best.get(name, (np.inf, 0))[0]), rows)
    return best


def _against_duckdb(what: str, condition: Predicate, tables: tuple[pa.Table, pa.Table], sqls: list[str]) -> None:
    """DuckDB's best of several ways to write the predicate; it gives the pairs of row numbers, as the sweep does."""
    import duckdb

    def run_sql(sql: str) -> int:
        # Materialised in DuckDB's own format: fetching into Arrow would only make it slower.
        connection.execute(f"create or replace temp table result as select l.id as i, r.id as j from {sql}")
        return connection.execute("select count(*) from result").fetchone()[0]

    connection = duckdb.connect()
    for name, table in zip("lr", tables, strict=True):
        source = table.append_column("id", pa.array(np.arange(len(table))))  # noqa: F841 - DuckDB finds it by its name
        connection.execute(f"create table {name} as select * from source")
    count_sweep(condition, tables[0].slice(0, 100), tables[1].slice(0, 100))
    runs: dict[str, Callable[[], int]] = {"sweep": lambda: count_sweep(condition, *tables)}
    runs |= {f"duckdb {number}": lambda sql=sql: run_sql(sql) for number, sql in enumerate(sqls)}
    best = _best(runs)
    theirs = min(seconds for name, (seconds, _) in best.items() if name != "sweep")
    assert len({rows for _, rows in best.values()}) == 1, best
    print(f"{what}: {best['sweep'][1]:,} rows; {best['sweep'][0] / theirs:.2f} x DuckDB; seconds "
          + ", ".join(f"{name} {seconds:.3f}" for name, (seconds, _) in best.items()), flush=True)  # fmt: skip


def band() -> None:
    random = np.random.default_rng(1)
    tables = tuple(pa.table({"x": random.random(BAND_ROWS)}) for _ in range(2))
    eps = 5 / BAND_ROWS
    window = f"l.x >= r.x - {eps!r}::double and l.x <= r.x + {eps!r}::double"
    sql = f"l, r where {window} and abs(l.x - r.x) <= {eps!r}::double"
    _against_duckdb("band 1M x 1M, 10 matches a row", predicates.band("x", eps=eps), tables, [sql])


def intervals() -> None:
    sql = 'l, r where l.start < r."end" and r.start < l."end"'
    _against_duckdb("intervals EWR x JFK", predicates.overlaps(("start", "end"), closed=False), flights(), [sql])


def roads_water() -> None:
    """DuckDB's own plan for the four inequalities took over 170 s, so it gets a join by cells of a tuned size."""
    x, y = "l.xmin <= r.xmax and r.xmin <= l.xmax", "l.ymin <= r.ymax and r.ymin <= l.ymax"
    condition = predicates.intersects(("xmin", "ymin", "xmax", "ymax"))
    sqls = []
    for cell in (1000, 2000, 5000):
        cells = [
            f"(select *, unnest(range(ymin//{cell}, ymax//{cell}+1)) cy from "
            f"(select *, unnest(range(xmin//{cell}, xmax//{cell}+1)) cx from {name})) {name}"
            for name in "lr"
        ]
        once = f"greatest(l.xmin,r.xmin)//{cell}=l.cx and greatest(l.ymin,r.ymin)//{cell}=l.cy"
        sqls.append(f"{cells[0]}, {cells[1]} where l.cx=r.cx and l.cy=r.cy and {x} and {y} and {once}")
    _against_duckdb("rectangles roads x water", condition, rectangles(), sqls)


def letter_eps(points: np.ndarray, share: float = 1e-4) -> float:
    """An eps that selects at least ``share`` of the pairs of different rows, from a sample of rows against all."""
    chosen = points[:: len(points) // 200]
    squares = ((chosen[:, None, :] - points[None, :, :]) ** 2).sum(axis=2).ravel()
    return float(np.sqrt(np.quantile(squares, share + 1 / len(points))))


def nested_loop(points: np.ndarray, eps: float) -> int:
    """Row by row against all others, with what NumPy has."""
    found = 0
    for point in points:
        steps = points - point
        found += np.count_nonzero(np.einsum("ij,ij->i", steps, steps) <= eps * eps)
    return found


def near() -> None:
    table = letters()
    points = np.stack([column.to_numpy() for column in table.columns], axis=1).astype(np.float64)
    eps = letter_eps(points)
    condition = predicates.near(table.column_names, eps=eps)
    count_sweep(condition, table.slice(0, 100), table.slice(0, 100))
    best = _best({"sweep": lambda: count_sweep(condition, table, table)})
    begin = time.perf_counter()
    rows = nested_loop(points, eps)
    loop = time.perf_counter() - begin
    assert rows == best["sweep"][1], (rows, best)
    print(f"near letter16, eps {eps:.3f}: {rows:,} rows, {rows / len(points) ** 2:.2e} of pairs; sweep "
          f"{loop / best['sweep'][0]:.1f} x faster than a nested loop; seconds {best['sweep'][0]:.3f}, {loop:.1f}",
          flush=True)  # fmt: skip


PARTS = {"band": band, "intervals": intervals, "rectangles": roads_water, "near": near}


def print_ratios(names: list[str]) -> None:
    """Run the named parts, or all."""
    for name in names or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    print_ratios(sys.argv[1:])
