"""``algorithm="auto"``: which algorithm to use, and the reason in words for ``explain``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from earlyjoin.algorithms import registry, wide_rows
from earlyjoin.algorithms.protocol import Description, Plan
from earlyjoin.errors import UnsupportedError
from earlyjoin.predicates.base import Capability
from earlyjoin.state.budget import MemoryLimit, format_bytes

_GROWTH = 1.5
"""Room that growing columns hold in reserve, as a multiple of what is in them."""
_INDEX_BYTES = 32
"""Key, index entry and flag of a row, with their room for growth."""
_OPERATORS_PART = 0.75
"""What is left for the operator when input buffer, output and row numbers have their parts."""

_PREFERRED = "ehj"
"""For equality that does not fit into memory: early rows at about the cost of a plain hash join."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An algorithm and why it was taken."""

    name: str
    reason: str


def choose(
    plan: Plan, memory: MemoryLimit, bytes_hint: int | None, rows_hint: int | None, widths: Sequence[int] = ()
) -> Choice:
    """Pick by condition, join type, size of the inputs (None: unknown), about what their rows take, and memory."""
    fits, size = _fits(memory, bytes_hint, rows_hint, widths)
    if fits and (first := next((one for one in registry.able(plan) if not one.spills), None)) is not None:
        return Choice(first.name, f"{_condition(first)}, {size}")
    able = list(registry.able(plan))
    if not able:
        raise UnsupportedError(f"no algorithm can do a {plan.how} join on {plan.condition.text}")
    in_memory = [description for description in able if not description.spills]
    spilling = [description for description in able if description.spills]
    indexed = sorted((description for description in spilling if not description.is_yardstick), key=_by_hash)
    if in_memory and fits is None and not indexed:
        best = in_memory[0]
        return Choice(best.name, f"{_condition(best)}, {size}")
    preferred = [description for description in indexed if description.name == _PREFERRED]
    best = _with_room(plan, memory, widths, [*preferred, *indexed]) or (spilling or in_memory)[0]
    reason = f"{_condition(best)}, {size}"
    return Choice(best.name, f"{reason}; {best.remark}" if best.remark else reason)


def _with_room(
    plan: Plan, memory: MemoryLimit, widths: Sequence[int], able: Sequence[Description]
) -> Description | None:
    """The first that can go on with rows so wide; if none can, the one that comes nearest."""
    if not wide_rows.are_wide(memory.bytes, widths):
        return next(iter(able), None)
    key_nbytes = wide_rows.wide_key_nbytes(plan, widths)
    enough = (one for one in able if wide_rows.is_enough(memory, one, widths, key_nbytes))
    return next(enough, min(able, key=lambda one: one.rows_at_once, default=None))


def _by_hash(description: Description) -> bool:
    """Sorts algorithms that hash before those that sort; among equals the order of registration stays."""
    return not description.needs & Capability.HASHABLE


def _condition(description: Description) -> str:
    if description.needs & Capability.HASHABLE:
        return "equality condition"
    return "condition with a sweep order" if description.needs else "works for every condition"


def fits_beside(memory: MemoryLimit, nbytes: float, widths: Sequence[int]) -> bool:
    """Do rows of so many bytes in all fit beside those that come in and go out?"""
    return memory.bytes is None or _GROWTH * nbytes <= wide_rows.room_beside(memory.bytes, widths)


def _fits(
    memory: MemoryLimit, bytes_hint: int | None, rows_hint: int | None, widths: Sequence[int]
) -> tuple[bool | None, str]:
    """Do the inputs fit into memory (None: unknown), and the same in words."""
    if memory.rows is not None:
        if rows_hint is None:
            return None, "number of input rows unknown"
        fits = rows_hint <= memory.rows * _OPERATORS_PART
        return fits, f"{rows_hint:,} input rows {'fit' if fits else 'do not fit'} into {memory}"
    if bytes_hint is None:
        return None, "input size unknown"
    needed = _GROWTH * bytes_hint + _INDEX_BYTES * (rows_hint if rows_hint is not None else bytes_hint / _INDEX_BYTES)
    fits = needed <= (memory.bytes or 0) * _OPERATORS_PART
    if wide_rows.are_wide(memory.bytes, widths):
        fits = fits and fits_beside(memory, bytes_hint, widths)
    return fits, f"inputs of up to about {format_bytes(bytes_hint)} {'fit' if fits else 'do not fit'} into {memory}"
