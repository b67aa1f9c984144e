"""SUM, AVG and COUNT over the result: exact at the end for every algorithm, covered by their intervals before."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import earlyjoin as ej
from earlyjoin.algorithms import registry
from earlyjoin.errors import InputError
from earlyjoin.predicates.base import Capability

LEFT = pa.table(
    {
        "k": [1, 2, 2, 3, None, 4],
        "price": pa.array([Decimal("1.10"), Decimal("2.20"), None, Decimal("4.40"), Decimal(9), Decimal("0.05")]),
        "big": pa.array([2**62, 2**62, 2**62, 1, 1, None], pa.int64()),
    }
)
RIGHT = pa.table({"k": [2, 2, 1, 7, 4, None], "f": [0.5, None, 2.0, 8.0, -1.0, 1.0], "yes": [True, False, None] * 2})
ASKED = {
    "prices": ej.sum("price"),
    "bigs": ej.sum("big"),
    "mean": ej.avg("f"),
    "known": ej.count("f"),
    "rows": ej.count(),
    "yeses": ej.sum("yes"),
    "worth": ej.sum(pc.field("f") * pc.field("k") + 1),
}


def naive(how: str) -> dict[str, Any]:
    left, right = LEFT.to_pylist(), RIGHT.to_pylist()
    rows = [one | other for one in left for other in right if one["k"] is not None and one["k"] == other["k"]]
    if how == "left":
        keys = {other["k"] for other in right if other["k"] is not None}
        rows += [one | {"f": None, "yes": None} for one in left if one["k"] not in keys]

    def known(name: str) -> list[Any]:
        return [row[name] for row in rows if row[name] is not None]

    return {
        "prices": float(sum(known("price"))),
        "bigs": sum(known("big")),
        "mean": float(np.mean(known("f"))),
        "known": len(known("f")),
        "rows": len(rows),
        "yeses": sum(known("yes")),
        "worth": sum(row["f"] * row["k"] + 1 for row in rows if row["f"] is not None and row["k"] is not None),
    }


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("algorithm", registry.names())
def test_exact_at_the_end(algorithm: str, how: str) -> None:
    description = registry.get(algorithm).description
    if how not in description.join_types or description.needs not in (
        Capability.NONE,
        Capability.HASHABLE,
        Capability.SWEEPABLE,
    ):
        pytest.skip("joins otherwise")
    query = ej.join(LEFT, RIGHT, on="k", how=how, algorithm=algorithm, aggregates=ASKED, batch_rows=2)  # type: ignore[arg-type]
    query.to_arrow()
    expected = naive(how)
    for name, estimate in query.estimates.items():
        assert estimate is not None, name
        assert estimate["value"] == estimate["low"] == estimate["high"] == pytest.approx(expected[name]), name
        assert estimate["confidence"] == 1.0
    assert query.estimates["bigs"] is not None
    assert query.estimates["bigs"]["value"] == expected["bigs"]  # integers are exact, however large
    assert query.summary()["estimates"] == query.estimates


def test_nothing_joined() -> None:
    query = ej.join(LEFT, RIGHT.slice(3, 1), on="k", aggregates=ASKED)
    query.to_arrow()
    assert query.estimates["mean"] is None
    assert query.estimates["prices"] == {"value": 0.0, "low": 0.0, "high": 0.0, "confidence": 1.0}
    assert "estimates" not in ej.join(LEFT, RIGHT, on="k").summary()


def drawn(seed: int, rows: int, *, skew: bool) -> tuple[pa.Table, pa.Table, dict[str, float]]:
    random = np.random.default_rng(seed)
    ends = np.cumsum(1 / np.arange(1, 301)) if skew else np.arange(1.0, 301.0)
    left, right = (np.searchsorted(ends / ends[-1], random.random(rows)) for _ in range(2))
    values = random.gamma(2.0, 1.0, rows) * (1 + left / 100)
    partners = np.bincount(right, minlength=300)[left]
    total = float(np.sum(values * partners))
    truth = {"sum": total, "avg": total / partners.sum(), "twice": 2 * total, "count": float(partners.sum())}
    return pa.table({"k": left, "v": values}), pa.table({"k": right}), truth


@pytest.mark.parametrize("skew", [False, True])
@pytest.mark.parametrize(("algorithm", "memory"), [("shj", None), ("nested", None), ("pmj", "900rows")])
def test_intervals_cover(algorithm: str, memory: str | None, skew: bool) -> None:
    asked = {"sum": ej.sum("v"), "avg": ej.avg("v"), "twice": ej.sum(pc.field("v") * 2), "count": ej.count("v")}
    covered = dict.fromkeys(asked, 0)
    times = 0
    for seed in range(10):
        left, right, truth = drawn(seed, 2_000, skew=skew)
        query = ej.join(left, right, on="k", algorithm=algorithm, memory=memory, aggregates=asked, batch_rows=200)
        taken = query._execution.rows_taken
        for least in (1_000, 2_000, 3_000):
            while sum(taken) < least:
                next(iter(query))
            times += 1
            for name, estimate in query.estimates.items():
                assert estimate is not None, query.estimate_reason
                assert estimate["low"] <= estimate["value"] <= estimate["high"]
                covered[name] += estimate["low"] <= truth[name] <= estimate["high"]
        query.close()
    assert min(covered.values()) >= 0.8 * times, (covered, times)


def test_a_mean_needs_no_number_of_rows() -> None:
    left, right, truth = drawn(1, 3_000, skew=False)
    batches = [iter(table.to_batches(max_chunksize=200)) for table in (left, right)]
    query = ej.join(*batches, on="k", algorithm="shj", aggregates={"avg": ej.avg("v"), "sum": ej.sum("v")})
    for _ in query:
        if sum(query.progress.rows_in) > 1500 and query.estimates["avg"] is not None:
            break
    estimate = query.estimates["avg"]
    assert estimate is not None
    assert 0.8 * truth["avg"] < estimate["value"] < 1.2 * truth["avg"]
    query.close()


@pytest.mark.parametrize("algorithm", ["shj", "pmj"])
def test_pause_and_resume(tmp_path: Path, algorithm: str) -> None:
    left, right, truth = drawn(2, 2_000, skew=False)
    asked = {"sum": ej.sum("v"), "twice": ej.sum(pc.field("v") * 2), "count": ej.count()}
    query = ej.join(left, right, on="k", algorithm=algorithm, aggregates=asked, batch_rows=200)
    while sum(query.progress.rows_in) < 2_000:
        next(iter(query))
    before = query.estimates
    query.pause(tmp_path / "paused")
    again = ej.resume(tmp_path / "paused", left=left, right=right)
    assert again.estimates == before
    again.to_arrow()
    for name, estimate in again.estimates.items():
        assert estimate is not None
        assert estimate["value"] == pytest.approx(truth[name])


def test_what_does_not_fit_is_said_before_reading() -> None:
    with pytest.raises(InputError, match="did you mean 'price'"):
        ej.join(LEFT, RIGHT, on="k", aggregates={"x": ej.sum("prise")})
    text = pa.table({"k": [1], "name": ["a"]})
    with pytest.raises(InputError, match="needs numbers"):
        ej.join(LEFT, text, on="k", aggregates={"x": ej.avg("name")})
    assert ej.join(LEFT, text, on="k", aggregates={"x": ej.count("name")}).estimates == {"x": None}
    with pytest.raises(InputError, match=r"sum\(\.\.\.\)"):
        ej.join(LEFT, RIGHT, on="k", aggregates={"x": "price"})  # type: ignore[dict-item]
    with pytest.raises(InputError, match="takes the name of a column"):
        ej.sum(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="honest, paper"):
        ej.join(LEFT, RIGHT, on="k", estimator="exact")  # type: ignore[arg-type]
