"""Reading strategies: which input to read next when we may choose (EHJ section 3); switchable at any moment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from earlyjoin.errors import InputError

_RATIO = re.compile(r"\s*\d+(\s*:\s*\d+)+\s*")


_EVEN_ROWS = 32 * 1024
_FAVOUR = 8


@dataclass(slots=True)
class Ratio:
    """Read A rows of the first input for every B of the second, and so on; with 0 an input waits for the others' end.

    >>> strategy = Ratio((2, 1))
    >>> [strategy.next_side([4, 1], [False, False]), strategy.next_side([0, 0], [True, False])]
    [1, 1]
    """

    weights: tuple[int, ...] = (1, 1)
    _since: list[int] = field(default_factory=list)
    """Rows that had been read of each input when the weights came into force."""

    def __post_init__(self) -> None:
        if min(self.weights) < 0 or max(self.weights) == 0:
            raise InputError(f"reading ratio {self} needs whole numbers of which at least one is above 0")

    @classmethod
    def parse(cls, text: str) -> Ratio:
        """Read "1:1", "5:1", "1:0" (all of the first input first), "2:1:1" for three inputs."""
        found = _RATIO.fullmatch(text)
        if not found:
            raise InputError(f"reading ratio {text!r} is neither auto nor of the form A:B, such as 1:1 or 5:1")
        return cls(tuple(int(weight) for weight in text.split(":")))

    def switch(self, weights: tuple[int, ...], rows_read: Sequence[int]) -> None:
        """Use another ratio from now on."""
        self.weights, self._since = Ratio(weights).weights, list(rows_read)

    def to_values(self) -> dict[str, Any]:
        """Plain values to go on with after a pause."""
        return {"weights": list(self.weights), "since": list(self._since)}

    def go_on(self, values: dict[str, Any]) -> None:
        """Continue where another process stopped."""
        self.weights, self._since = tuple(values["weights"]), list(values["since"])

    def next_side(self, rows_read: Sequence[int], ended: Sequence[bool]) -> int | None:
        """The input to read next, or None when all have ended. Ties go to the first."""
        since = self._since or [0] * len(rows_read)
        open_sides = [side for side, over in enumerate(ended) if not over]
        weighted = [side for side in open_sides if self.weights[side] > 0]
        if not open_sides:
            return None
        if not weighted:
            return open_sides[0]
        return min(weighted, key=lambda side: (rows_read[side] - since[side]) / self.weights[side])

    def __str__(self) -> str:
        return ":".join(str(weight) for weight in self.weights)


@dataclass(slots=True)
class SmallerFirst(Ratio):
    """All inputs alike for the first results, then mostly the smallest one, so that it ends soon.

    Rows of the larger input that come after the end of the smaller one need not be kept (EHJ section 3.2: reading more
    of the smaller relation costs a few early results and saves memory and time in all).
    """

    favoured: tuple[int, ...] = (1, 1)
    _switched: bool = False

    @classmethod
    def of(cls, rows: Sequence[int | None]) -> SmallerFirst:
        """For inputs of these sizes; an unknown size, or sizes that differ little, favours none."""
        known = [count for count in rows if count is not None]
        even = (1,) * len(rows)
        if len(known) < len(rows) or max(known) < 2 * min(known):
            return cls(even, favoured=even)
        return cls(even, favoured=tuple(_FAVOUR if count == min(known) else 1 for count in known))

    def switch(self, weights: tuple[int, ...], rows_read: Sequence[int]) -> None:
        """Use another ratio from now on; what the user asks for stays."""
        self._switched = True
        Ratio.switch(self, weights, rows_read)

    def to_values(self) -> dict[str, Any]:
        """Plain values to go on with after a pause."""
        return Ratio.to_values(self) | {"switched": self._switched}

    def go_on(self, values: dict[str, Any]) -> None:
        """Continue where another process stopped."""
        Ratio.go_on(self, values)
        self._switched = values["switched"]

    def next_side(self, rows_read: Sequence[int], ended: Sequence[bool]) -> int | None:
        """As a ratio of 1:1 at first, of the favoured side later."""
        if not self._switched and min(rows_read) >= _EVEN_ROWS:
            self.switch(self.favoured, rows_read)
        return Ratio.next_side(self, rows_read, ended)

    def __str__(self) -> str:
        first, later = (":".join(map(str, weights)) for weights in ((1,) * len(self.favoured), self.favoured))
        return f"auto: {first}" if max(self.favoured) == 1 else f"auto: {first}, then {later}"


def check_reading(text: str) -> None:
    """Raise InputError unless the text is "auto" or a ratio."""
    if text != "auto":
        Ratio.parse(text)


def make_reading(text: str, rows: Sequence[int | None]) -> Ratio:
    """The strategy for "auto" or "A:B" and inputs of these sizes (None: unknown)."""
    if text == "auto":
        return SmallerFirst.of(rows)
    ratio = Ratio.parse(text)
    if len(ratio.weights) != len(rows):
        raise InputError(f"reading ratio {text!r} is for {len(ratio.weights)} inputs, there are {len(rows)}")
    return ratio
