"""Generated data: the same rows every time, with the keys that were asked for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from earlyjoin.errors import InputError
from earlyjoin.local.sources import BatchSizes, generated


def table(*args: int, **options: float) -> pa.Table:
    source = generated(*args, **options)  # type: ignore[arg-type]
    return pa.Table.from_batches(source.batches(BatchSizes()), source.schema)


def test_columns() -> None:
    result = table(50_000, 100, payload_bytes=10)
    assert result.schema.names == ["k", "id", "value", "note"]
    assert result["id"].to_pylist() == list(range(50_000))
    keys = result["k"].to_numpy()
    assert (keys.min(), keys.max()) == (0, 99)
    assert np.bincount(keys).min() > 350
    assert {len(note) for note in result["note"].to_pylist()[:100]} == {10}
    assert result["note"][0] != result["note"][1]
    result.validate(full=True)


def test_deterministic_by_seed() -> None:
    assert table(20_000, 100, seed=1).equals(table(20_000, 100, seed=1))
    assert not table(20_000, 100, seed=1)["k"].equals(table(20_000, 100, seed=2)["k"])
    assert table(20_000, 100).slice(0, 16384).equals(table(16384, 100))


def test_options_leave_other_columns_alone() -> None:
    plain, other = table(20_000, 100), table(20_000, 100, null_fraction=0.2, payload_bytes=5)
    assert plain["value"].equals(other["value"])
    assert other["k"].null_count == pytest.approx(4000, rel=0.1)
    assert other.filter(other["k"].is_valid())["k"].equals(plain.filter(other["k"].is_valid())["k"])


def test_skew_follows_zipf() -> None:
    counts = np.bincount(table(200_000, 1000, skew=1.0, payload_bytes=0)["k"].to_numpy(), minlength=1000)
    assert counts[0] / counts[1] == pytest.approx(2.0, rel=0.05)
    assert counts[0] / counts[9] == pytest.approx(10.0, rel=0.1)


def test_far_start_is_cheap() -> None:
    source = generated(10**12, 10)
    batch = next(source.batches(BatchSizes(first=5, most=5), 10**12 - 3))
    assert batch["id"].to_pylist() == [10**12 - 3, 10**12 - 2, 10**12 - 1]


def test_edges() -> None:
    assert table(0, 1).num_rows == 0
    assert table(3, 1, payload_bytes=0)["note"].to_pylist() == [""] * 3
    assert table(3, 1, null_fraction=1.0)["k"].null_count == 3
    for wrong in ({"rows": -1}, {"keys": 0}, {"skew": -1}, {"payload_bytes": -1}, {"null_fraction": 1.5}):
        with pytest.raises(InputError, match="generated: need rows >= 0, keys >= 1"):
            generated(**{"rows": 1, "keys": 1, **wrong})
