"""What a merge asks the join that it belongs to: which rows with equal words match, and what becomes of the others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from earlyjoin.algorithms.protocol import Step
from earlyjoin.algorithms.sweep_areas import SweepWords
from earlyjoin.algorithms.window_merge.window import WindowSide
from earlyjoin.predicates.encoding.keys import Int64, Keys


class Matching(ABC):
    """The rule for pairs (or combinations) that were joined before, the condition, the join type."""

    one_side: int | None = None
    """The side whose keys are declared to occur once, if there is one."""

    @abstractmethod
    def found(self, sides: Sequence[WindowSide], index: tuple[Int64, ...]) -> Step:
        """What goes out of combinations of rows with equal words: those that are new and match."""

    def unmatched(self, side: int, mine: WindowSide, first: int) -> tuple[Step, int]:
        """Rows from ``first`` on that never matched and go out; also where to go on."""
        return None, len(mine)

    def to_write(self, side: int, mine: WindowSide) -> tuple[Int64, SweepWords]:
        """The rows that go to the merged run, in order, and their words."""
        return mine.order, mine.words

    def refuse_repeated(self, side: int, mine: WindowSide, seen: Keys | None) -> Keys | None:
        """Refuse a key that a declared one-side has twice; ``seen`` are those of its word on earlier pages.

        Returns those seen now, where anybody asks.
        """
        return None
