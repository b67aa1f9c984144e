"""Orders that are visibly not random are seen, and random ones are not accused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from earlyjoin.algorithms.estimation import OrderCheck
from earlyjoin.algorithms.estimation.order import as_text
from earlyjoin.algorithms.estimation.rates import RateCheck


def fed(values: np.ndarray, batch_rows: int = 1000) -> OrderCheck:
    check = OrderCheck()
    for start in range(0, len(values), batch_rows):
        check.update(values[start : start + batch_rows])
    return check


RANDOM = np.random.default_rng(7)
KEYS = RANDOM.integers(0, 5000, 40_000).astype(np.float64)
NOT_RANDOM = {
    "sorted": np.sort(KEYS),
    "falling": np.sort(KEYS)[::-1],
    "nearly sorted": np.sort(KEYS) + RANDOM.normal(0, 20, len(KEYS)),
    "clustered": np.repeat(RANDOM.permutation(10_000), 4).astype(np.float64),
    "shuffled in pieces": np.concatenate([RANDOM.permutation(part) for part in np.split(np.sort(KEYS), 8)]),
    "sorted text": as_text([f"customer#{number:09d}".encode() for number in range(20_000)]),
}


@pytest.mark.parametrize("name", NOT_RANDOM)
@pytest.mark.parametrize("batch_rows", [1, 100, 65536])
def test_not_random_is_seen(name: str, batch_rows: int) -> None:
    values = NOT_RANDOM[name] if batch_rows > 1 else NOT_RANDOM[name][:30_000]
    assert fed(values, batch_rows).reason is not None


def test_sorted_is_seen_in_the_first_rows() -> None:
    assert fed(np.arange(70.0)).reason is not None
    assert fed(np.arange(40.0)).reason is None  # too few to tell


@pytest.mark.parametrize("kind", ["uniform", "skewed", "two values", "rare value", "constant", "text", "unique"])
def test_random_order_raises_no_alarm(kind: str) -> None:
    alarms = 0
    for seed in range(60):
        random = np.random.default_rng(seed)
        draw = {
            "uniform": lambda r: r.integers(0, 500, 20_000).astype(float),
            "skewed": lambda r: r.zipf(1.3, 20_000).astype(float),
            "two values": lambda r: r.integers(0, 2, 20_000).astype(float),
            "rare value": lambda r: (r.random(20_000) < 0.002).astype(float),
            "constant": lambda r: np.ones(20_000),
            "text": lambda r: as_text([b"k%d" % k for k in r.integers(0, 50, 5_000)]),
            "unique": lambda r: r.permutation(20_000).astype(float),
        }[kind]
        check = OrderCheck()
        seen = False
        for part in np.array_split(draw(random), 10):
            check.update(part)
            seen |= check.reason is not None
        alarms += seen
    assert alarms == 0


def test_saved_and_restored() -> None:
    for values in (KEYS, np.sort(KEYS), NOT_RANDOM["sorted text"]):
        check = fed(values)
        again = OrderCheck.from_values(json.loads(json.dumps(check.to_values())))
        assert again.reason == check.reason


def _arrivals(left: np.ndarray, right: np.ndarray, batch_rows: int) -> RateCheck:
    """Equality join of the keys, batches in turn."""
    check = RateCheck()
    keys, held = (left, right), [np.zeros(0, dtype=np.int64)] * 2
    for start in range(0, len(left), batch_rows):
        for side in (0, 1):
            batch = keys[side][start : start + batch_rows]
            matches = int(np.isin(batch, held[1 - side]).sum())
            check.update(side, len(batch), len(held[1 - side]), matches)
            held[side] = np.concatenate((held[side], batch))
    return check


def test_inputs_in_the_same_random_order_are_seen() -> None:
    keys = np.random.default_rng(1).permutation(20_000)
    other = np.random.default_rng(2).permutation(20_000)
    same, independent = _arrivals(keys, keys, 500), _arrivals(keys, other, 500)
    rate = 1 / 20_000
    assert not same.agree((0.0, 0.0), rate)
    assert independent.agree((0.0, 0.0), rate)
    again = RateCheck.from_values(json.loads(json.dumps(same.to_values())))
    assert not again.agree((0.0, 0.0), rate)
    assert max(len(bins) for bins in same.bins) <= 32
