"""Stretches of a side: what the look reads, file by file.

A stretch is the first rows of a file, the next ones, and so on: a ``limit`` makes Spark's reader stop there, whatever
the size of the file. Behind a filter it would not: the rows that come out tell nothing about those that were read. So
the stretches of a filtered side cost whole files, and are whole files as far as the memory has room for what comes out
of them. So are those of files whose rows have no number. But where Spark has told which rows of the first file pass,
the first stretch can be read without Spark, and costs its own rows.

Groups of rows have no stretches: those of the other side's keys are asked for, once. That answers for all of them.

Both sides begin at the same relative place, because tables that were written together often match there. Stretches are
no random choice: they give rows, and count for nothing else.
"""

from __future__ import annotations

import math
from functools import reduce
from pathlib import Path
from typing import Any

from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.spark.inspecting.plain_files import rows_in
from earlyjoin.spark.inspecting.scans import FILE, ROW, Files, Groups, Small
from earlyjoin.spark.inspecting.unchanged import local_path, nbytes_of
from earlyjoin.spark.session import functions

_ROUNDS = 16
"""So many times a file is gone back to for its next rows; each time those before are read again."""


class Stretches:
    """The stretches of one side, in the order in which they are read."""

    def __init__(self, below: Files | Small | Groups, place: float, row_nbytes: float) -> None:
        """``place``: where to begin, from 0 to 1; ``row_nbytes``: of a row in a file, about."""
        self.nbytes = max(1, below.nbytes)
        self.filtered = below.filtered
        self.by_key = isinstance(below, Groups)
        """Are its rows asked for by the keys of the other side?"""
        self.numbered = isinstance(below, Files) and below.numbered
        self.limited = self.numbered and not below.filtered
        """Does reading stop after a stretch?"""
        self.may_repeat = isinstance(below, Files) and below.several
        """May a file be read more than once? Then a limit would cut off what it does not cut off otherwise."""
        self.all_rows = max(1.0, below.nbytes / row_nbytes)
        """Rows of the side before its filter, about."""
        self.passing = 1.0
        """The part of them that passes the filter, about."""
        self.probed = False
        """Was that asked for?"""
        self.known: Int64 | None = None
        """Numbers of the rows of the first file that pass, where that is worth something."""
        self._known_rows = 0
        self.rows: int | None = None
        """Of a stretch, before the filter; None for whole files."""
        self.first = 1
        """How many to begin with."""
        self.taken = 0
        """How many were read: always the first ones."""
        self._paths: list[str | None] = [None]
        if isinstance(below, Files):
            start = int(place * len(below.paths))
            self._paths = [*below.paths[start:], *below.paths[:start]]

    def count_rows(self) -> None:
        """Let the first file, which is on this machine, tell how many rows there are, about."""
        path = local_path(self._paths[0] or "")
        rows = rows_in(Path(path)) if path is not None else None
        if path is not None and rows:
            self.all_rows = max(1.0, rows * self.nbytes / max(1, nbytes_of(path)))

    @property
    def most(self) -> int:
        """How many there are to be read."""
        return len(self._paths) * (1 if self.rows is None else _ROUNDS)

    @property
    def can_probe(self) -> bool:
        """Can a file tell how many of its rows pass the filter?"""
        return self.filtered and self.numbered

    def know(self, numbers: Int64, rows: int) -> None:
        """The first rows of the first file, of which those with these numbers pass, can be read without Spark."""
        self.known, self._known_rows = numbers, rows

    def aim(self, part: float, least: int, most: int, most_here: int) -> None:
        """Begin with about this part of the side; a limited stretch has from ``least`` to ``most`` rows.

        ``most`` is also what may come out of the first ones; ``most_here`` if they are read without Spark.
        """
        files = len(self._paths)
        if self.limited:
            rows = min(most, max(least, round(part * self.all_rows)))
            # As many files as are likely to have the rows, and no more rows even if each of them has as many.
            self.first = max(1, min(files, round(files * rows / self.all_rows)))
            self.rows = math.ceil(rows / self.first)
            return
        if self.known is not None:
            rows = max(least, math.ceil(part * self.all_rows))
            if rows <= self._known_rows:
                self.first, self.rows = 1, max(1, min(rows, int(most_here / max(self.passing, 1e-9))))
                return
            self.known = None  # more than one file has to be read
        self.first = max(1, min(files, math.ceil(files * part - 0.25)))
        coming = self.passing * self.all_rows * self.first / files
        if self.numbered and coming > most:
            self.rows = max(1, int(most / (self.passing * self.first)))

    def cost_nbytes(self, count: int) -> float:
        """Bytes of the files that have to be read for the first so many."""
        if self.limited and self.rows is not None:
            return min(float(self.nbytes), count * self.rows * self.nbytes / self.all_rows)
        whole = self.nbytes / len(self._paths)
        if self.known is not None and self.rows is not None:
            return min(whole, self.rows * self.nbytes / self.all_rows) + whole * (count - 1)
        return whole * count

    def paths(self, first: int, last: int) -> list[str]:
        """The files of some stretches."""
        found = {self._paths[number % len(self._paths)] for number in range(first, last)}
        return sorted(path for path in found if path is not None)

    def contains(self, first: int, last: int) -> Any:
        """A Column that holds for the rows of some stretches, and keeps Spark from reading other files."""
        f = functions()
        if self._paths == [None]:
            return f.lit(first < last)
        if self.rows is None:
            return f.col(FILE).isin(self.paths(first, last))
        by_range: dict[tuple[int, int], list[str]] = {}
        for path, *ends in self.ranges(first, last):
            by_range.setdefault((ends[0], ends[1]), []).append(path)
        # The number first: it decides for nearly all rows, and comparing names costs more.
        parts = [_between(*ends) & f.col(FILE).isin(paths) for ends, paths in by_range.items()]
        return reduce(lambda one, other: one | other, parts) if parts else f.lit(False)

    def ranges(self, first: int, last: int) -> list[tuple[str, int, int]]:
        """Of some stretches that are parts of files: the files, and the numbers of the rows, the last one excluded."""
        assert self.rows is not None
        found, files = [], len(self._paths)
        for at, path in enumerate(self._paths):
            rounds = [number // files for number in range(at, last, files) if number >= first]
            if rounds and path is not None:
                found.append((path, rounds[0] * self.rows, (rounds[-1] + 1) * self.rows))
        return found

    def beginnings(self, first: int, last: int) -> Any:
        """A Column that holds for the first row of each file of some stretches."""
        f = functions()
        return f.col(FILE).isin(self.paths(first, last)) & (f.col(ROW) == f.lit(0))

    def taken_rows(self) -> Any:
        """A Column that holds for all rows that were read."""
        return self.contains(0, self.taken)


def _between(first: int, last: int) -> Any:
    f = functions()
    below = f.col(ROW) < f.lit(last)
    return below if first == 0 else (f.col(ROW) >= f.lit(first)) & below
