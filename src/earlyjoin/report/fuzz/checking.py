"""Is what came out right? A verdict for each case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms import registry
from earlyjoin.errors import BudgetExceeded, EarlyJoinError, InputError
from earlyjoin.report.fuzz.cases import Case
from earlyjoin.report.fuzz.oracle import NO_ROW, Pairs, expected_pairs, ordered
from earlyjoin.report.fuzz.running import CaseOutcome, names_a_file
from earlyjoin.report.fuzz.settings import HARMFUL

_MOST_CHECKED_CELLS = 200_000
_SHOWN = 3


class Ending(StrEnum):
    """How a case ended."""

    RIGHT = "right"
    NOTICED = "damage noticed"
    REFUSED = "refused"
    WRONG = "WRONG RESULT"
    ERROR = "WRONG ERROR"
    LATE = "REFUSED TOO LATE"
    OVER = "OVER BUDGET"
    LEFTOVER = "LEFT BEHIND"
    CRASH = "CRASH"
    HANG = "HANG"

    @property
    def failed(self) -> bool:
        """Is it a finding?"""
        return self not in (Ending.RIGHT, Ending.NOTICED, Ending.REFUSED)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The kind, and what exactly was seen."""

    kind: Ending
    detail: str = ""


def judge(case: Case, outcome: CaseOutcome) -> Verdict:
    """The first thing that is wrong, or that all is right."""
    verdict = _judge_error(case, outcome, outcome.error) if outcome.error is not None else _judge_rows(case, outcome)
    if verdict.kind.failed:
        return verdict
    return _judge_host(outcome) or verdict


def _judge_error(case: Case, outcome: CaseOutcome, error: BaseException) -> Verdict:
    message = f"{type(error).__name__}: {error}"
    if not isinstance(error, EarlyJoinError):
        return Verdict(Ending.ERROR, message)
    if outcome.happened and case.settings.event in HARMFUL and names_a_file(error):
        return _part_is_right(case, outcome) or Verdict(Ending.NOTICED, message)
    if not isinstance(error, InputError | BudgetExceeded):
        return Verdict(Ending.ERROR, message)
    if outcome.rows == 0 or (isinstance(error, BudgetExceeded) and not _spills(case)):
        return Verdict(Ending.REFUSED, message)
    return Verdict(Ending.LATE, message)


def _part_is_right(case: Case, outcome: CaseOutcome) -> Verdict | None:
    """Rows that came out before the error must be right ones."""
    wrong = _differences(case, outcome, part=True)
    return Verdict(Ending.WRONG, f"before the error: {wrong}") if wrong else None


def _spills(case: Case) -> bool:
    name = case.settings.algorithm
    return name == "auto" or registry.get(name).description.spills


def _judge_rows(case: Case, outcome: CaseOutcome) -> Verdict:
    wrong = _differences(case, outcome, part=outcome.ended_early)
    return Verdict(Ending.WRONG, wrong) if wrong else Verdict(Ending.RIGHT)


def _judge_host(outcome: CaseOutcome) -> Verdict | None:
    for peak in outcome.peaks:
        for unit in ("bytes", "rows"):
            limits = [getattr(limit, unit) for limit in outcome.limits if getattr(limit, unit) is not None]
            if limits and peak.get(f"peak_{unit}", 0) > max(limits):
                return Verdict(Ending.OVER, f"{peak[f'peak_{unit}']:,} {unit} of {max(limits):,}")
    if outcome.left_files:
        return Verdict(Ending.LEFTOVER, f"files {', '.join(outcome.left_files[:_SHOWN])}")
    if outcome.left_threads:
        return Verdict(Ending.LEFTOVER, f"threads {', '.join(outcome.left_threads)}")
    return None


def _differences(case: Case, outcome: CaseOutcome, *, part: bool) -> str:
    """What is wrong with the rows, or nothing; ``part`` allows rows to be missing."""
    found = _row_numbers(case, outcome.batches)
    wanted = expected_pairs(case)
    missing, extra = _bag_difference(wanted, found), _bag_difference(found, wanted)
    if len(extra) or (len(missing) and not part):
        return (
            f"{len(found):,} rows instead of {len(wanted):,}: {len(missing):,} missing {missing[:_SHOWN].tolist()}, "
            f"{len(extra):,} too many {extra[:_SHOWN].tolist()} (row numbers of left and right)"
        )
    return _wrong_values(case, outcome)


def _row_numbers(case: Case, batches: Sequence[pa.RecordBatch]) -> Pairs:
    pairs = [np.zeros((0, 2), np.int64)]
    for batch in batches:
        columns = [_numbers(batch, name) for name in ("lid", "rid")]
        pairs.append(np.stack(columns, axis=1))
    return ordered(np.concatenate(pairs))


def _numbers(batch: pa.RecordBatch, name: str) -> Pairs:
    if name not in batch.schema.names:
        return np.full(batch.num_rows, NO_ROW, np.int64)
    filled: Pairs = batch.column(name).fill_null(NO_ROW).to_numpy(zero_copy_only=False).astype(np.int64)
    return filled


def _bag_difference(one: Pairs, other: Pairs) -> Pairs:
    """Rows of one that the other lacks, each as often as it is too many."""
    both, counts = np.unique(np.concatenate([one, other]), axis=0, return_inverse=True)
    counts = counts.reshape(-1)
    ones = np.bincount(counts[: len(one)], minlength=len(both))
    others = np.bincount(counts[len(one) :], minlength=len(both))
    return np.repeat(both, np.maximum(ones - others, 0), axis=0)


def _wrong_values(case: Case, outcome: CaseOutcome) -> str:
    """The first value that is not the one of its row; of large results as many rows as there is patience for."""
    cells = 0
    texts = [_Texts(given.table) for given in outcome.inputs]
    for batch in outcome.batches:
        numbers = [_numbers(batch, name) for name in ("lid", "rid")]
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if (wrong := _wrong_column(case, name, column, numbers, texts)) is not None:
                return wrong
        cells += batch.num_rows * batch.num_columns
        if cells > _MOST_CHECKED_CELLS:
            break
    return ""


class _Texts:
    """Columns as texts that tell NaN, -0.0 and null apart; each is made when it is asked for."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self._made: dict[str, np.ndarray[Any, Any]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._table.column_names

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        if name not in self._made:
            ids = self._table.column(next(i for i in ("lid", "rid") if i in self)).to_numpy()
            made = np.full(len(ids) + 1, "None", object)  # the last one is for NO_ROW
            made[ids] = written(self._table.column(name))
            self._made[name] = made
        return self._made[name]


def written(column: pa.ChunkedArray | pa.Array) -> list[str]:
    """Every value as a text; what Python cannot hold is written by Arrow."""
    try:
        return [repr(value) for value in column.to_pylist()]
    except (ValueError, pa.ArrowException, NotImplementedError):
        return [str(value) for value in column]


def _wrong_column(case: Case, name: str, column: pa.Array, numbers: list[Pairs], texts: list[_Texts]) -> str | None:
    side = 0 if name in texts[0] else 1
    wanted = texts[side][name][numbers[side]]
    if name in case.condition.shared and case.settings.how in ("right", "full"):
        other = texts[1][name][numbers[1]]
        wanted = other if case.settings.how == "right" else np.where(numbers[0] == NO_ROW, other, wanted)
    found = np.array(written(column), object)
    wrong = np.flatnonzero(found != wanted)
    if not len(wrong):
        return None
    at = wrong[0]
    rows = [int(side_numbers[at]) for side_numbers in numbers]
    return f"{len(wrong)} wrong values in {name}: {found[at]} instead of {wanted[at]}, rows {rows}"
