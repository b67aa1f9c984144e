"""Rows that are wide for their memory: how many of them must fit at once, and what that makes of the parts of it.

An operator declares how many rows its own part must hold so that it can go on, however much it has spilled
(``Description.rows_at_once``); input and output need a row of each side. From these numbers come the parts of the
memory, the refusal before the first row goes out, the memory that it advises, and what ``auto`` may take.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from earlyjoin.algorithms.protocol import Description, Plan
from earlyjoin.errors import BudgetExceeded
from earlyjoin.state.budget import MemoryLimit, format_bytes, format_enough
from earlyjoin.state.rows.sizes import flexible_columns

_INPUT_SHARE = 1 / 8
_SMALL_INPUT_SHARE = 3 / 16
_SMALL_BYTES = 32 * 10**6
"""A small memory gives larger parts to input and output: very short batches cost more time than the memory gains."""
_OUTPUT_SHARE = 1 / 16
_SMALL_OUTPUT_SHARE = 1 / 8
_MOST_SHARE = 1 / 2
_SPARE = 1.25
"""A row of each input, and one that goes out, must fit their parts, also if they are somewhat wider than most."""
_MOST_FOR_PAGES = 3 / 5
_TWO_PAGES = 2.25
_KEYS = 1.75
"""A key is kept beside its row, and again in a sweep area."""
_BESIDE = 16 / 15
"""What rows have beside them: keys, stamps, indexes, row numbers."""


@dataclass(frozen=True, slots=True)
class Needs:
    """Bytes that a join of wide rows cannot do without."""

    input: float
    output: float
    operator: float

    @classmethod
    def of(cls, description: Description, widths: Sequence[float], key_nbytes: float = 0) -> Needs:
        """Those of an algorithm whose inputs have rows of such widths, beside which it keeps keys of such a size."""
        widest = max(widths, default=0)
        at_once = description.rows_at_once * len(widths) / 2
        return cls(_SPARE * len(widths) * widest, _SPARE * sum(widths), at_once * (widest + _KEYS * key_nbytes))

    @property
    def least(self) -> float:
        """The smallest memory in which the join goes on."""
        return _BESIDE * (self.input + self.output + self.operator)


def shares(limit: int | None, needs: Needs) -> tuple[float, float]:
    """Parts of the memory for input (of all of it) and for output (of the rest): wide rows need larger ones."""
    small = limit is not None and limit < _SMALL_BYTES
    input_share = _SMALL_INPUT_SHARE if small else _INPUT_SHARE
    output_share = _SMALL_OUTPUT_SHARE if small else _OUTPUT_SHARE
    if limit is None:
        return input_share, output_share
    beside = limit - needs.output - needs.operator  # what is usual must not take what is needed elsewhere
    input_share = _between(needs.input / limit, min(input_share, beside / limit))
    rest = limit * (1 - input_share)
    return input_share, _between(needs.output / rest, min(output_share, 1 - needs.operator / rest))


def _between(needed: float, usual: float) -> float:
    return max(usual, min(_MOST_SHARE, needed))


def two_pages_share(limit: int, row_nbytes: float, usual: float) -> float:
    """The part of an operator's memory for reading: two pages must fit, also when a row is a page."""
    return max(usual, min(_MOST_FOR_PAGES, _TWO_PAGES * row_nbytes / limit))


def spare_share(limit: int | None, needs: Needs, share: float) -> float:
    """A share of the operator's memory for what can be left out: nothing, if the operator needs it."""
    return share if limit is None or needs.operator <= (1 - share) * limit else 0.0


def are_wide(limit: int | None, widths: Sequence[float]) -> bool:
    """Are rows so wide that the parts that are usual could be too small for them?"""
    return limit is not None and 32 * max(widths, default=0) > limit


def room_beside(limit: int, widths: Sequence[float]) -> float:
    """What input and output leave to an operator."""
    return limit - (_SPARE * len(widths) * max(widths, default=0) + _SPARE * sum(widths))


def wide_key_nbytes(plan: Plan, widths: Sequence[float]) -> float:
    """What a key takes where it is as wide as its row: where the condition reads all that can be wide. Else nothing."""
    wide = [0.0]
    for schema, names, width in zip(plan.schemas, plan.condition.columns, widths, strict=True):
        flexible = flexible_columns(schema)
        if flexible and set(flexible) <= set(names):
            wide.append(width)
    return max(wide)


def is_enough(memory: MemoryLimit, description: Description, widths: Sequence[float], key_nbytes: float = 0) -> bool:
    """Can the algorithm go on in such a memory, however much it has to spill?"""
    return memory.bytes is None or Needs.of(description, widths, key_nbytes).least <= memory.bytes


def refusal(
    memory: MemoryLimit,
    description: Description,
    widths: Sequence[float],
    key_nbytes: float,
    others: Sequence[Description],
) -> BudgetExceeded:
    """The error for rows that are too wide; ``others`` are the algorithms that could be taken instead."""
    needs = Needs.of(description, widths, key_nbytes)
    fewest = min(others, key=lambda other: other.rows_at_once, default=description)
    able = fewest.name if is_enough(memory, fewest, widths, key_nbytes) else None
    widest = max(widths)
    rows = -(-needs.least // max(1, widest))
    return BudgetExceeded(
        f"{description.name} needs room for about {rows:.0f} rows at once, in its input, output, table and pages, and "
        f"rows of about {format_bytes(widest)} do not fit so often into the memory of {memory}; give at "
        f"least {format_enough(needs.least)}" + (f", or use algorithm {able}, which needs fewer" if able else "")
    )
