"""The memory budget: hard, in bytes or in rows, and the one place where memory is asked for.

Code that is about to hold memory asks first (``try_reserve``), and on refusal spills and asks again. Nothing is ever
booked above the limit, so the peak that a budget reports cannot exceed it. A budget can be *split* in two with limits
of their own, whose bookings count against the whole as well.

A limit can change while memory is held (``resize``); parts keep their shares of it. Before it becomes
smaller than what is held, the holders give back: ``would_fit`` says whether they have.
"""

from __future__ import annotations

import math
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from earlyjoin.errors import BudgetExceeded, InputError

_UNITS = {
    "": 1, "b": 1,
    "k": 10**3, "kb": 10**3, "kib": 2**10,
    "m": 10**6, "mb": 10**6, "mib": 2**20,
    "g": 10**9, "gb": 10**9, "gib": 2**30,
    "t": 10**12, "tb": 10**12, "tib": 2**40,
}  # fmt: skip
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")

MIN_BYTES = 64 * 1024
MIN_ROWS = 8
_SPARE = 1.25
DEFAULT_FRACTION = 0.25
"""Share of the machine's memory that a join may use when nothing is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLimit:
    """How much a join may hold: bytes, or rows as the papers count."""

    bytes: int | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        if (self.bytes is None) == (self.rows is None):
            raise InputError("a memory limit is given in bytes or in rows, and in one of them only")
        if self.bytes is not None and self.bytes < MIN_BYTES:
            raise InputError(f"memory of {self.bytes} bytes is too small; give at least {MIN_BYTES // 1024}KiB")
        if self.rows is not None and self.rows < MIN_ROWS:
            raise InputError(f"memory of {self.rows} rows is too small; give at least {MIN_ROWS}rows")

    @classmethod
    def parse(cls, text: str | int | MemoryLimit | None) -> MemoryLimit:
        """Read "64MB", "1.5GiB", "300000rows", a number of bytes, or None for a quarter of this machine's memory."""
        if isinstance(text, MemoryLimit):
            return text
        if text is None:
            return cls(bytes=max(MIN_BYTES, int(physical_memory_bytes() * DEFAULT_FRACTION)))
        found = _SIZE.fullmatch(str(text))
        unit = found.group(2).lower() if found else ""
        if found and unit in ("row", "rows") and float(found.group(1)).is_integer():
            return cls(rows=int(float(found.group(1))))
        if not found or unit not in _UNITS or math.isinf(float(found.group(1)) * _UNITS[unit]):
            raise InputError(f"memory {text!r} is not a size; write for example 64MB, 1.5GiB or 300000rows")
        return cls(bytes=int(float(found.group(1)) * _UNITS[unit]))

    def __str__(self) -> str:
        if self.rows is not None:
            return f"{self.rows:,} rows"
        return format_bytes(self.bytes or 0)


def physical_memory_bytes() -> int:
    """Memory of this machine, or 4 GiB where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 4 * 2**30


def format_bytes(count: float) -> str:
    """A size for people: 12.3 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def format_enough(count: float) -> str:
    """The same, rounded up: what is advised must be enough when it is typed.

    >>> format_bytes(1_240_001), format_enough(1_240_001)
    ('1.2 MB', '1.3 MB')
    """
    unit = 1000.0 ** max(0, min(4, int(math.log(max(1.0, count), 1000))))
    return format_bytes(math.ceil(count / unit * 10) / 10 * unit)


Share = Callable[[MemoryLimit], MemoryLimit]
"""What a part of a budget gets of the whole."""


