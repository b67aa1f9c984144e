"""Inputs of the PMJ experiments and benchmarks: real data from the directory EARLYJOIN_DATA names, or generated."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_DIRECTORY = "EARLYJOIN_DATA"


def uniform_integers(rows: int, seed: int) -> tuple[pa.Table, pa.Table]:
    """Two sets of uniform integers with about one match a row."""
    rng = np.random.default_rng(seed)
    left, right = (pa.table({"k": rng.integers(0, rows, rows)}) for _ in range(2))
    return left, right


def rectangles(scale: float, seed: int) -> tuple[pa.Table, pa.Table, str]:
    """Roads and waters, or small random rectangles; and which of them it was."""
    tables = [_real(name) for name in ("spatial_roads", "spatial_linearwater")]
    rng = np.random.default_rng(seed)
    if tables[0] is not None and tables[1] is not None:
        columns = ["xmin", "ymin", "xmax", "ymax"]
        cut = [_sample(table.select(columns), scale, rng) for table in tables if table is not None]
        return cut[0], cut[1], "roads and waters"
    made = [_random_rectangles(int(130_000 * scale), scale, rng) for _ in range(2)]
    return made[0], made[1], f"generated (set {_DIRECTORY} to use the real data)"


def intervals(scale: float, seed: int) -> tuple[pa.Table, pa.Table, str]:
    """Flights from two airports, or random times of similar density; and which of them it was."""
    table = _real("intervals_flights")
    rng = np.random.default_rng(seed)
    if table is not None:
        flights = [table.filter(pc.equal(table["origin"], code)).select(["start", "end"]) for code in ("EWR", "JFK")]
        cut = [_sample(part, scale, rng) for part in flights]
        return cut[0], cut[1], "flights from EWR and JFK"
    made = []
    for rows in (int(117_000 * scale), int(109_000 * scale)):
        start = rng.integers(0, int(525_600 * scale), rows)
        made.append(pa.table({"start": start, "end": start + rng.integers(30, 400, rows)}))
    return made[0], made[1], f"generated (set {_DIRECTORY} to use the real data)"


def vectors(scale: float, seed: int, *, shuffled: bool) -> tuple[pa.Table, pa.Table, str]:
    """Points in 16 dimensions split at random in two, in clustered or in random order; and which of them it was."""
    rng = np.random.default_rng(seed)
    table = _real("vectors_letter16")
    origin = "letter recognition"
    if table is None:
        centres = rng.integers(0, 16, (26, 16))
        letters = np.sort(rng.integers(0, 26, int(20_000 * scale)))
        points = np.clip(centres[letters] + rng.choice([-1, 0, 0, 0, 0, 0, 1], (len(letters), 16)), 0, 15)
        table = pa.table({f"d{i}": points[:, i] for i in range(16)})
        origin = f"generated (set {_DIRECTORY} to use the real data)"
    else:
        table = table.sort_by("letter").drop_columns(["letter"])
        table = table.slice(0, int(len(table) * scale))
    order = rng.permutation(len(table)) if shuffled else np.arange(len(table))
    table = table.take(pa.array(order))
    first = rng.random(len(table)) < 0.5
    return table.filter(pa.array(first)), table.filter(pa.array(~first)), origin


def _real(name: str) -> pa.Table | None:
    import pyarrow.parquet as pq

    directory = os.environ.get(_DIRECTORY)
    path = Path(directory) / f"{name}.parquet" if directory else None
    return pq.read_table(path) if path is not None and path.exists() else None


def _sample(table: pa.Table, scale: float, rng: np.random.Generator) -> pa.Table:
    """A random part, in the order of the file."""
    if scale >= 1:
        return table
    return table.filter(pa.array(rng.random(len(table)) < scale))


def _random_rectangles(rows: int, scale: float, rng: np.random.Generator) -> pa.Table:
    """As dense at every scale: about as many results as half of the rows."""
    corner = rng.integers(0, int(10_000_000 * scale**0.5), (rows, 2))
    size = rng.integers(0, 20_000, (rows, 2))
    far = corner + size
    return pa.table({"xmin": corner[:, 0], "ymin": corner[:, 1], "xmax": far[:, 0], "ymax": far[:, 1]})
