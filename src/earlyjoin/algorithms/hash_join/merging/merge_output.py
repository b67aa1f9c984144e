"""The run of a partition that a merge writes for one side. After :meth:`pause` it goes on in another run."""

from __future__ import annotations

from earlyjoin.algorithms.hash_join.table.disk_part import DiskRun, PartWriter, SideFiles
from earlyjoin.algorithms.window_merge.merged_rows import ROW_NBYTES, InOrder, MergedRows
from earlyjoin.algorithms.window_merge.window import WindowSide
from earlyjoin.state.budget import Account
from earlyjoin.state.rows.sizes import batch_nbytes


class PartitionOutput(MergedRows):
    """Pages are as large as those of the table."""

    def __init__(self, files: SideFiles, label: int, account: Account) -> None:
        super().__init__(account)
        self._files, self._label = files, label
        self._writer: PartWriter | None = None

    def _most(self, side: WindowSide) -> int:
        limit, part = self._files.pages.limit, self._files.page_part
        if limit.rows is not None:
            return limit.rows // part
        row_nbytes = batch_nbytes(side.rows.batch) / max(1, len(side.rows)) + ROW_NBYTES
        return int((limit.bytes or 0) / part / row_nbytes)

    def _fills_a_page(self) -> bool:
        limit, part = self._files.pages.limit, self._files.page_part
        if limit.rows is not None:
            return part * self.rows >= limit.rows
        return part * self.nbytes >= (limit.bytes or 0)

    def _write(self, rows: InOrder) -> None:
        assert rows.arrivals is not None
        assert rows.departures is not None
        if self._writer is None:
            self._writer = PartWriter(self._files, self._label)
        self._writer.write(rows.batch, rows.arrivals, rows.departures, None, words=rows.words, numbers=rows.numbers)

    def pause(self, *, written_out: bool = True) -> DiskRun | None:
        """Finish what was written so far; with ``written_out`` the rows that wait go into it."""
        if written_out:
            self.write_out()
        else:
            self.drop_waiting()
        if self._writer is None:
            return None
        run, self._writer = self._writer.close(), None
        return run
