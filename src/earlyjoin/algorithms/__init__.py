"""Join algorithms: one module each, behind one protocol."""

from earlyjoin.algorithms import nested_loop, registry, symmetric_hash

__all__ = ["nested_loop", "registry", "symmetric_hash"]
