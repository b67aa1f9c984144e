"""What becomes of an arriving batch before any algorithm sees it: keys encoded, rows that cannot matter left out."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.protocol import Plan
from earlyjoin.predicates.base import BoundPredicate
from earlyjoin.predicates.encoding.keys import Keys
from earlyjoin.state.rows.store import BatchRows


def admit(plan: Plan, side: int, batch: pa.RecordBatch, key: BoundPredicate) -> tuple[pa.RecordBatch, Keys]:
    """The batch and its keys, without the rows that can neither match (a null key) nor go out unmatched."""
    keys = key.encode(side, batch)
    if keys.valid is None or plan.how.gives_unmatched(side) or keys.valid.all():
        return batch, keys
    rows = np.flatnonzero(keys.valid)
    kept = pa.RecordBatch.from_arrays(BatchRows(batch).take(rows), schema=batch.schema)
    return kept, keys.take(rows)
