"""Spark's plans as text: asked for as a row, so that classic and Connect sessions answer alike and nothing is printed.

What is read off them: the nodes of the optimised plan, the sizes that Spark expects, and whether rows have to be
shuffled before the first one can come out.
"""

from __future__ import annotations

import re
from typing import Any

from earlyjoin.spark.session import session_of

_OPTIMIZED = "== Optimized Logical Plan =="
_PHYSICAL = "== Physical Plan =="
_NODE = re.compile(r"^[\s:+|\-]*(\w+)")
_SIZE = re.compile(r"Statistics\(sizeInBytes=([\d.,E+]+) (B|KiB|MiB|GiB|TiB|PiB|EiB)")
_UNITS = {"B": 0, "KiB": 1, "MiB": 2, "GiB": 3, "TiB": 4, "PiB": 5, "EiB": 6}
_SHUFFLE = re.compile(r"^[\s:+|\-]*(?:\*\(\d+\) )?(?:Exchange|CartesianProduct)\b", re.MULTILINE)
"""Not BroadcastExchange, which sends one side around and lets the other stream."""


def explained(dataframe: Any, how: str = "COST") -> str:
    """The optimised plan with its statistics, and the physical plan. Nothing is run.

    Spark makes a view of the DataFrame for that and removes it again, and with it whatever somebody has cached that has
    the plan of the view. So the view has a filter that lets everything pass, which the optimiser leaves out.
    """
    asked = f"EXPLAIN {how} SELECT * FROM {{frame}}"
    text = session_of(dataframe).sql(asked, frame=dataframe.where("true")).collect()[0][0]
    return str(text)


def plan_nodes(explained: str) -> list[tuple[str, str]]:
    """Name and text of each node of the optimised plan, from the root on."""
    nodes = []
    for line in _section(explained, _OPTIMIZED).splitlines():
        name = _NODE.match(line)
        if name is not None:
            nodes.append((name[1], line))
    return nodes


def planned_nbytes(dataframe: Any) -> int | None:
    """How large Spark takes a DataFrame for; None when it does not say. Nothing is run."""
    nodes = plan_nodes(explained(dataframe))
    return node_nbytes(nodes[0][1]) if nodes else None


def node_nbytes(text: str) -> int | None:
    """How large Spark takes the rows of a node for; None when it does not say."""
    found = _SIZE.search(text)
    return int(float(found[1].replace(",", "")) * 1024 ** _UNITS[found[2]]) if found else None


def shuffles(explained: str) -> bool:
    """Must rows be shuffled before the first one comes out? A plan that cannot be read is taken to shuffle."""
    physical = _section(explained, _PHYSICAL)
    return not physical or _SHUFFLE.search(physical) is not None


def _section(explained: str, header: str) -> str:
    _, found, rest = explained.partition(header)
    return rest.split("\n==", 1)[0] if found else ""
