"""Memory that changes while a join runs (PMJ section 3.6, second point).

::

    ask(limit) ──▶ larger, or all that is held fits: in force at once
        └ smaller than what is held: before every step the operator is told to give back ──▶ it fits: in force

Until a smaller limit is in force the old one is. Parts of the memory get their smaller limit as soon as they fit.
"""

from __future__ import annotations

from earlyjoin.algorithms import registry
from earlyjoin.algorithms.protocol import Operator
from earlyjoin.errors import InputError
from earlyjoin.state.budget import Budget, MemoryLimit, format_bytes


class Resizing:
    """Changes the limit of a budget together with the operator that uses it, or a part of it."""

    def __init__(self, budget: Budget, operator: Operator) -> None:
        self._budget = budget
        self._operator = operator
        self.asked: MemoryLimit | None = None
        """The limit that is not in force yet; None when there is none."""

    def ask(self, limit: MemoryLimit) -> None:
        """Change the limit as soon as possible, or InputError that says why it cannot be."""
        if (limit.bytes is None) != (self._budget.limit.bytes is None):
            raise InputError(f"memory is counted in one unit: {self._budget.limit} cannot become {limit}")
        operator, part = self._operator, self._operator.context.budget
        mine = part.limit_if(limit)
        if not operator.description.gives_memory_back and not part.would_fit(mine):
            held = f"{part.used_rows:,} rows" if mine.rows is not None else format_bytes(part.used_bytes)
            able = [one.name for one in registry.able(operator.plan) if one.gives_memory_back]
            raise InputError(
                f"{operator.description.name} holds {held} and cannot give memory back, so {limit} is too little now; "
                f"ask for more, or choose an algorithm that can: {', '.join(able) or 'there is none for this join'}"
            )
        operator.check_memory(mine)
        self.asked = limit
        self.enforce()

    def enforce(self) -> None:
        """Between two steps: make the operator give back, and put the limit in force once all fits."""
        if self.asked is None:
            return
        part = self._operator.context.budget
        mine = part.limit_if(self.asked)
        if _smaller(mine, part.limit) and not (self._operator.give_back(mine) and part.would_fit(mine)):
            return
        if part is not self._budget:
            part.resize(mine)
        if self._budget.would_fit(self.asked):
            self._budget.resize(self.asked)
            self.asked = None
            self._operator.memory_changed()


def _smaller(limit: MemoryLimit, other: MemoryLimit) -> bool:
    return (limit.bytes or limit.rows or 0) < (other.bytes or other.rows or 0)
