"""Options of the sort family (PMJ, strict and semi-strict sort-merge joins)."""

from __future__ import annotations

from dataclasses import dataclass

from earlyjoin.algorithms.options import OperatorOptions, option


@dataclass(frozen=True, slots=True, kw_only=True)
class SortOptions(OperatorOptions):
    """How runs are made and merged."""

    fan_in: int = option(10, "most runs of a side that one merge takes", least=2, most=1000)
    split: float | None = option(
        None, "the left input's part of the memory for making runs; auto: whoever comes first", least=0.01, most=0.99
    )

    replacement_selection: bool = option(False, "runs of about twice the memory, for more work in memory")

    sorted_output: bool = option(False, "results in the order of the left key, none before every input has ended")

    def notes(self) -> tuple[str, ...]:
        """What the choices mean."""
        notes = []
        if self.split is not None:
            left = round(100 * self.split)
            notes.append(
                f"a pair of runs has up to {left} % of the memory's rows from the left and {100 - left} % from the "
                f"right input, and is written when either part is full: read both in that ratio"
            )
        if self.replacement_selection:
            notes.append("rows on disk carry 16 bytes more: when they were in memory")
        if self.sorted_output:
            notes.append(
                "results come in the order of the left key: none before every input has ended and both are sorted, "
                "which writes and reads every row that does not fit into memory once more than results in any order"
            )
        return tuple(notes)
