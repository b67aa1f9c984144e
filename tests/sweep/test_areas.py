"""What single areas must do beyond the conditions: budgets, sizes, degenerate keys, the choice of an order."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pytest

import earlyjoin.predicates as predicates
from earlyjoin.algorithms.sweep_areas import SortedRun, SweepCursor, make_sweep, sweep_join, sweep_runs
from earlyjoin.errors import BudgetExceeded
from earlyjoin.predicates.base import BoundPredicate, Predicate
from earlyjoin.predicates.encoding.keys import Keys
from earlyjoin.state.budget import Budget, MemoryLimit
from sweep.sweeping import Case, Sweep, filled, query_all, whole_run

RANDOM_ROWS = 3000


def batch(**columns: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in columns.items()})


def random_case(name: str) -> Case:
    random = np.random.default_rng(len(name))

    def both(make) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        return make(), make()

    def extents(axes: int, span: int) -> pa.RecordBatch:
        low = random.integers(0, 100_000, (axes, RANDOM_ROWS))
        high = low + random.integers(0, span, (axes, RANDOM_ROWS)) ** 2 // span
        return batch(**{f"c{k}": values for k, values in enumerate([*low, *high])})

    if name == "intervals":
        return Case.of(predicates.overlaps(("c0", "c1"), closed=False), *both(lambda: extents(1, 5000)))
    if name == "rectangles":
        return Case.of(predicates.intersects(("c0", "c1", "c2", "c3")), *both(lambda: extents(2, 20_000)))
    if name == "near in the plane":
        condition = predicates.near(["x", "y"], eps=2.0)
        return Case.of(condition, *both(lambda: batch(**{n: random.random(RANDOM_ROWS) * 100 for n in "xy"})))
    if name == "near in 64 dimensions":
        names = [f"d{k}" for k in range(64)]
        make = lambda: batch(**{n: random.integers(0, 3, RANDOM_ROWS).astype(float) for n in names})  # noqa: E731
        return Case.of(predicates.near(names, eps=float(np.sqrt(55))), *both(make))
    assert name == "strings"
    texts = np.array([f"all share this prefix {k:03}" for k in range(1000)])
    return Case.of(predicates.less_equal("s"), *both(lambda: batch(s=random.choice(texts, RANDOM_ROWS))))


@pytest.mark.parametrize("name", ["intervals", "rectangles", "near in the plane", "near in 64 dimensions", "strings"])
def test_thousands_of_rows_reach_every_reorganisation(name: str) -> None:
    case = random_case(name)
    expected = np.flatnonzero(case.matches)
    assert len(expected) > 100
    for block_rows in (700, 4096):
        blocks = list(joined(case.bound, case.keys, block_rows))
        found = np.concatenate([left * RANDOM_ROWS + right for left, right in blocks])
        np.testing.assert_array_equal(np.sort(found), expected)


def joined(bound: BoundPredicate, keys: tuple[Keys, Keys], block_rows: int):
    budget = Budget(MemoryLimit(bytes=2**40))
    for left, right in sweep_join(bound, *keys, account=budget.account("areas"), block_rows=block_rows):
        yield left.copy(), right.copy()
    assert budget.used_bytes == 0


CONDITIONS: dict[str, tuple[Predicate, dict[str, list]]] = {
    "equal": (predicates.equal("a"), {"a": [7] * 60}),
    "equal text": (predicates.equal("a"), {"a": ["same"] * 60}),
    "band, eps 0": (predicates.band("a", eps=0), {"a": [7] * 60}),
    "touching": (predicates.overlaps(("a", "b")), {"a": [*range(60)], "b": [*range(1, 61)]}),
    "touching, open": (predicates.overlaps(("a", "b"), closed=False), {"a": [*range(60)], "b": [*range(1, 61)]}),
    "points as rectangles": (
        predicates.intersects(("a", "b", "c", "d")),
        {"a": [1, 2] * 30, "b": [5] * 60, "c": [1, 2] * 30, "d": [5] * 60},
    ),
    "near, eps 0": (predicates.near(["a", "b"], eps=0), {"a": [0.5, 1.5] * 30, "b": [2.0] * 60}),
    "all less": (predicates.less("a", "b"), {"a": [1] * 60, "b": [2] * 60}),
    "none less": (predicates.less("a"), {"a": [1] * 60}),
    "not equal": (predicates.not_equal("a"), {"a": [1] * 59 + [2]}),
}


@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize("room", [1, 1000])
def test_equal_and_touching_keys(name: str, room: int) -> None:
    condition, columns = CONDITIONS[name]
    case = Case.of(condition, batch(**columns), batch(**columns))
    assert Sweep(case, 3, room).run() == case.pairs()


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_refused_insert_changes_nothing(name: str) -> None:
    condition, columns = CONDITIONS[name]
    case = Case.of(condition, batch(**columns), batch(**columns))
    order, make_area = make_sweep(case.bound)
    run = whole_run(order, 0, case.keys[0])
    for limit in range(0, 12_000, 250):
        budget = Budget(MemoryLimit(bytes=2**20))
        spare = budget.account("others")
        area = make_area(0, budget.account("area"))
        area.insert(run.keys.slice(0, 30), run.words[:30], run.handles[:30])
        spare.reserve(2**20 - budget.used_bytes - limit)
        before = query_all(area, case.keys[1], 100)
        try:
            area.insert(run.keys.slice(30, 60), run.words[30:], run.handles[30:])
        except BudgetExceeded:
            assert query_all(area, case.keys[1], 100) == before
            assert len(area) == 30
        else:
            assert len(query_all(area, case.keys[1], 100)) == case.matches.sum()
            break
        assert area.nbytes + spare.bytes == budget.used_bytes
    else:
        pytest.fail("never accepted")


def test_expired_elements_make_room() -> None:
    """An area that cannot grow takes more once the frontier has passed its elements, whatever the kind."""
    for condition, columns in (CONDITIONS["band, eps 0"], CONDITIONS["touching"], CONDITIONS["points as rectangles"]):
        names = list(columns)
        bound = condition.bind(batch(**columns).schema, batch(**columns).schema)
        order, make_area = make_sweep(bound)
        budget = Budget(MemoryLimit(bytes=64 * 1024))
        area = make_area(0, budget.account("area"))
        for step in range(200):
            keys = bound.encode(0, batch(**{name: [1000 * step] * 100 for name in names}))
            area.insert(keys, order.words(0, keys), np.arange(100))
            area.expire(1000 * (step + 1))
        assert len(area) <= 100


def test_memory_follows_what_is_alive() -> None:
    random = np.random.default_rng(5)
    low = np.sort(random.integers(0, 10**9, 200_000))
    bound = predicates.overlaps(("a", "b")).bind(*[batch(a=[1], b=[1]).schema] * 2)
    order, make_area = make_sweep(bound)
    budget = Budget(MemoryLimit(bytes=2**30))
    area = make_area(0, budget.account("area"))
    for first in range(0, len(low), 1000):
        words = low[first : first + 1000]
        keys = Keys(np.stack([words, words + 10_000], axis=1))
        area.insert(keys, order.words(0, keys), np.arange(first, first + 1000))
        area.expire(int(words[-1]))
    assert budget.peak_bytes < 200_000


def test_a_long_interval_does_not_slow_queries_down() -> None:
    """Log n and matches: with all short intervals over, a query walks to the two long ones and not through the list."""
    count = 400_000
    low = np.arange(count)
    high = low + 1
    high[[0, count // 2]] = 10**9
    bound = predicates.overlaps(("a", "b")).bind(*[batch(a=[1], b=[1]).schema] * 2)
    order, make_area = make_sweep(bound)
    area = filled(make_area, order, 0, Keys(np.stack([low, high], axis=1)))
    queries = Keys(np.tile(np.array([[10**8, 10**8]]), (2000, 1)))
    assert len(query_all(area, queries, 5000)) == 4000
    begin = time.perf_counter()
    query_all(area, queries, 5000)
    assert time.perf_counter() - begin < 0.5  # a list would take 2000 times 400,000 steps


def test_near_orders_by_the_dimension_that_tells_most_points_apart_and_remembers() -> None:
    random = np.random.default_rng(3)
    narrow, wide, outlier = random.random(500), random.random(500) * 100, random.random(500) * 3
    outlier[0] = 1e12  # a large spread of one point tells nothing
    case = Case.of(
        predicates.near(["n", "w", "o"], eps=0.5),
        batch(n=narrow, w=wide, o=outlier),
        batch(n=narrow[::-1], w=wide, o=outlier),
    )
    order, _ = make_sweep(case.bound)
    assert order.state() == {}
    np.testing.assert_array_equal(order.words(0, case.keys[0]), case.keys[0].words[:, 1])
    assert order.state() == {"dimensions": [1, 2, 0]}
    restored, make_area = make_sweep(case.bound)
    restored.restore({"dimensions": [2, 0, 1]})
    np.testing.assert_array_equal(restored.words(1, case.keys[1]), case.keys[1].words[:, 2])
    runs = SortedRun.of(restored, 0, case.keys[0]), SortedRun.of(restored, 1, case.keys[1])
    areas = tuple(make_area(side, Budget(MemoryLimit(bytes=2**30)).account("area")) for side in range(2))
    assert sum(len(left) for left, _ in sweep_runs(areas, runs)) == case.matches.sum()


def test_orders_without_a_choice_have_no_state() -> None:
    schema = batch(a=[1]).schema
    order, _ = make_sweep(predicates.equal("a").bind(schema, schema))
    order.restore(order.state())
    assert order.state() == {}
    assert order.by_value
    text = batch(a=["x"]).schema
    assert not make_sweep(predicates.equal("a").bind(text, text))[0].by_value


@pytest.mark.parametrize("name", CONDITIONS)
def test_empty_areas_and_empty_queries(name: str) -> None:
    condition, columns = CONDITIONS[name]
    whole = batch(**columns)
    bound = condition.bind(whole.schema, whole.schema)
    order, make_area = make_sweep(bound)
    area = make_area(1, Budget(MemoryLimit(bytes=2**30)).account("area"))
    keys, none = bound.encode(0, whole), bound.encode(1, whole.slice(0, 0))
    assert query_all(area, keys, 5) == []
    area.insert(none, order.words(1, none), np.empty(0, dtype=np.int64))
    area.expire(0)
    assert query_all(area, keys, 5) == []
    assert query_all(area, none, 5) == []
    assert area.query(keys, SweepCursor(row=len(keys)), np.empty(1, dtype=np.int64), np.empty(1, dtype=np.int64)) == 0
