"""Shapes of a join on Spark: two DataFrames, their keys, the join type. Tables are made once and kept.

Rows of orders and lineitem are in random order, in 8 and 16 Parquet files, if a shape does not say otherwise. Filters
look at columns that are no keys: of a filter on a key, Spark finds out that it holds for the other side too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from earlyjoin.report.bench import spark_join, tpch

ORDERS_FILES, LINES_FILES, TINY_FILES = 8, 16, 2000
_HOT_ROWS, _WIDE_ROWS, _WIDE_COLUMNS = 400_000, 60_000, 200
_ON = ("o_orderkey", "l_orderkey")


@dataclass(frozen=True, slots=True)
class Tables:
    """Opens the tables of a scale."""

    session: Any
    directory: Path
    scale: float

    def orders(self) -> Any:
        """In random order, 8 files."""
        return self.parquet(spark_join.parts(self.directory, "orders", self.scale, ORDERS_FILES))

    def lines(self) -> Any:
        """In random order, 16 files."""
        return self.parquet(spark_join.parts(self.directory, "lineitem", self.scale, LINES_FILES))

    def parquet(self, path: Path) -> Any:
        """A DataFrame of a path."""
        return self.session.read.parquet(str(path))

    def kept(self, name: str, make: Callable[[Path], None]) -> Path:
        """A directory that is made if it is not there."""
        target = self.directory / f"tpch-{self.scale:g}" / name
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=target.parent) as fresh:
                make(Path(fresh) / name)
                (Path(fresh) / name).replace(target)
        return target


@dataclass(frozen=True, slots=True)
class Shape:
    """A join to be measured."""

    name: str
    what: str
    frames: Callable[[Tables], tuple[Any, Any]]
    how: str = "inner"
    on: tuple[str, str] = _ON
    written: bool = True
    """Is the whole result written? Some are too large."""


def _few(frame: Any, column: str, percent: float) -> Any:
    return frame if percent == 100 else frame.where(f"pmod(xxhash64({column}), 1000) < {round(10 * percent)}")


def _filtered(left: float, right: float) -> Callable[[Tables], tuple[Any, Any]]:
    def frames(tables: Tables) -> tuple[Any, Any]:
        return _few(tables.orders(), "o_custkey", left), _few(tables.lines(), "l_partkey", right)

    return frames


def _whole(tables: Tables) -> tuple[Any, Any]:
    return tables.orders(), tables.lines()


def _two_filters(tables: Tables) -> tuple[Any, Any]:
    return _few(tables.orders(), "o_custkey", 1), tables.lines().where("l_shipmode = 'AIR'")


def _behind_aggregation(tables: Tables) -> tuple[Any, Any]:
    return tables.orders().groupBy("o_orderkey").agg({"o_totalprice": "max"}), tables.lines()


def _small_side(tables: Tables) -> tuple[Any, Any]:
    supplier = tpch.table(tables.directory, "supplier", tables.scale)
    return tables.parquet(supplier), tables.lines()


def _sorted(tables: Tables) -> tuple[Any, Any]:
    orders, lines = (
        tables.kept(f"{name}-sorted-30", partial(_cut_sorted, tables, name)) for name in ("orders", "lineitem")
    )
    return tables.parquet(orders), tables.parquet(lines)


def _cut_sorted(tables: Tables, name: str, target: Path) -> None:
    spark_join.cut(tpch.table(tables.directory, name, tables.scale), target, 30)


def _tiny_files(tables: Tables) -> tuple[Any, Any]:
    orders = spark_join.parts(tables.directory, "orders", tables.scale, TINY_FILES)
    lines = spark_join.parts(tables.directory, "lineitem", tables.scale, TINY_FILES)
    return tables.parquet(orders), tables.parquet(lines)


def _big_files(tables: Tables) -> tuple[Any, Any]:
    orders = spark_join.parts(tables.directory, "orders", tables.scale, 1)
    lines = spark_join.parts(tables.directory, "lineitem", tables.scale, 1)
    return tables.parquet(orders), tables.parquet(lines)


def _partitioned(tables: Tables) -> tuple[Any, Any]:
    def make(target: Path) -> None:
        tables.lines().repartition(4).write.partitionBy("l_shipmode").parquet(str(target))

    return tables.orders(), tables.parquet(tables.kept("lineitem-by-shipmode", make))


def _csv(tables: Tables) -> tuple[Any, Any]:
    frames = []
    for frame, name in ((tables.orders(), "orders"), (tables.lines(), "lineitem")):

        def make(target: Path, frame: Any = frame) -> None:
            frame.write.option("header", "true").csv(str(target))

        path = tables.kept(f"{name}-csv", make)
        reader = tables.session.read.option("header", "true").schema(frame.schema)
        frames.append(reader.csv(str(path)))
    return frames[0], frames[1]


def _hot_key(tables: Tables) -> tuple[Any, Any]:
    def make(target: Path) -> None:
        target.mkdir()
        for side in (0, 1):
            rng = np.random.default_rng(side)
            keys = np.where(rng.random(_HOT_ROWS) < 0.5, 7, rng.integers(0, _HOT_ROWS, _HOT_ROWS))
            pq.write_table(pa.table({"k": keys, f"v{side}": np.arange(_HOT_ROWS)}), target / f"{side}.parquet")

    path = tables.kept("hot-key", make)
    return tables.parquet(path / "0.parquet"), tables.parquet(path / "1.parquet")


def _wide(tables: Tables) -> tuple[Any, Any]:
    def make(target: Path) -> None:
        target.mkdir()
        for side in (0, 1):
            rng = np.random.default_rng(side)
            columns = {f"c{side}_{n}": rng.random(_WIDE_ROWS) for n in range(_WIDE_COLUMNS - 1)}
            table = pa.table({f"k{side}": rng.permutation(_WIDE_ROWS), **columns})
            (target / str(side)).mkdir()
            for number in range(4):
                part = table.slice(number * _WIDE_ROWS // 4, _WIDE_ROWS // 4)
                pq.write_table(part, target / str(side) / f"{number}.parquet")

    path = tables.kept("wide", make)
    return tables.parquet(path / "0"), tables.parquet(path / "1")


SHAPES = (
    Shape("whole", "inner, whole tables", _whole),
    Shape("two-filters", "1 % of orders, one ship mode of seven", _two_filters),
    Shape("left-filtered", "left, a tenth of lineitem", _filtered(100, 10), how="left"),
    Shape("aggregated", "orders behind a groupBy", _behind_aggregation),
    Shape("semi-filtered", "semi, a tenth of lineitem", _filtered(100, 10), how="semi"),
    Shape("right", "right, whole tables", _whole, how="right"),
    Shape("full", "full, whole tables", _whole, how="full"),
    Shape("semi", "semi, whole tables", _whole, how="semi"),
    *(Shape(f"orders-{p:g}", f"{p:g} % of orders", _filtered(p, 100)) for p in (50, 10, 1, 0.1)),
    *(Shape(f"both-{p:g}", f"{p:g} % of both", _filtered(p, p)) for p in (50, 10, 1, 0.1)),
    Shape("small-side", "supplier ⋈ lineitem", _small_side, on=("s_suppkey", "l_suppkey")),
    Shape("sorted", "both ordered by key, 30 files each", _sorted),
    Shape("partitioned", "lineitem partitioned by ship mode", _partitioned),
    Shape("tiny-files", f"{TINY_FILES:,} files each", _tiny_files),
    Shape("one-file", "one file each", _big_files),
    Shape("csv", "CSV", _csv),
    Shape("hot-key", f"{_HOT_ROWS:,} rows each, half of one key", _hot_key, on=("k", "k"), written=False),
    Shape("wide", f"{_WIDE_ROWS:,} rows of {_WIDE_COLUMNS} columns each", _wide, on=("k0", "k1")),
)
