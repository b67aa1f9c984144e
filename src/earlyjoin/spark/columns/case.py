"""Column names as Spark takes them: unless a session says otherwise, ``K`` and ``k`` are one column.

Conditions are rewritten to the names that the columns really have, so that everything behind finds them as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from earlyjoin.errors import InputError
from earlyjoin.predicates.base import Predicate
from earlyjoin.predicates.conjunction import Condition, Conjunction, Residue
from earlyjoin.predicates.disjunction import Disjunction
from earlyjoin.predicates.encoding.columns import SIDES
from earlyjoin.predicates.equality import Equal
from earlyjoin.predicates.one_sided import OneSided

_SETTING = "spark.sql.caseSensitive"


def ignores_case(session: Any) -> bool:
    """Does this session take names that differ in case only for the same?"""
    return str(session.conf.get(_SETTING, "false")).lower() != "true"


def in_real_case(condition: Condition, schemas: tuple[pa.Schema, pa.Schema]) -> Conjunction:
    """The condition with the names that the columns of both inputs have; unknown names stay, to be refused later."""
    whole = Conjunction.of(condition)
    return replace(
        whole,
        predicates=tuple(_renamed(predicate, schemas) for predicate in whole.predicates),
        filters=tuple(_renamed_residue(one, schemas) for one in whole.filters),
    )


def _renamed_residue(condition: Residue, schemas: tuple[pa.Schema, pa.Schema]) -> Residue:
    if isinstance(condition, Disjunction):
        return Disjunction(tuple(in_real_case(one, schemas) for one in condition.alternatives))
    if not isinstance(condition, OneSided):
        return condition
    side = condition.side
    if side is None:
        having = [s for s, one in enumerate(schemas) if condition.column.lower() in map(str.lower, one.names)]
        if len(having) != 1:
            return condition  # refused later, with what to write
        side = having[0]
    other = None if condition.other is None else _real_name(condition.other, schemas[side], side)
    return replace(condition, side=side, column=_real_name(condition.column, schemas[side], side), other=other)


def _renamed(predicate: Predicate, schemas: tuple[pa.Schema, pa.Schema]) -> Predicate:
    # All predicates are data classes whose ``left`` and ``right`` are a name or several.
    given: Any = predicate
    renamed: Predicate
    left, right = (_real(names, schemas[side], side) for side, names in enumerate((given.left, given.right)))
    if isinstance(given, Equal):
        real = dict(zip(given.left, left, strict=True))
        renamed = replace(given, left=left, right=right, shared=tuple(real[name] for name in given.shared))
    else:
        renamed = replace(given, left=left, right=right)
    return renamed


def _real(names: Any, schema: pa.Schema, side: int) -> Any:
    if isinstance(names, str):
        return _real_name(names, schema, side)
    return tuple(_real_name(name, schema, side) for name in names)


def _real_name(name: str, schema: pa.Schema, side: int) -> str:
    found = [column for column in schema.names if column.lower() == name.lower()]
    if len(set(found)) > 1:
        raise InputError(
            f"column {name!r} is ambiguous: the {SIDES[side]} input has {', '.join(map(repr, found))}, and Spark takes "
            f"no notice of case ({_SETTING} is false); rename one of them"
        )
    return found[0] if found else name
