"""A case: two tables, a condition, how it is joined and what happens meanwhile, all drawn from one integer."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from earlyjoin.report.fuzz.columns import PAYLOAD, TEXT_FORM_FAMILIES, Rng, codes, key_column, payload_column
from earlyjoin.report.fuzz.conditions import DrawnCondition, draw_condition
from earlyjoin.report.fuzz.settings import Settings, draw_settings

FORMS: dict[str, float] = {
    "table": 0.3,
    "parquet": 0.25,
    "csv": 0.07,
    "arrow": 0.08,
    "jsonl": 0.05,
    "pipe": 0.03,
    "csv pipe": 0.02,
    "iterator": 0.06,
    "reader": 0.03,
    "files": 0.04,
    "csv files": 0.015,
    "arrow files": 0.015,
    "partitions": 0.025,
    "csv partitions": 0.015,
}
"""How an input is handed over, and how often."""

TEXT_FORMS = frozenset({"csv", "jsonl", "csv pipe", "csv files", "csv partitions"})
ONCE = frozenset({"pipe", "csv pipe", "iterator", "reader"})
IN_FILES = frozenset(FORMS) - ONCE - {"table"}
_MOST_CELLS = 300_000
_MOST_PAIRS = 4_000_000
"""Pairs that DuckDB looks at one by one, where there is no equality."""
_MOST_BLOCKS = 20
"""Times the memory, for the rows of an input of a nested loop."""
_MOST_RESULT_CELLS = 3_000_000
"""What an equality may give, so that a case ends in seconds however its keys are skewed."""


@dataclass(frozen=True, slots=True)
class Case:
    """Everything that a seed says."""

    seed: int
    tables: tuple[pa.Table, pa.Table]
    """With the columns ``lid`` and ``rid``, which number the rows."""
    forms: tuple[str, str]
    condition: DrawnCondition
    settings: Settings
    cross: bool = False

    def rng(self, purpose: int) -> Rng:
        """Randomness for what is done with the case; a number for each purpose, so that none disturbs another."""
        return np.random.default_rng([self.seed, purpose])

    @property
    def text(self) -> str:
        """The case in one line."""
        condition = "cross" if self.cross else self.condition.text
        inputs = " ⋈ ".join(
            f"{form} {table.num_rows}×{table.num_columns}" for form, table in zip(self.forms, self.tables, strict=True)
        )
        types = ", ".join(f"{left}/{right}" for _, _, left, right, _ in self.condition.keys)
        return f"{inputs} on {condition} [{types}]; {self.settings.text}"


def draw(seed: int) -> Case:
    """The case of a seed."""
    rng = np.random.default_rng([seed, 0])
    forms = tuple(str(form) for form in rng.choice(list(FORMS), 2, p=list(FORMS.values())))
    plain = any(form in TEXT_FORMS for form in forms)
    cross = bool(rng.random() < 0.03)
    condition = DrawnCondition() if cross else draw_condition(rng, plain=plain)
    settings = draw_settings(
        rng,
        hashable=condition.equality,
        sweepable=bool(condition.parts),
        sortable=condition.sortable,
        replayable=not any(form in ONCE for form in forms),
        files=any(form in IN_FILES for form in forms),
    )
    if cross:
        settings = replace(settings, how="cross", algorithm="auto", options={})
    tables = _tables(rng, condition, plain=plain, settings=settings, cross=cross)
    return Case(seed, tables, (forms[0], forms[1]), condition, settings, cross)


def _tables(
    rng: Rng, condition: DrawnCondition, *, plain: bool, settings: Settings, cross: bool
) -> tuple[pa.Table, pa.Table]:
    odd = bool(not plain and rng.random() < 0.3)
    rows = [_row_count(rng, settings) for _ in range(2)]
    if cross:
        rows = [min(count, 300) for count in rows]
    elif not condition.equality:
        rows = [min(count, int(_MOST_PAIRS**0.5)) for count in rows]
    if settings.algorithm == "nested" and settings.memory is not None and settings.memory.endswith("rows"):
        # Blocks of a few rows are compared pair by pair: that is right, and takes minutes.
        rows = [min(count, _MOST_BLOCKS * int(settings.memory.removesuffix("rows"))) for count in rows]
    distinct = max(1, int(max(rows) * 10 ** rng.uniform(-2, 0.5)))
    left, right = (_table(rng, side, rows[side], condition, distinct, plain=plain, odd=odd) for side in range(2))
    return _bounded(left, right, condition) if condition.equality else (left, right)


def _bounded(left: pa.Table, right: pa.Table, condition: DrawnCondition) -> tuple[pa.Table, pa.Table]:
    """The first rows of both, so many that the result is not too large."""
    while (rows := _most_matches(left, right, condition)) * (left.num_columns + right.num_columns) > _MOST_RESULT_CELLS:
        part = max(0.1, (_MOST_RESULT_CELLS / (rows * (left.num_columns + right.num_columns))) ** 0.5)
        left, right = (table.slice(0, int(table.num_rows * part)) for table in (left, right))
    return left, right


def _most_matches(left: pa.Table, right: pa.Table, condition: DrawnCondition) -> int:
    """Matches of the equality at most: those that there are if the most frequent values of both sides are the same."""
    most: int = left.num_rows * right.num_rows
    for name, other in condition.equal:
        counts = [_frequencies(left.column(name)), _frequencies(right.column(other))]
        shorter = min(map(len, counts))
        most = min(most, int(np.dot(counts[0][:shorter], counts[1][:shorter])))
    return most


def _frequencies(column: pa.ChunkedArray) -> np.ndarray[Any, Any]:
    """How often each value is there, nulls too, the most frequent first."""
    return np.sort(np.fromiter(Counter(map(repr, column.to_pylist())).values(), np.int64))[::-1]


def _row_count(rng: Rng, settings: Settings) -> int:
    if settings.batch_rows == 1:
        return int(rng.integers(0, 150))
    kind = rng.random()
    if kind < 0.04:
        return 0
    if kind < 0.1:
        return int(rng.integers(1, 5))
    if kind < 0.97:
        return int(10 ** rng.uniform(1, 3.6))
    return 50_000


def _table(
    rng: Rng, side: int, rows: int, condition: DrawnCondition, distinct: int, *, plain: bool, odd: bool
) -> pa.Table:
    letter = "lr"[side]
    width = _width(rng)
    if rows * (width + len(condition.keys)) > _MOST_CELLS:
        width = int(min(width, 2))
    nulls = float(rng.choice([0, 0.02, 0.3]))
    columns: dict[str, pa.Array] = {f"{letter}id": pa.array(np.arange(rows))}
    before = codes(rng, rows, distinct)
    for key in condition.keys:
        behind = key[4]
        drawn = before + rng.integers(-1 if odd else 0, 6, rows) if behind else codes(rng, rows, distinct)
        before = drawn = np.maximum(drawn, 0)
        columns[key[0] if side == 0 else key[1]] = key_column(
            rng, key[2] if side == 0 else key[3], drawn, nulls=nulls, odd=odd and not behind
        )
    choice = [type_ for types in TEXT_FORM_FAMILIES.values() for type_ in types] if plain else PAYLOAD
    for number in range(width):
        type_ = choice[rng.integers(len(choice))]
        columns[f"{letter}p{number}"] = payload_column(rng, type_, rows, odd=odd)
    names = list(columns)
    order = [names[at] for at in rng.permutation(len(names))]
    return pa.table({name: columns[name] for name in order})


def _width(rng: Rng) -> int:
    kind = rng.random()
    if kind < 0.85:
        return int(rng.integers(0, 5))
    return int(rng.integers(5, 30)) if kind < 0.97 else 200
