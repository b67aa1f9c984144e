"""The pages of a sorted run of a partition, as a merge reads them."""

from __future__ import annotations

from earlyjoin.algorithms.hash_join.table.disk_part import DiskRun, PageReader, SideFiles
from earlyjoin.algorithms.sweep_areas import SweepOrder
from earlyjoin.algorithms.window_merge.run_cursor import Cost, SortedPage, Word

_ROW_NBYTES = 64
"""Bytes a row that a merge works with: words, their order, ranges of rows, stamps put together."""


def page_cost(disk: DiskRun, number: int) -> Cost:
    """Bytes and rows of a page while it is merged: as it is read, and once more as it is put together."""
    starts = disk.run.starts
    rows = (starts[number + 1] if number + 1 < len(starts) else disk.rows) - starts[number]
    return 2 * disk.sizes[number] + _ROW_NBYTES * rows, rows


class PartitionPages(PageReader):
    """Reads single pages of one run and leaves booking them to the caller."""

    def __init__(self, files: SideFiles, run: DiskRun, order: SweepOrder) -> None:
        super().__init__(files)
        self.run, self._order = run, order

    @property
    def first_words(self) -> tuple[Word, ...]:
        """The smallest word of each page."""
        return self.run.first_words

    def cost(self, number: int) -> Cost:
        """Bytes and rows of a page and of its rows in a window."""
        return page_cost(self.run, number)

    def payload_nbytes(self, number: int) -> int:
        """Nothing: it is in ``cost``."""
        return 0

    def read_page(self, number: int) -> SortedPage:
        """A page."""
        if self._reader is None:
            self._reader = self.run.run.read(self._physical)
        page = self._files.read(self._reader.page(number), self.run.label)
        self._count(self.run.run, number, number + 1)
        self._files.counters.seeks += 1  # runs are merged page by page
        words = self._order.words(self._files.side, page.keys)
        nbytes = page.nbytes + words.nbytes
        stamps = page.arrivals, page.departures
        return SortedPage(page.rows, page.keys, words, page.label, nbytes, *stamps, page.numbers, page.matched)

    def close(self) -> None:
        """Close the file."""
        self.drop()
