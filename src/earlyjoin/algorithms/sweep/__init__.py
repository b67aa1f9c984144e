"""Sweep areas (PMJ section 3): one small module a kind of predicate, and the factory that picks one."""

from earlyjoin.algorithms.sweep.base import SweepArea, SweepCursor, SweepOrder, SweepWords
from earlyjoin.algorithms.sweep.factory import AreaMaker, make_sweep

__all__ = ["AreaMaker", "SweepArea", "SweepCursor", "SweepOrder", "SweepWords", "make_sweep"]
