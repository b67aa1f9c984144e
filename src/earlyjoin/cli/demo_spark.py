"""``earlyjoin demo`` on Spark: two generated tables joined, what came when, and what plain Spark took for the same."""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from earlyjoin.api import join
from earlyjoin.cli import speaking
from earlyjoin.cli.arguments import EXIT_DONE
from earlyjoin.cli.tables import aligned
from earlyjoin.spark.session import start_session

FILES = 12
ORDERS, ITEMS = 400_000, 1_600_000
FIRST_ROWS = 1000
_SHOWN_ROWS = 5
_CODE_BYTES = 20
Say = Callable[[str], None]
_CITIES = ["Athens", "Bergen", "Cairo", "Dakar", "Esbjerg", "Fukuoka", "Genoa", "Havana"]


@dataclass(frozen=True, slots=True)
class Result:
    """Seconds until the first row, the first rows, all rows."""

    row_s: float | None
    first_s: float
    total_s: float


def run(options: argparse.Namespace) -> int:
    """Make two tables, join them early and plainly in one session, and tell what came when."""
    say: Say = _nothing if options.quiet else partial(print, flush=True)
    with tempfile.TemporaryDirectory(prefix="earlyjoin-demo-") as scratch:
        directory = Path(scratch)
        say(
            f"Two tables of {ORDERS:,} orders and {ITEMS:,} items, {FILES} Parquet files each, are joined on their key."
        )
        paths = [str(directory / name) for name in ("orders", "items")]
        generate(Path(paths[0]), Path(paths[1]), options.seed)
        say("Spark starts, and both ways are run once to warm it up …")
        session = start_session(options.master, quiet=True)
        frames = [session.read.parquet(path) for path in paths]
        # On everything, or whichever is first would pay for what Java compiles on the way.
        for warm in (early, plainly):
            warm(frames, directory / "warm.parquet", _nothing)
        say("")
        ours = [early(frames, directory / "early.parquet", say)]
        say("")
        theirs = [plainly(frames, directory / "plain.parquet", say)]
        # Once more in the other order: whichever is second gains by what Java has compiled for the first.
        theirs.append(plainly(frames, directory / "plain.parquet", _nothing))
        ours.append(early(frames, directory / "early.parquet", _nothing))
        speaking.say(_table(_mean(ours), _mean(theirs)))
    return EXIT_DONE


def early(frames: list[Any], target: Path, say: Say) -> Result:
    """Join early, telling what comes when: first rows and the size from one query, all rows from another."""
    start_s = time.perf_counter()
    query: Any = join(frames[0], frames[1], on="order")

    def tell(text: str) -> None:
        say(f"{time.perf_counter() - start_s:6.2f} s  {text}")

    with query:
        first_row_s = time.perf_counter() - start_s if len(query.head(1)) else None
        rows = query.head(FIRST_ROWS)
        first_s = time.perf_counter() - start_s
        tell(f"{len(rows):,} rows are there, such as")
        for row in rows.slice(0, _SHOWN_ROWS).to_pylist():
            say("          " + ", ".join(f"{name} {value}" for name, value in row.items()))
        tell(_size(query))
    shutil.rmtree(target, ignore_errors=True)
    start_s = time.perf_counter()
    written = join(frames[0], frames[1], on="order").write(target)
    total_s = time.perf_counter() - start_s
    tell(f"asked for all of them as Parquet: {written:,}")
    return Result(first_row_s, first_s, total_s)


def _size(query: Any) -> str:
    """The estimate, in words."""
    estimate = query.estimate_now()
    if estimate is None:
        return f"the size of the whole cannot be told: {query.estimate_reason}"
    return (
        f"the whole will have about {estimate['rows']:,} rows, "
        f"with {estimate['confidence']:.0%} confidence between {estimate['low']:,} and {estimate['high']:,}"
    )


def plainly(frames: list[Any], target: Path, say: Say) -> Result:
    """The same by Spark's own join: first rows by a limit, then all of it."""
    joined = frames[0].join(frames[1], "order")
    start_s = time.perf_counter()
    rows = joined.limit(FIRST_ROWS).toArrow()
    first_s = time.perf_counter() - start_s
    say(f"{first_s:6.2f} s  plain Spark, asked for {FIRST_ROWS:,} rows: {len(rows):,}")
    shutil.rmtree(target, ignore_errors=True)
    start_s = time.perf_counter()
    joined.write.parquet(str(target))
    total_s = time.perf_counter() - start_s
    written = sum(pq.ParquetFile(path).metadata.num_rows for path in target.glob("*.parquet"))
    say(f"{total_s:6.2f} s  plain Spark, asked for all of them as Parquet: {written:,}")
    return Result(None, first_s, total_s)


def generate(orders: Path, items: Path, seed: int) -> None:
    """Orders with a key, and items that refer to them, in random order."""
    rng = np.random.default_rng(seed)
    keys = rng.permutation(ORDERS)
    references = rng.integers(0, ORDERS, ITEMS)
    for directory in (orders, items):
        directory.mkdir()
    cities = pa.array(_CITIES)
    for number in range(FILES):
        some = keys[number * ORDERS // FILES : (number + 1) * ORDERS // FILES]
        table = pa.table(
            {
                "order": some,
                "city": cities.take(pa.array(some % len(_CITIES))),
                "day": rng.integers(19_000, 20_000, len(some)).astype("datetime64[D]"),
                "receipt": _codes(rng, len(some)),
            }
        )
        pq.write_table(table, orders / f"part-{number:02}.parquet")
        some = references[number * ITEMS // FILES : (number + 1) * ITEMS // FILES]
        table = pa.table(
            {
                "order": some,
                "item": rng.integers(0, 10_000, len(some)),
                "price": rng.integers(100, 100_000, len(some)) / 100,
                "label": _codes(rng, len(some)),
            }
        )
        pq.write_table(table, items / f"part-{number:02}.parquet")


def _codes(rng: np.random.Generator, rows: int) -> pa.Array:
    """Random text: without it a table would be so small that Spark sends it to every task, and no shuffle is needed."""
    offsets = np.arange(rows + 1, dtype=np.int32) * (2 * _CODE_BYTES)
    text = rng.bytes(_CODE_BYTES * rows).hex().encode()
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(text))


def _nothing(text: str) -> None:
    """Say nothing."""


def _mean(results: list[Result]) -> Result:
    rows = [result.row_s for result in results if result.row_s is not None]
    first_s, total_s = (fmean(getattr(result, name) for result in results) for name in ("first_s", "total_s"))
    return Result(fmean(rows) if rows else None, first_s, total_s)


def _table(ours: Result, theirs: Result) -> str:
    rows = [
        [name, *("" if value is None else f"{value:.2f} s" for value in (result.row_s, result.first_s, result.total_s))]
        for name, result in (("earlyjoin", ours), ("plain Spark", theirs))
    ]
    table = aligned(["", "first row", f"first {FIRST_ROWS:,}", "all, written"], rows, right=[1, 2, 3])
    sooner, longer = theirs.first_s / ours.first_s, ours.total_s / theirs.total_s
    told = f"first {FIRST_ROWS:,} rows {sooner:.0f} times sooner; all rows in {longer:.2f} times the time"
    return f"\nmeans of two runs:\n\n{table}\n\n{told}"
