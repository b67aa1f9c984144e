"""Options of the sort family (PMJ, strict and semi-strict sort-merge joins)."""

from __future__ import annotations

from dataclasses import dataclass

from earlyjoin.algorithms.options import OperatorOptions, option


@dataclass(frozen=True, slots=True, kw_only=True)
class SortOptions(OperatorOptions):
    """How runs are made and merged."""

    fan_in: int = option(10, "most runs of a side that one merge takes", least=2, most=1000)
