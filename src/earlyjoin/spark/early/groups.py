"""Groups of rows found by their keys, without computing all others.

The keys are sent to every task as the right side of a semi join above the aggregation. Where they are grouping columns,
Spark moves that join below the aggregation: rows of other groups are dropped as they are read, and next to nothing is
shuffled. Its plan tells whether it does; where it does not, nothing is run.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from earlyjoin.algorithms.protocol import Plan
from earlyjoin.spark.columns.conditions import column_condition
from earlyjoin.spark.inspecting.plans import explained, plan_nodes
from earlyjoin.spark.session import functions


def sought_by_key(plan: Plan, frame: Any, keys: pa.Table, session: Any) -> Any | None:
    """The rows of a side with one of these keys, a lazy DataFrame; None when Spark would compute all of them.

    ``frame`` has its columns named by position, and so have the keys, as columns of the other side.
    """
    sent = functions().broadcast(session.createDataFrame(keys))
    found = frame.join(sent, column_condition(plan), "left_semi")
    nodes = [name for name, _ in plan_nodes(explained(found))]
    if "Join" not in nodes or "Aggregate" in nodes[nodes.index("Join") :]:
        return None
    return found
