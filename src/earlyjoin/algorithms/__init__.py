"""Join algorithms: one module each, behind one protocol."""

from earlyjoin.algorithms import multi_pmj, nested_loop, pmj, registry, sort_merge, symmetric_hash

__all__ = ["multi_pmj", "nested_loop", "pmj", "registry", "sort_merge", "symmetric_hash"]
