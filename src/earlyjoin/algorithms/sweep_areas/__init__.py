"""Sweep areas (PMJ section 3): one small module a kind of predicate, and the factory that picks one."""

from earlyjoin.algorithms.sweep_areas.base import SweepArea, SweepCursor, SweepOrder, SweepWords
from earlyjoin.algorithms.sweep_areas.factory import AreaMaker, make_sweep
from earlyjoin.algorithms.sweep_areas.joining import SortedRun, sweep_join, sweep_runs

__all__ = [
    "AreaMaker",
    "SortedRun",
    "SweepArea",
    "SweepCursor",
    "SweepOrder",
    "SweepWords",
    "make_sweep",
    "sweep_join",
    "sweep_runs",
]
