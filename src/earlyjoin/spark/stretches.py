"""Stretches of a side: what the look reads, file by file.

A stretch is the first rows of a file, the next ones, and so on: a ``limit`` makes Spark's reader stop there, whatever
the size of the file. Behind a filter it would not: the rows that come out tell nothing about those that were read. So
the stretches of a filtered side are whole files, as are those of files whose rows have no number.

Both sides begin at the same relative place, because tables that were written together often match there. Stretches are
no random choice: they give rows, and count for nothing else.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

from earlyjoin.spark.scans import FILE, ROW, Files, Small
from earlyjoin.spark.session import functions

_FIRST_SHARE = 0.04
"""Of the files of a side, where stretches are whole files."""
_ROUNDS = 16
"""So many times a file is gone back to for its next rows; each time those before are read again."""


class Stretches:
    """The stretches of one side, in the order in which they are read."""

    def __init__(self, below: Files | Small, place: float, rows: int, row_nbytes: float) -> None:
        """``place``: where to begin, from 0 to 1; ``rows``: of the first step; ``row_nbytes``: in a file, about."""
        self.nbytes = below.nbytes
        self.rows: int | None = None
        """Of a stretch; None for whole files."""
        self.first = 1
        """How many to begin with."""
        self.taken = 0
        """How many were read: always the first ones."""
        self.may_repeat = False
        """May a file be read more than once? Then a limit would cut off what it does not cut off otherwise."""
        self._paths: list[str | None] = [None]
        self._row_nbytes = row_nbytes
        if isinstance(below, Files):
            start = int(place * len(below.paths))
            self._paths = [*below.paths[start:], *below.paths[:start]]
            self.first = max(1, int(_FIRST_SHARE * len(below.paths)))
            if below.numbered and not below.filtered:
                # As many files as are likely to have the rows, and no more rows even if each of them has as many.
                files = rows * row_nbytes / max(1.0, below.nbytes / len(below.paths))
                self.first = max(1, min(len(self._paths), round(files)))
                self.rows = math.ceil(rows / self.first)
                self.may_repeat = below.several
        self.most = len(self._paths) * (1 if self.rows is None else _ROUNDS)

    def cost_nbytes(self, count: int) -> float:
        """Bytes of the files that have to be read for the first so many."""
        if self.rows is None:
            return self.nbytes * count / len(self._paths)
        return min(float(self.nbytes), float(count * self.rows * self._row_nbytes))

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
        by_range: dict[tuple[int, int], list[str | None]] = {}
        for at, path in enumerate(self._paths):
            numbers = [number // len(self._paths) for number in range(at, last, len(self._paths)) if number >= first]
            if numbers:
                by_range.setdefault((numbers[0], numbers[-1] + 1), []).append(path)
        # The number first: it decides for nearly all rows, and comparing names costs more.
        parts = [_between(*ends, self.rows) & f.col(FILE).isin(paths) for ends, paths in by_range.items()]
        return reduce(lambda one, other: one | other, parts) if parts else f.lit(False)

    def beginnings(self, first: int, last: int) -> Any:
        """A Column that holds for the first row of each file of some stretches."""
        f = functions()
        return f.col(FILE).isin(self.paths(first, last)) & (f.col(ROW) == f.lit(0))

    def taken_rows(self) -> Any:
        """A Column that holds for all rows that were read."""
        return self.contains(0, self.taken)


def _between(first: int, last: int, rows: int) -> Any:
    f = functions()
    below = f.col(ROW) < f.lit(last * rows)
    return below if first == 0 else (f.col(ROW) >= f.lit(first * rows)) & below