class Budget:
    """A limit and what is booked against it. Safe to use from several threads."""

    def __init__(self, limit: MemoryLimit, *, parent: Budget | None = None, share: Share | None = None) -> None:
        self.limit = limit
        self._parent = parent
        self._share = share
        self._parts: list[Budget] = []
        self._lock: threading.RLock = parent._lock if parent else threading.RLock()
        self._bytes = 0
        self._rows = 0
        self._peak_bytes = 0
        self._peak_rows = 0
        self._tight = False

    def split(self, fraction: float, *, least_rows: int = 1, least_bytes: int = 1024) -> tuple[Budget, Budget]:
        """Two budgets that together are this one: about ``fraction`` of it, and the rest."""

        def first(whole: MemoryLimit) -> MemoryLimit:
            return fraction_of(whole, fraction, least_rows=least_rows, least_bytes=least_bytes)

        return self.part(first), self.part(lambda whole: all_but(whole, first(whole)))

    def part(self, share: Share) -> Budget:
        """A budget with a limit of its own, whose bookings count here as well. Parts may overlap."""
        part = Budget(share(self.limit), parent=self, share=share)
        self._parts.append(part)
        return part

    def resize(self, limit: MemoryLimit) -> None:
        """Another limit, in the same unit, from now on; parts keep their shares."""
        if (limit.bytes is None) != (self.limit.bytes is None):
            raise InputError(f"a memory of {self.limit} cannot become one of {limit}: keep to one unit")
        with self._lock:
            self.limit = limit
            for part in self._parts:
                part.reshare()

    def reshare(self, share: Share | None = None) -> None:
        """Take another share of the whole, or the same one of a whole that has changed."""
        assert self._parent is not None
        with self._lock:
            self._share = share or self._share
            assert self._share is not None
            self.resize(self._share(self._parent.limit))

    def limit_if(self, whole: MemoryLimit) -> MemoryLimit:
        """What the limit here would be if that were the limit of all."""
        if self._parent is None or self._share is None:
            return whole
        return self._share(self._parent.limit_if(whole))

    def resize_parts(self, whole: MemoryLimit) -> None:
        """Give the smallest parts the limits they would have in that whole; those above them stay as they are.

        So a part that holds too much keeps others from growing again, and from nothing else.
        """
        with self._lock:
            for part in self._parts:
                part.resize_parts(whole)
            if not self._parts:
                self.resize(self.limit_if(whole))

    def would_fit(self, limit: MemoryLimit) -> bool:
        """Is what is held no more than ``limit`` would allow, here and in every part?"""
        with self._lock:
            here = self._rows <= limit.rows if limit.rows is not None else self._bytes <= (limit.bytes or 0)
            return here and all(part.would_fit(part._share(limit)) for part in self._parts if part._share is not None)

    @contextmanager
    def without_spare_room(self) -> Iterator[None]:
        """Meanwhile nobody here takes room to grow: a saved state is to fit into a memory that it filled."""
        self._tight = True
        try:
            yield
        finally:
            self._tight = False

    @property
    def tight(self) -> bool:
        """Is room taken for what is there and for nothing more?"""
        return self._tight or (self._parent is not None and self._parent.tight)

    def account(self, name: str) -> Account:
        """A named holder of memory."""
        return Account(self, name)

    @property
    def whole(self) -> MemoryLimit:
        """What the user gave, of which this budget may be a part."""
        return self.limit if self._parent is None else self._parent.whole

    @property
    def used_bytes(self) -> int:
        """Bytes booked now."""
        return self._bytes

    @property
    def used_rows(self) -> int:
        """Rows booked now."""
        return self._rows

    @property
    def peak_bytes(self) -> int:
        """Most bytes ever booked."""
        return self._peak_bytes

    @property
    def peak_rows(self) -> int:
        """Most rows ever booked."""
        return self._peak_rows

    @property
    def fraction_used(self) -> float:
        """Between 0 and 1, in the unit of the limit."""
        if self.limit.rows is not None:
            return self._rows / self.limit.rows
        return self._bytes / (self.limit.bytes or 1)

    def _fits(self, bytes_: int, rows: int) -> bool:
        if self.limit.rows is not None:
            fits = self._rows + rows <= self.limit.rows
        else:
            fits = self._bytes + bytes_ <= (self.limit.bytes or 0)
        return fits and (self._parent is None or self._parent._fits(bytes_, rows))

    def _try_book(self, bytes_: int, rows: int) -> bool:
        fits = self._fits(bytes_, rows)
        if fits:
            self._book(bytes_, rows)
        return fits

    def _book(self, bytes_: int, rows: int) -> None:
        self._bytes += bytes_
        self._rows += rows
        assert min(self._bytes, self._rows) >= 0, "released more than was reserved"
        self._peak_bytes = max(self._peak_bytes, self._bytes)
        self._peak_rows = max(self._peak_rows, self._rows)
        if self._parent is not None:
            self._parent._book(bytes_, rows)


