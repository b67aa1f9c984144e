"""Join types, and what a match means in each of them."""

from __future__ import annotations

from enum import StrEnum


class JoinType(StrEnum):
    """Which rows a join gives: SQL's meaning. Semi and anti give rows of side 0."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"

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
