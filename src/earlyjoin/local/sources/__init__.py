"""Inputs of a local join: files, data in memory, iterators, and simulated networks."""

from earlyjoin.local.sources.arrivals import (
    Arrivals,
    Bursty,
    Exponential,
    Reliable,
    Stalling,
    Zipf,
    parse_arrivals,
)
from earlyjoin.local.sources.base import BatchSizes, Source
from earlyjoin.local.sources.generated import generated
from earlyjoin.local.sources.opening import open_source
from earlyjoin.local.sources.simulated import SimulatedSource

__all__ = [
    "Arrivals",
    "BatchSizes",
    "Bursty",
    "Exponential",
    "Reliable",
    "SimulatedSource",
    "Source",
    "Stalling",
    "Zipf",
    "generated",
    "open_source",
    "parse_arrivals",
]
