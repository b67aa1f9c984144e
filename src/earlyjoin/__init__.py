"""earlyjoin joins data while it is still arriving: first rows at once, every row exactly once, inside a hard memory budget."""

from earlyjoin.algorithms.registry import names as algorithms
from earlyjoin.api import join, resume
from earlyjoin.errors import (
    BudgetExceeded,
    EarlyJoinError,
    InputError,
    SinkError,
    SnapshotError,
    SourceError,
    UnsupportedError,
)
from earlyjoin.local.query import Query
from earlyjoin.predicates import (
    band,
    equal,
    greater,
    greater_equal,
    intersects,
    less,
    less_equal,
    near,
    not_equal,
    overlaps,
    where,
)

__version__ = "0.1.0"

__all__ = [
    "BudgetExceeded",
    "EarlyJoinError",
    "InputError",
    "Query",
    "SinkError",
    "SnapshotError",
    "SourceError",
    "UnsupportedError",
    "algorithms",
    "band",
    "equal",
    "greater",
    "greater_equal",
    "intersects",
    "join",
    "less",
    "less_equal",
    "near",
    "not_equal",
    "overlaps",
    "resume",
    "where",
]
