"""Small inputs of every kind of predicate, drawn to collide, touch and sit at the limits of their types."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import hypothesis.strategies as st
import pyarrow as pa

import earlyjoin.predicates as predicates
from earlyjoin.predicates.base import Predicate
from sweep.sweeping import Case

Draw = Callable[[st.SearchStrategy], object]
MAX = 2**63 - 1

SMALL = st.integers(-4, 4)
INTEGERS = SMALL | st.sampled_from([-MAX - 1, -MAX, MAX - 1, MAX, 2**62, -(2**62)])
FLOATS = (
    st.sampled_from([0.0, -0.0, 0.5, 1.0, 1.5, 2.0, 5e-324, 1e-170, 1e308, -1e308, 1e20, 8192.0, -8192.0])
    | st.sampled_from([float("nan"), float("inf"), float("-inf")])
    | st.floats(-3, 3)
)
FINITE = st.integers(-3, 3).map(float) | st.sampled_from([0.5, 1e-170, 1e-162, 1e200, 1e308, -1e308]) | st.floats(-2, 2)
STRINGS = st.sampled_from(
    ["", "a", "b", "a\0", "same prefix", "same prefix x", "same prefix y", "same pre", "éa", "z" * 20]
)
DECIMALS = st.sampled_from(
    [Decimal(0), Decimal(1), Decimal(10) ** 30, Decimal(10) ** 30 + 1, -(Decimal(10) ** 30), Decimal(2**64)]
)
TYPES = {
    "int": (pa.int64(), INTEGERS),
    "few": (pa.int64(), st.integers(0, 1)),
    "float": (pa.float64(), FLOATS),
    "string": (pa.string(), STRINGS),
    "decimal": (pa.decimal128(38, 0), DECIMALS),
}


@st.composite
def tables(
    draw, *columns: tuple[pa.DataType, st.SearchStrategy], rows: int = 40
) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Both sides, columns c0, c1, ... with nulls here and there."""
    batches = []
    for _ in range(2):
        count = draw(st.integers(0, rows))
        arrays = [
            pa.array(
                draw(st.lists(values | st.none() if draw(st.booleans()) else values, min_size=count, max_size=count)),
                type_,
            )
            for type_, values in columns
        ]
        batches.append(pa.RecordBatch.from_arrays(arrays, [f"c{number}" for number in range(len(columns))]))
    return batches[0], batches[1]


def _case(
    condition: Predicate | st.SearchStrategy, *columns: tuple[pa.DataType, st.SearchStrategy]
) -> st.SearchStrategy[Case]:
    conditions = condition if isinstance(condition, st.SearchStrategy) else st.just(condition)
    return st.tuples(conditions, tables(*columns)).map(lambda drawn: Case.of(drawn[0], *drawn[1]))


@st.composite
def near_cases(draw) -> Case:
    width = draw(st.sampled_from([1, 2, 3, 5, 9]))
    names = [f"c{number}" for number in range(width)]
    condition = predicates.near(names, eps=draw(st.sampled_from([0, 1, 1.5, 3, 1e-165, 1e-162, 1e150])))
    coordinate = FINITE if draw(st.booleans()) else st.integers(0, 2).map(float) | st.just(float("nan"))
    return Case.of(condition, *draw(tables(*[(pa.float64(), coordinate)] * width, rows=25)))


def _extents(draw, values: st.SearchStrategy, axes: int, type_: pa.DataType) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    left, right = draw(tables(*[(type_, values)] * (2 * axes), rows=30))
    return tuple(batch if draw(st.booleans()) else _upright(batch, axes) for batch in (left, right))


def _upright(batch: pa.RecordBatch, axes: int) -> pa.RecordBatch:
    """Ends in order, so that most rows are valid."""
    columns = [column.to_pylist() for column in batch.columns]
    for axis in range(axes):
        for row in range(batch.num_rows):
            low, high = columns[axis][row], columns[axis + axes][row]
            if low is not None and high is not None and low > high:
                columns[axis][row], columns[axis + axes][row] = high, low
    return pa.RecordBatch.from_arrays([pa.array(c, batch.schema.field(0).type) for c in columns], batch.schema.names)


@st.composite
def interval_cases(draw) -> Case:
    type_, values = draw(st.sampled_from([(pa.int64(), INTEGERS), (pa.int64(), SMALL), (pa.float64(), FLOATS)]))
    condition = predicates.overlaps(("c0", "c1"), closed=draw(st.booleans()))
    return Case.of(condition, *_extents(draw, values, 1, type_))


@st.composite
def rectangle_cases(draw) -> Case:
    type_, values = draw(st.sampled_from([(pa.int64(), INTEGERS), (pa.int64(), SMALL), (pa.float64(), FLOATS)]))
    return Case.of(predicates.intersects(("c0", "c1", "c2", "c3")), *_extents(draw, values, 2, type_))


def _bands(eps: list[int] | list[float]) -> st.SearchStrategy:
    return st.sampled_from(eps).map(lambda value: predicates.band("c0", eps=value))


KINDS: dict[str, st.SearchStrategy[Case]] = {
    "equal int": _case(predicates.equal("c0"), TYPES["int"]),
    "equal float": _case(predicates.equal("c0"), TYPES["float"]),
    "equal string": _case(predicates.equal("c0"), TYPES["string"]),
    "equal decimal": _case(predicates.equal("c0"), TYPES["decimal"]),
    "equal null-safe": _case(predicates.equal("c0", null_safe=True), TYPES["int"]),
    "equal two": _case(predicates.equal(["c0", "c1"]), TYPES["few"], TYPES["string"]),
    "equal three": _case(predicates.equal(["c0", "c1", "c2"]), TYPES["few"], TYPES["few"], TYPES["float"]),
    "band int": _case(_bands([0, 1, 3, 2**62, MAX]), TYPES["int"]),
    "band float": _case(_bands([0.0, 0.5, 1.0, 5e-324, 1e20, 1.7e308]), TYPES["float"]),
    "intervals": interval_cases(),
    "rectangles": rectangle_cases(),
    "near": near_cases(),
} | {
    f"{make.__name__} {name}": _case(make("c0"), TYPES[name])
    for make in (
        predicates.less, predicates.less_equal, predicates.greater, predicates.greater_equal, predicates.not_equal
    )
    for name in ("int", "float", "string", "decimal")
}  # fmt: skip
