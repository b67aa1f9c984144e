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
        """The join type that a text means: any spelling of Spark's and SQL's, in any case.

        >>> JoinType.named("LEFT_OUTER")
        <JoinType.LEFT: 'left'>
        """
        spelling = _plain(how) if isinstance(how, str) else how
        for kind in cls:
            if spelling in map(_plain, (kind.value, *_OTHER_SPELLINGS.get(kind, ()))):
                return kind
        if spelling in ("cross", "crossjoin"):
            raise InputError(
                f"a {how!r} join has no condition, and this is for joins that have one; "
                "write the condition and take an inner join, or make all pairs with your engine's own cross join"
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
"""As Spark has them; underscores may be left out."""


def spellings() -> str:
    """All join types with their other names, for messages and help."""
    others = {kind: ", ".join(_OTHER_SPELLINGS.get(kind, ())) for kind in JoinType}
    return ", ".join(f"{kind.value} ({others[kind]})" if others[kind] else kind.value for kind in JoinType)


def _plain(spelling: str) -> str:
    return spelling.lower().replace("_", "").replace(" ", "")
