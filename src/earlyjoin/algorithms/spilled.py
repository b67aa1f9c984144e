"""Runs of one input on disk, and reading two of their pages at a time inside a budget."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from earlyjoin.algorithms.residents import Page, Residents
from earlyjoin.predicates.keys import Bool
from earlyjoin.state.budget import Budget, row_too_large
from earlyjoin.state.counters import Counters
from earlyjoin.state.snapshot import Snapshot
from earlyjoin.state.spill import Run, RunReader, SpillDirectory


@dataclass(slots=True)
class SpilledRun:
    """Rows that left memory together."""

    run: Run
    last_arrival: int
    departure: int
    flags: Path | None
    """File of one byte a row: has it matched? On disk because flags of spilled rows must not fill the memory."""

    def matched(self, first: int, count: int) -> Bool | None:
        """The flags of some rows, writable; None when nobody asks."""
        if self.flags is None:
            return None
        return np.memmap(self.flags, dtype=np.bool_, mode="r+", offset=first, shape=(count,))

    def delete(self) -> None:
        """Remove the files."""
        self.run.delete()
        if self.flags is not None:
            self.flags.unlink(missing_ok=True)


def spill(
    residents: Residents, directory: SpillDirectory, counters: Counters, pages: Budget, departure: int
) -> SpilledRun:
    """Write all rows of one side to disk and forget them in memory."""
    path = directory.new_path(".arrow")
    run = residents.write(path, counters, pages)
    flags = None
    if residents.matched is not None:
        flags = path.with_suffix(".flags")
        residents.matched.tofile(flags)
    spilled = SpilledRun(run, int(residents.arrivals[-1]), departure, flags)
    residents.clear()
    counters.flushes += 1
    return spilled


class PageSlot:
    """Holds one page of one run in memory; reading another lets it go."""

    def __init__(self, residents: Residents, budget: Budget, counters: Counters) -> None:
        self._residents = residents
        self._budget = budget
        self._account = budget.account("page")
        self._counters = counters
        self._held: tuple[Run, int] | None = None
        self._page: Page | None = None
        self._reader: RunReader | None = None

    @property
    def nbytes(self) -> int:
        """Bytes really held."""
        return self._page.nbytes if self._page is not None else 0

    def read(self, run: Run, number: int) -> tuple[Page, int] | None:
        """A page and the number of its first row in the run, or None behind the last page."""
        if number >= run.pages:
            return None
        if self._held != (run, number) or self._page is None:
            self._let_page_go()
            if self._reader is None or self._reader.run != run:
                self._close_reader()
                self._reader = run.read(self._counters)
            page = self._residents.read_page(self._reader.page(number))
            if not self._account.try_reserve(page.nbytes, len(page)):
                raise row_too_large(page.nbytes / len(page), self._budget, "reading")
            self._held, self._page = (run, number), page
        return self._page, run.starts[number]

    def drop(self) -> None:
        """Let the page go and close the file."""
        self._let_page_go()
        self._close_reader()

    def _let_page_go(self) -> None:
        self._account.clear()
        self._held = self._page = None

    def _close_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None


def save_run(snapshot: Snapshot, name: str, spilled: SpilledRun) -> dict[str, Any]:
    """Put a run into a snapshot; returns the plain values that ``load_run`` needs."""
    snapshot.files[name] = spilled.run.path
    if spilled.flags is not None:
        snapshot.files[f"{name}-flags"] = spilled.flags
    return {
        "name": name,
        "rows": spilled.run.rows,
        "starts": list(spilled.run.starts),
        "nbytes": spilled.run.nbytes,
        "last_arrival": spilled.last_arrival,
        "departure": spilled.departure,
    }


def load_run(snapshot: Snapshot, values: dict[str, Any], directory: SpillDirectory) -> SpilledRun:
    """Copy a run out of a snapshot: the snapshot can be restored again."""
    path = directory.new_path(".arrow")
    shutil.copyfile(snapshot.files[values["name"]], path)
    flags = None
    saved_flags = snapshot.files.get(f"{values['name']}-flags")
    if saved_flags is not None:
        flags = path.with_suffix(".flags")
        shutil.copyfile(saved_flags, flags)
    run = Run(path, values["rows"], tuple(values["starts"]), values["nbytes"])
    return SpilledRun(run, values["last_arrival"], values["departure"], flags)
