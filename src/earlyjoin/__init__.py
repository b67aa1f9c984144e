"""earlyjoin joins data while it is still arriving: first rows at once, every row exactly once, inside a memory budget.

Names are imported when they are first used, so that ``earlyjoin --help`` does not wait for the compiler of the kernels.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from earlyjoin.algorithms.aggregates import avg, count
    from earlyjoin.algorithms.aggregates import sum as sum
    from earlyjoin.algorithms.registry import names as algorithms
    from earlyjoin.api import join, multi_join, resume, source
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
    "Query": "earlyjoin.local.query",
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


class _Package(ModuleType):
    """This package; ``algorithms`` stays the function, also when the subpackage of that name is imported."""

    @property
    def algorithms(self) -> Callable[[], list[str]]:
        """See :func:`earlyjoin.algorithms.registry.names`."""
        from earlyjoin.algorithms.registry import names

        return names

    @algorithms.setter
    def algorithms(self, subpackage: ModuleType) -> None:
        """The import system puts a subpackage here, which is reached by its full name all the same."""


sys.modules[__name__].__class__ = _Package
