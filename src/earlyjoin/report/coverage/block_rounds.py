"""How often does the interval from random blocks hold, whenever a user of the Spark engine can read it?

Tables in files are drawn by a seed, blocks of them as the early phase draws them, and the estimate is asked after every
round and after a look at keys alone. No Spark: cells are counted from the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.estimation import Estimate
from earlyjoin.report.coverage.inputs import Ints
from earlyjoin.report.coverage.layouts import JOINS, ORDERS, FileJoin, FileLayout, FileTables
from earlyjoin.spark.early.estimating import estimate_of
from earlyjoin.spark.early.key_evidence import KeyEvidence

MOMENTS = (4, 12, 24, 28, 60)
"""Blocks of a side: after rounds of 4, 8, 16 and 32 new ones, and 24 of which only keys are read."""
FIRST_SEED = 50_000
"""The rule was chosen on other seeds, and on some of these layouts."""
TABLES_FOR = 10
"""Draws of blocks from one pair of tables."""
LAYOUTS = (FileLayout((8, 16), (4, 16)), FileLayout((30, 30), (3, 13)), FileLayout((200, 200), (1, 4)))
OTHER_LAYOUTS = (
    FileLayout((1, 2), (100, 200)),
    FileLayout((8, 8), (1, 1)),
    FileLayout((8, 8), (64, 256)),
    FileLayout((16, 16), (1, 2)),
    FileLayout((30, 200), (4, 2)),
)
"""Tried with references alone."""
USUAL_ORDERS = ("shuffled", "sorted", "clustered")


@dataclass(frozen=True, slots=True)
class Answer:
    """What was told at one moment."""

    shape: FileJoin
    blocks: int
    """How many were drawn from each side."""
    truth: int
    estimate: Estimate | None
    reason: str | None

    @property
    def is_exact(self) -> bool:
        """Was everything read, so that nothing is estimated?"""
        return self.estimate is not None and self.estimate.confidence == 1

    @property
    def holds(self) -> bool:
        """Is the truth in the interval?"""
        return self.estimate is not None and self.estimate.low <= self.truth <= self.estimate.high

    @property
    def width(self) -> float:
        """Of the interval, relative to the truth."""
        return (self.estimate.high - self.estimate.low) / self.truth if self.estimate is not None else np.inf


def shapes() -> list[FileJoin]:
    """Every join in three orders and layouts; references in every order and layout."""
    found = [
        FileJoin(join, order, layout, rows_of(join)) for layout in LAYOUTS for join in JOINS for order in USUAL_ORDERS
    ]
    others = [order for order in ORDERS if order not in USUAL_ORDERS]
    found += [FileJoin("references", order, layout) for layout in LAYOUTS for order in others]
    found += [FileJoin("references", order, layout) for layout in OTHER_LAYOUTS for order in ORDERS]
    return found


def rows_of(join: str) -> int:
    """Rows of the larger side: fewer where a key has many partners, so that results stay small."""
    return 40_000 if join in {"many to many", "skewed", "hot key"} else 120_000


def answers(shape: FileJoin, seeds: Iterable[int], moments: Sequence[int] = MOMENTS) -> Iterator[Answer]:
    """What is told about tables of this shape at every moment."""
    tables: dict[int, tuple[FileTables, int]] = {}
    for seed in seeds:
        if seed // TABLES_FOR not in tables:
            made = shape.drawn(seed // TABLES_FOR)
            tables = {seed // TABLES_FOR: (made, made.truth())}
        table, truth = tables[seed // TABLES_FOR]
        yield from _of_draw(shape, table, truth, seed, moments)


def _of_draw(shape: FileJoin, tables: FileTables, truth: int, seed: int, moments: Sequence[int]) -> Iterator[Answer]:
    blocks = shape.layout.blocks
    orders = [np.random.default_rng([seed, side]).permutation(blocks[side])[: max(moments)] for side in (0, 1)]
    (left, in_left), (right, in_right) = (side.rows(order) for side, order in zip(tables.sides, orders, strict=True))
    all_cells = _cells(left, in_left, right, in_right, (len(orders[0]), len(orders[1])))
    evidence = KeyEvidence(shape.layout.files, [(0, 0)])
    before = (0, 0)
    for moment in moments:
        cells = all_cells[:moment, :moment]
        if cells.shape == before:
            return
        before = cells.shape
        of_left, of_right = in_left < moment, in_right < moment
        keys = pa.table({"k": left[of_left]}), pa.table({"k": right[of_right]})
        told = estimate_of(cells, blocks, evidence.of(keys, (in_left[of_left], in_right[of_right])))
        yield Answer(shape, moment, truth, *told)


def _cells(left: Ints, in_left: Ints, right: Ints, in_right: Ints, shape: tuple[int, int]) -> Ints:
    """Matches of every pair of blocks, from keys and the places of blocks."""
    (left_key, left_block, left_rows), (right_key, right_block, right_rows) = (
        _counted(keys, block, blocks)
        for keys, block, blocks in zip((left, right), (in_left, in_right), shape, strict=True)
    )
    first = np.searchsorted(right_key, left_key, "left")
    partners = np.searchsorted(right_key, left_key, "right") - first
    i = np.repeat(np.arange(len(left_key)), partners)
    j = np.arange(len(i)) - np.repeat(np.cumsum(partners) - partners - first, partners)
    flat = left_block[i] * shape[1] + right_block[j]
    matches = np.bincount(flat, weights=left_rows[i] * right_rows[j], minlength=shape[0] * shape[1])
    return matches.astype(np.int64).reshape(shape)


def _counted(keys: Ints, block: Ints, blocks: int) -> tuple[Ints, Ints, Ints]:
    """Different pairs of key and block, by key, and how many rows have them."""
    pairs, rows = np.unique(keys * blocks + block, return_counts=True)
    return pairs // blocks, pairs % blocks, rows


@dataclass(frozen=True, slots=True)
class AnswerGroup:
    """Answers that have something in common."""

    name: str
    answers: int
    """Without those that are exact."""
    given: int
    """Answers with an interval."""
    held: int
    width: float
    """Median width of the intervals, relative to the truth."""

    @property
    def coverage(self) -> float:
        """Share of the intervals that hold."""
        return self.held / self.given if self.given else 1.0


def lines(answers: Iterable[Answer], name: Callable[[Answer], str]) -> list[AnswerGroup]:
    """Answers that are not exact, grouped by a name."""
    groups: dict[str, list[Answer]] = {}
    for answer in answers:
        if not answer.is_exact:
            groups.setdefault(name(answer), []).append(answer)
    made = []
    for group, members in groups.items():
        given = [answer for answer in members if answer.estimate is not None]
        width = float(np.median([answer.width for answer in given])) if given else np.nan
        made.append(AnswerGroup(group, len(members), len(given), sum(answer.holds for answer in given), width))
    return made


def report(runs: int, seed: int = FIRST_SEED) -> str:
    """The tables of the decision on intervals from few blocks."""
    told = [answer for shape in shapes() for answer in answers(shape, range(seed, seed + runs))]
    by_what: dict[str, Callable[[Answer], str]] = {
        "order, blocks drawn": lambda answer: f"{answer.shape.order}, {answer.blocks}",
        "join, order": lambda answer: f"{answer.shape.join}, {answer.shape.order}",
        "files x slots, blocks drawn": lambda answer: f"{answer.shape.layout}, {answer.blocks}",
        "everything": lambda answer: "everything",
    }
    text = [table(title, lines(told, name)) for title, name in by_what.items()]
    single = lines(told, lambda answer: f"{answer.shape}, {answer.blocks}")
    worst = sorted((line for line in single if line.given >= runs / 10), key=lambda line: line.coverage)[:20]
    return "\n\n".join([*text, table("the worst of those given in a tenth of the runs or more", worst)])


def table(title: str, made: Sequence[AnswerGroup]) -> str:
    """The whole comparison as Markdown."""
    rows = [f"| {title} | intervals given | of these hold | median width |", "|---|--:|--:|--:|"]
    for line in made:
        held = f"{line.coverage:.1%} | {line.width:.2f}" if line.given else "– | –"
        rows.append(f"| {line.name} | {line.given / line.answers:.1%} of {line.answers:,} | {held} |")
    return "\n".join(rows)
