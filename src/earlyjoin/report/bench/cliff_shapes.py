"""Joins that small memories and odd shapes make hard: wide rows, one key, many merges, tiny memories, tiny files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Make = Callable[[int], pa.Table]
"""The table of a side."""


@dataclass(frozen=True, slots=True)
class Cliff:
    """A join to be measured, with each of some algorithms."""

    name: str
    what: str
    make: Make
    memory: str
    algorithms: tuple[str, ...]
    files: int = 1

    def inputs(self, directory: Path) -> tuple[Path, Path]:
        """Parquet files of both sides (or directories of them), made once and kept."""
        target = directory / "cliffs" / self.name
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=target.parent) as fresh:
                for side in range(2):
                    self._write(Path(fresh) / "made" / str(side), self.make(side))
                (Path(fresh) / "made").replace(target)
        return target / "0", target / "1"

    def _write(self, target: Path, table: pa.Table) -> None:
        target.mkdir(parents=True)
        cuts = np.linspace(0, len(table), self.files + 1).astype(np.int64).tolist()
        for number, (start, stop) in enumerate(pairwise(cuts)):
            pq.write_table(table.slice(start, stop - start), target / f"{number:05}.parquet")


def _wide(rows: int, columns: int) -> Make:
    def make(side: int) -> pa.Table:
        rng = np.random.default_rng(side)
        values = {f"c{side}_{number}": rng.random(rows) for number in range(columns - 1)}
        return pa.table({"k": rng.permutation(rows), **values})

    return make


def _narrow(rows: int) -> Make:
    def make(side: int) -> pa.Table:
        rng = np.random.default_rng(side)
        return pa.table({"k": rng.permutation(rows), f"v{side}": rng.integers(0, rows, rows)})

    return make


def _one_key(rows: int) -> Make:
    return lambda side: pa.table({"k": np.zeros(rows, dtype=np.int64), f"v{side}": np.arange(rows)})


def _text(rows: int, nbytes: int) -> Make:
    def make(side: int) -> pa.Table:
        rng = np.random.default_rng(side)
        return pa.table({"k": rng.permutation(rows), f"s{side}": [f"{n:<{nbytes}}" for n in range(rows)]})

    return make


_HASH_AND_SORT = ("ehj", "pmj")
CLIFFS = (
    Cliff("columns-200", "60,000 rows of 200 columns", _wide(60_000, 200), "16MB", _HASH_AND_SORT),
    Cliff("columns-5000", "2,000 rows of 5,000 columns", _wide(2_000, 5_000), "16MB", _HASH_AND_SORT),
    Cliff("one-key", "1,000 rows, all keys equal", _one_key(1_000), "300KB", ("pmj", "smj", "ehj")),
    Cliff("merges-16", "2 M rows", _narrow(2_000_000), "16MB", _HASH_AND_SORT),
    Cliff("merges-64", "2 M rows", _narrow(2_000_000), "64MB", _HASH_AND_SORT),
    Cliff("few-rows", "500 rows of 2 kB", _text(500, 2_000), "200KB", ("ehj", "rpj", "pmj", "smj")),
    Cliff("few-rows-wide", "500 rows of 200 columns", _wide(500, 200), "200KB", ("ehj", "rpj", "pmj", "smj")),
    Cliff("tiny-files", "2,000 files of one row", _narrow(2_000), "64MB", ("auto",), files=2_000),
)
