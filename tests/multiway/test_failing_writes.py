"""A merge that could not write is given up without another try: what has failed once fails again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import earlyjoin as ej
from earlyjoin.algorithms.window_merge.merged_rows import InOrder, MergedRows


def test_closing_after_a_full_disk_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    tables = {name: pa.table({"k": rng.integers(0, 3000, 6000), name: rng.random(6000)}) for name in "abc"}
    on = ["a.k = b.k", "b.k = c.k"]
    query = ej.multi_join(tables, on=on, memory="150rows", spill_directory=str(tmp_path))
    tried: list[int] = []
    write_out = MergedRows.write_out

    def full(self: MergedRows) -> None:
        def refused(rows: InOrder) -> None:
            tried.append(len(rows.words))
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(self, "_write", refused)
        write_out(self)

    monkeypatch.setattr(MergedRows, "write_out", full)
    with pytest.raises(OSError, match="No space left"):
        query.to_arrow()
    assert len(tried) == 1
    assert list(tmp_path.iterdir()) == []
    budget = query._execution.budget
    assert (budget._bytes, budget._rows) == (0, 0)
