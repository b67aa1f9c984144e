"""What the tests of whole joins share: join types, and an equality beside the other predicates."""

from __future__ import annotations

import earlyjoin as ej
from spark.bulk_cases import CASES, Case, known


def places(name: str, how: str) -> tuple[str, ...]:
    """Where to join on Connect: by Spark always, and each predicate with one join type in the driver as well."""
    return (
        ("driver", "spark") if name in CASES and list(CASES).index(name) % len(HOWS) == HOWS.index(how) else ("spark",)
    )


HOWS = ("inner", "left", "right", "full", "semi", "anti")
EQUAL = {
    "equal": Case(
        ej.equal("k", "k") & ej.equal("g", "g"),
        lambda a, b: known(a["k"], b["k"], a["g"], b["g"]) and a["k"] == b["k"] and a["g"] == b["g"],
    ),
    "equal_one": Case(ej.equal("k", "k"), lambda a, b: known(a["k"], b["k"]) and a["k"] == b["k"]),
}
