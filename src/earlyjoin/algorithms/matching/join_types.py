"""Join types, and what a match means in each of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from earlyjoin.errors import InputError


class JoinType(StrEnum):
    """Which rows a join gives: SQL's meaning. Semi and anti give rows of side 0."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"

    @classmethod
    def named(cls, how: str) -> Self:
        """The join type that a text means: any spelling of Spark's, SQL's, pandas' and Polars', in any case.

        A cross join is an inner join whose condition always holds, see :func:`is_cross`.

        >>> JoinType.named("LEFT_OUTER")
        <JoinType.LEFT: 'left'>
        """
        spelling = _plain(how) if isinstance(how, str) else how
        for kind in cls:
            if spelling in map(_plain, (kind.value, *_OTHER_SPELLINGS.get(kind, ()))):
                return kind
        if is_cross(how):
            return cls(JoinType.INNER)
        if spelling in ("rightsemi", "rightanti"):
            other = spelling.removeprefix("right")
            raise InputError(
                f"a {how!r} join gives rows of the right input: give the inputs the other way round, and how={other!r}",
                command=f"a {how!r} join gives rows of RIGHT: give the inputs the other way round, and --how {other}",
            )
        raise InputError(f"unknown join type {how!r}; choose one of: {spellings()}")

    @property
    def gives_pairs(self) -> bool:
        """Does a match give a row made of both sides?"""
        return self not in (JoinType.SEMI, JoinType.ANTI)

    def gives_unmatched(self, side: int) -> bool:
        """Does a row of ``side`` without a match go out?"""
        if side == 0:
            return self in (JoinType.LEFT, JoinType.FULL, JoinType.ANTI)
        return self in (JoinType.RIGHT, JoinType.FULL)

    def remembers_matched(self, side: int) -> bool:
        """Must it be known for each row of ``side`` whether it has matched?"""
        return self.gives_unmatched(side) or (side == 0 and self is JoinType.SEMI)

    def one_match_is_enough(self, side: int) -> bool:
        """Does a row of ``side`` that has matched once need no further match?"""
        return side == 0 and not self.gives_pairs


_OTHER_SPELLINGS: dict[str, tuple[str, ...]] = {
    JoinType.LEFT: ("left_outer",),
    JoinType.RIGHT: ("right_outer",),
    JoinType.FULL: ("outer", "full_outer"),
    JoinType.SEMI: ("left_semi",),
    JoinType.ANTI: ("left_anti",),
}
"""As Spark, pandas, Polars and pyarrow have them; underscores may be left out, or be spaces or hyphens."""


def is_cross(how: str) -> bool:
    """Is it the join of every row with every row, which has no condition?"""
    return isinstance(how, str) and _plain(how) in ("cross", "crossjoin")


def check_cross(how: str, *, conditions: str | None) -> None:
    """Raise InputError unless a join has either a condition (its text) or the type cross."""
    if is_cross(how) and conditions is not None:
        raise InputError(
            f"how={how!r} joins every row with every row and has no condition, but there is one: {conditions}; "
            "leave it out, or take how='inner'",
            command=f"--how {how} joins every row with every row and has no condition, but there is one: {conditions}; "
            "leave it out, or take --how inner",
        )
    if not is_cross(how) and conditions is None:
        raise InputError(f"a {how} join needs a condition; for every pair of rows take how='cross'")


def spellings() -> str:
    """All join types with their other names, for messages and help."""
    others = {kind: ", ".join(_OTHER_SPELLINGS.get(kind, ())) for kind in JoinType}
    names = [f"{kind.value} ({others[kind]})" if others[kind] else kind.value for kind in JoinType]
    return ", ".join([*names, "cross"])


_LEFT_OUT = dict.fromkeys(map(ord, "_- "))


def _plain(spelling: str) -> str:
    return spelling.lower().translate(_LEFT_OUT)
