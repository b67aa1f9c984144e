"""A join that is paused into a directory and goes on later, here or in another process."""

import tempfile
from pathlib import Path

import pyarrow as pa

import earlyjoin as ej

numbers = pa.table({"k": [n % 100 for n in range(5_000)], "id": range(5_000)})

with tempfile.TemporaryDirectory() as directory:
    state = Path(directory) / "paused"
    query = ej.join(numbers, numbers, on="k", batch_rows=1000)
    before = next(iter(query)).num_rows
    query.pause(state)
    after = sum(batch.num_rows for batch in ej.resume(state, left=numbers, right=numbers))
    print(f"{before:,} rows before the pause, {after:,} after it, {before + after:,} in all")
