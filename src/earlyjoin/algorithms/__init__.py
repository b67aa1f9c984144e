"""Join algorithms: one module each, behind one protocol."""

from earlyjoin.algorithms import nested_loop, pmj, registry, sort_merge, symmetric_hash
from earlyjoin.algorithms.hashing import xjoin

__all__ = ["nested_loop", "pmj", "registry", "sort_merge", "symmetric_hash", "xjoin"]
