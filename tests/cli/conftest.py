from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text("id,name,t\n1,ann,2024-01-01 00:00:00\n2,bob,2024-01-01 00:00:10\n3,cy,2024-01-01 00:00:20\n")
    return path


@pytest.fixture
def items(tmp_path: Path) -> Path:
    path = tmp_path / "items.csv"
    path.write_text("id,item,at\n1,pen,2024-01-01 00:00:03\n3,ink,2024-01-01 00:00:30\n3,cap,2024-01-01 00:00:22\n")
    return path


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two Parquet files that have about 40 MB each in memory, with about one partner for every row."""
    directory = tmp_path_factory.mktemp("large")
    random = np.random.default_rng(7)
    paths = directory / "left.parquet", directory / "right.parquet"
    for path in paths:
        notes = pa.array([f"{number:090d}" for number in range(400_000)])
        pq.write_table(pa.table({"k": random.integers(0, 400_000, 400_000), "note": notes}), path)
    return paths
