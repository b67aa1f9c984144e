"""Exactly once between the early phase and the bulk: the one place where the rule is written.

Every row has a *tag*, a bit mask. A bit stands for a rectangle of blocks that the early phase has joined; it is set in
the rows of the rectangle's left blocks and in those of its right blocks. So

    a pair (l, r) that matches was given out early  ⇔  l_tag & r_tag != 0

and almost all rows have tag 0. What the bulk gives out follows:

===========================  =========================================================================================
inner, left, right, full     the join of all rows, early pairs included (they decide who is unmatched), less the rows
                             with both sides present and ``l_tag & r_tag != 0``
semi                         left rows that have a partner and none with ``l_tag & r_tag != 0``: those went out early
anti                         left rows without a partner: the early phase gives nothing out, since only the whole other
                             side tells that a row stays alone
===========================  =========================================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from earlyjoin.spark.session import functions

LEFT_TAG, RIGHT_TAG = "l_tag", "r_tag"
NO_TAG = 0

Tags = npt.NDArray[np.int8]


def not_given_early() -> Any:
    """Of a joined row (null tag: that side is absent): a Column that holds where the bulk has to give it out."""
    f = functions()
    both = f.col(LEFT_TAG).bitwiseAND(f.col(RIGHT_TAG))
    return f.coalesce(both == f.lit(0), f.lit(True))


def given_early() -> Any:
    """Of a pair of rows: a Column that holds where the early phase gave it out."""
    f = functions()
    return f.col(LEFT_TAG).bitwiseAND(f.col(RIGHT_TAG)) != f.lit(0)


def fresh_pairs(left: Tags, right: Tags) -> npt.NDArray[np.bool_]:
    """The same for arrays: which of these pairs were not given out in a rectangle of their tags."""
    fresh: npt.NDArray[np.bool_] = (left & right) == 0
    return fresh


def fresh_semi(left: Tags, partners: Tags) -> npt.NDArray[np.bool_]:
    """Of left rows that matched, with the OR of the tags of all their partners: which did not go out early."""
    return fresh_pairs(left, partners)
