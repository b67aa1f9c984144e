"""earlyjoin joins data while it is still arriving: first rows at once, every row exactly once, inside a memory budget.

Names are imported when they are first used, so that ``earlyjoin --help`` does not wait for the compiler of the kernels.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from earlyjoin.algorithms.aggregates import avg, count
    from earlyjoin.algorithms.aggregates import sum as sum
    from earlyjoin.api import algorithm_names, join, multi_join, resume, source
    from earlyjoin.errors import (
        BudgetExceeded,
        EarlyJoinError,
        InputError,
        SinkError,
        SnapshotError,
        SourceError,
        UnsupportedError,
    )
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
    from earlyjoin.query.query import Query

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
    "algorithm_names",
    "avg",
    "band",
    "count",
    "equal",
    "greater",
    "greater_equal",
    "intersects",
    "join",
    "less",
    "less_equal",
    "multi_join",
    "near",
    "not_equal",
    "overlaps",
    "resume",
    "source",
    "sum",
    "where",
]

_HOMES = {
    "Query": "earlyjoin.query.query",
    "algorithm_names": "earlyjoin.api",
    "join": "earlyjoin.api",
    "multi_join": "earlyjoin.api",
    "resume": "earlyjoin.api",
    "source": "earlyjoin.api",
    **dict.fromkeys(("avg", "count", "sum"), "earlyjoin.algorithms.aggregates"),
}
"""Where a name lives; errors are written in capitals, and all the rest are predicates."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES.get(name) or ("earlyjoin.errors" if name[0].isupper() else "earlyjoin.predicates")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