class Account:
    """What one holder (payload, keys, an index, an input buffer) has booked in a budget."""

    __slots__ = ("_budget", "bytes", "name", "rows")

    def __init__(self, budget: Budget, name: str) -> None:
        self._budget = budget
        self.name = name
        self.bytes = 0
        self.rows = 0

    @property
    def limit(self) -> MemoryLimit:
        """What the budget behind it allows in all."""
        return self._budget.limit

    @property
    def tight(self) -> bool:
        """Is room taken for what is there and for nothing more?"""
        return self._budget.tight

    def try_reserve(self, bytes_: int = 0, rows: int = 0) -> bool:
        """Book more; False, with nothing booked, when it does not fit."""
        with self._budget._lock:
            if not self._budget._try_book(bytes_, rows):
                return False
            self.bytes += bytes_
            self.rows += rows
            return True

    def reserve(self, bytes_: int = 0, rows: int = 0) -> None:
        """Book more, or raise BudgetExceeded."""
        if not self.try_reserve(bytes_, rows):
            asked = f"{rows:,} rows" if self._budget.limit.rows is not None else format_bytes(bytes_)
            raise BudgetExceeded(f"{self.name} needs {asked} more than is free of the memory of {self._budget.whole}")

    def release(self, bytes_: int = 0, rows: int = 0) -> None:
        """Give back."""
        with self._budget._lock:
            self._budget._book(-bytes_, -rows)
            self.bytes -= bytes_
            self.rows -= rows

    def clear(self) -> None:
        """Give everything back."""
        self.release(self.bytes, self.rows)


class BytesAccount(Account):
    """Books bytes and no rows: for holders whose rows are counted elsewhere."""

    __slots__ = ()

    def try_reserve(self, bytes_: int = 0, rows: int = 0) -> bool:
        """Book bytes; False, with nothing booked, when they do not fit."""
        return super().try_reserve(bytes_)

    def release(self, bytes_: int = 0, rows: int = 0) -> None:
        """Give bytes back."""
        super().release(bytes_)


def _unchecked(*, bytes_: int | None = None, rows: int | None = None) -> MemoryLimit:
    """A limit below the smallest that users may give: shares of a small budget are smaller than a budget."""
    limit = object.__new__(MemoryLimit)
    object.__setattr__(limit, "bytes", bytes_)
    object.__setattr__(limit, "rows", rows)
    return limit


def fraction_of(whole: MemoryLimit, fraction: float, *, least_rows: int = 1, least_bytes: int = 1024) -> MemoryLimit:
    """About a fraction of a whole: no less than the least, and never all of it."""
    if whole.rows is not None:
        return _unchecked(rows=min(whole.rows - 1, max(least_rows, int(whole.rows * fraction))))
    assert whole.bytes is not None
    return _unchecked(bytes_=min(whole.bytes - 1, max(least_bytes, int(whole.bytes * fraction))))


def all_but(whole: MemoryLimit, part: MemoryLimit) -> MemoryLimit:
    """What is left of a whole without a part."""
    if whole.rows is not None:
        return _unchecked(rows=max(0, whole.rows - (part.rows or 0)))
    return _unchecked(bytes_=max(0, (whole.bytes or 0) - (part.bytes or 0)))


def row_too_large(nbytes: float, part: Budget, purpose: str) -> BudgetExceeded:
    """The error for a row for which the part of the memory set aside for a purpose has no room.

    A row that is smaller than the part finds it held by others: then what is told is how many it would have to hold.
    """
    whole, rows, advice = part.whole, 1, "give more memory"
    if part.limit.bytes and whole.bytes:  # parts grow with the whole
        rows = int(part.limit.bytes // max(1, nbytes)) + 1
        advice = f"give more memory, at least {format_enough(_SPARE * whole.bytes * rows * nbytes / part.limit.bytes)}"
    if rows == 1:
        return BudgetExceeded(
            f"a row of about {format_bytes(nbytes)} is too large for what the memory of {whole} sets aside for "
            f"{purpose}, which is {part.limit}; {advice}"
        )
    return BudgetExceeded(
        f"there is no room for one more row of about {format_bytes(nbytes)}: what the memory of {whole} sets aside for "
        f"{purpose} is {part.limit}, and {rows} such rows must fit; {advice}"
    )
