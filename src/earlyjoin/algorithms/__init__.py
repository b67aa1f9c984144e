"""Join algorithms: one module each, behind one protocol."""

from earlyjoin.algorithms import nested_loop, pmj, pmj_many, registry, sort_merge, symmetric_hash
from earlyjoin.algorithms.hashing import dhj, ehj, hmj, rpj, xjoin

__all__ = [
    "dhj",
    "ehj",
    "hmj",
    "nested_loop",
    "pmj",
    "pmj_many",
    "registry",
    "rpj",
    "sort_merge",
    "symmetric_hash",
    "xjoin",
]
