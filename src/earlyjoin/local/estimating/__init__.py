"""Estimates of a running join: what it counts, what it watches, what it answers."""

from earlyjoin.local.estimating.running import Estimating

__all__ = ["Estimating"]
