"""What ``on=``, ``left_on=``, ``right_on=`` and ``where=`` mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, get_args

import pyarrow.compute as pc

from earlyjoin.errors import InputError
from earlyjoin.predicates.conjunction import ALWAYS, Condition, Conjunction
from earlyjoin.predicates.encoding.columns import Names, name_tuple
from earlyjoin.predicates.equality import equal
from earlyjoin.predicates.written import where_text

On = str | Condition | Sequence["str | tuple[str, str] | Condition"]
Where: TypeAlias = "str | pc.Expression | Condition"


def condition_from(
    on: On | None,
    left_on: Names | None,
    right_on: Names | None,
    where: Where | Sequence[Where] | None,
    *,
    cross: bool = False,
) -> Condition:
    """Everything that the arguments say about pairs that match; nothing need be said for a ``cross`` join."""
    conditions: list[Condition] = []
    if left_on is not None or right_on is not None:
        conditions.append(_sided(on, left_on, right_on))
    elif on is not None:
        conditions.append(condition_of(on))
    if where is not None:
        several = where if isinstance(where, Sequence) and not isinstance(where, str) else (where,)
        conditions += [_where(one) for one in several]
    if not conditions and not cross:
        raise InputError(
            "on: say what to join on: on='id', on=[('id', 'order_id')], left_on= and right_on=, or a condition such as "
            "band('t', eps=5); for every pair of rows, how='cross'"
        )
    return Conjunction.of(*conditions) if conditions else ALWAYS


def _sided(on: On | None, left_on: Names | None, right_on: Names | None) -> Condition:
    if on is not None:
        raise InputError(
            f"on={on!r} and left_on={left_on!r}, right_on={right_on!r} are two ways to say it: give either on, or both "
            "of the others; more conditions go into where"
        )
    if left_on is None or right_on is None:
        given, missing = ("left_on", "right_on") if right_on is None else ("right_on", "left_on")
        value = left_on if right_on is None else right_on
        raise InputError(
            f"{given}={value!r} needs {missing} as well; where the names are the same in both inputs, write "
            f"on={value!r}"
        )
    lefts, rights = name_tuple(left_on, "left_on"), name_tuple(right_on, "right_on")
    if len(lefts) != len(rights):
        raise InputError(
            f"left_on and right_on need equally many names, got {len(lefts)} ({', '.join(lefts)}) and {len(rights)} "
            f"({', '.join(rights)})"
        )
    return equal(lefts, rights)


def _where(condition: Where) -> Condition:
    return condition if isinstance(condition, get_args(Condition)) else where_text.where(condition)


def condition_of(on: On) -> Condition:
    """What ``on=`` means: a name, names, pairs of names, predicates, or a mixture."""
    if isinstance(on, str):
        return equal(on)
    if not isinstance(on, Sequence):
        return on
    conditions: list[Condition] = []
    for part in on:
        if isinstance(part, str):
            conditions.append(equal(part))
        elif isinstance(part, tuple) and len(part) == 2 and all(isinstance(name, str) for name in part):
            conditions.append(equal(part[0], part[1]))
        elif isinstance(part, tuple):
            raise InputError(f"on: a pair of column names is expected, got {part!r}")
        else:
            conditions.append(part)
    if not conditions:
        raise InputError("on: name at least one column or predicate")
    return conditions[0] if len(conditions) == 1 else Conjunction.of(*conditions)
