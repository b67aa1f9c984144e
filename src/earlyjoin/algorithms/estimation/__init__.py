"""How large the result will be, with an interval: small objects with ``update``, ``get`` and ``+``."""

from earlyjoin.algorithms.estimation.blocks import BetweenBlocks
from earlyjoin.algorithms.estimation.estimate import Aggregate, Estimate, Estimator
from earlyjoin.algorithms.estimation.order import OrderCheck
from earlyjoin.algorithms.estimation.paper import IndependentPairs
from earlyjoin.algorithms.estimation.ripple import TwoSided

__all__ = ["Aggregate", "BetweenBlocks", "Estimate", "Estimator", "IndependentPairs", "OrderCheck", "TwoSided"]
