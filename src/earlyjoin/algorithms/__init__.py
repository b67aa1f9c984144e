"""Join algorithms: one module each, behind one protocol."""

from earlyjoin.algorithms import nested_loop, pmj, pmj_many, registry, sort_merge, symmetric_hash

__all__ = ["nested_loop", "pmj", "pmj_many", "registry", "sort_merge", "symmetric_hash"]
