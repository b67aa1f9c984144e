"""Pages of runs: what they hold besides rows, how rows are cut into them, and what is held of them in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

import pyarrow as pa

from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.state.budget import Budget, row_too_large
from earlyjoin.state.counters import Counters
from earlyjoin.state.disk.runs import Run, RunReader

PageT_co = TypeVar("PageT_co", covariant=True)


class PageLayout:
    """Rows of a schema and, behind their columns, *marks*: numbers that say more of each row, such as stamps."""

    def __init__(self, rows: pa.Schema, marks: Sequence[str]) -> None:
        self.rows = rows
        self.schema = pa.schema([*rows, *(pa.field(f"__{mark}", pa.int64(), nullable=False) for mark in marks)])

    def page(self, rows: pa.RecordBatch, marks: Sequence[Int64]) -> pa.RecordBatch:
        """Rows with their marks."""
        return pa.RecordBatch.from_arrays([*rows.columns, *(pa.array(mark) for mark in marks)], schema=self.schema)

    def rows_of(self, page: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a page alone."""
        count = len(self.rows)
        return pa.RecordBatch.from_arrays(page.columns[:count], schema=self.rows) if count else page.select([])

    def marks_of(self, page: pa.RecordBatch) -> list[Int64]:
        """The marks of a page."""
        return [column.to_numpy() for column in page.columns[len(self.rows) :]]


class Sized(Protocol):
    """What a page has become in memory."""

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        ...

    def __len__(self) -> int: ...


MadeT = TypeVar("MadeT", bound=Sized)


class PageSlot(Generic[MadeT]):
    """Holds one group of pages of one run in memory, booked in a budget; reading another lets it go."""

    def __init__(self, budget: Budget, counters: Counters) -> None:
        self._budget, self._counters = budget, counters
        self._account = budget.account("page")
        self._reader: RunReader | None = None
        self._first = 0
        self._page: MadeT | None = None

    @property
    def nbytes(self) -> int:
        """Bytes really held."""
        return self._page.nbytes if self._page is not None else 0

    def holds(self, run: Run, first: int) -> bool:
        """Is the group that begins with this page in memory?"""
        return self._page is not None and self._first == first and self._reader is not None and self._reader.run is run

    def hold(self, run: Run, first: int, stop: int, make: Callable[[pa.RecordBatch], MadeT]) -> MadeT:
        """The pages from ``first`` to before ``stop`` as one, which ``make`` gives its keys.

        Raises BudgetExceeded when the budget has no room for it.
        """
        if self._page is None or not self.holds(run, first):
            self._let_go()
            if self._reader is None or self._reader.run is not run:
                self.drop()
                self._reader = run.read(self._counters)
            batches = [self._reader.page(number) for number in range(first, stop)]
            page = make(batches[0] if len(batches) == 1 else pa.concat_batches(batches))
            if not self._account.try_reserve(page.nbytes, len(page)):
                raise row_too_large(page.nbytes / len(page), self._budget, "reading")
            self._first, self._page = first, page
        return self._page

    def drop(self) -> None:
        """Let the pages go and close the file."""
        self._let_go()
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _let_go(self) -> None:
        self._account.clear()
        self._page = None


class Weighed(Protocol[PageT_co]):
    """Makes a page of some rows and says how many bytes it will take in memory."""

    def __call__(self, start: int, stop: int) -> tuple[PageT_co, int]: ...


def cut_pages(
    rows: int, most: int, limit_bytes: int | None, make: Weighed[PageT_co], *, learns: bool = False
) -> Iterator[tuple[int, PageT_co, int]]:
    """Pages of at most ``most`` rows and, unless a single row is larger, ``limit_bytes``: first row, page, bytes.

    A page that is too large is halved. With ``learns`` the next one is taken to be as heavy.
    """
    start = 0
    while start < rows:
        stop = min(rows, start + most)
        page, nbytes = make(start, stop)
        while limit_bytes is not None and nbytes > limit_bytes and stop - start > 1:
            stop = start + (stop - start) // 2
            most = stop - start if learns else most
            page, nbytes = make(start, stop)
        yield start, page, nbytes
        start = stop
