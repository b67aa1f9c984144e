"""Conditions as plain values that JSON can hold, and back: a paused query knows its condition in another process."""

from __future__ import annotations

import base64
import dataclasses
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from earlyjoin.errors import SnapshotError
from earlyjoin.predicates.banding import Band
from earlyjoin.predicates.base import Predicate
from earlyjoin.predicates.comparison import Comparison
from earlyjoin.predicates.conjunction import ALWAYS, Condition, Conjunction, Residue
from earlyjoin.predicates.disjunction import Disjunction
from earlyjoin.predicates.distance import Near
from earlyjoin.predicates.equality import Equal
from earlyjoin.predicates.filters import Filter
from earlyjoin.predicates.intervals import Overlaps
from earlyjoin.predicates.multiway import Attribute, MultiEqual
from earlyjoin.predicates.one_sided import OneSided
from earlyjoin.predicates.rectangles import Intersects

_KINDS: dict[str, type[Predicate]] = {
    kind.__name__: kind for kind in (Equal, Band, Comparison, Overlaps, Intersects, Near)
}


def to_values(condition: Condition | MultiEqual) -> dict[str, Any]:
    """Plain values for a condition."""
    if isinstance(condition, MultiEqual):
        return {"many": {field.name: _plain(getattr(condition, field.name)) for field in dataclasses.fields(condition)}}
    whole = Conjunction.of(condition)
    return {
        "predicates": [
            {"kind": type(p).__name__} | {f.name: _plain(getattr(p, f.name)) for f in dataclasses.fields(p)}  # type: ignore[arg-type]
            for p in whole.predicates
        ],
        "filters": [_saved_residue(filter_) for filter_ in whole.filters],
    }


def _saved_residue(condition: Residue) -> str | dict[str, Any]:
    if isinstance(condition, Filter):
        return expression_text(condition.expression)
    if isinstance(condition, OneSided):
        return {"one_sided": dataclasses.asdict(condition)}
    return {"any": [to_values(one) for one in condition.alternatives]}


def _residue(saved: str | dict[str, Any]) -> Condition:
    if isinstance(saved, str):
        return Filter(expression_from_text(saved))
    if "one_sided" in saved:
        return OneSided(**saved["one_sided"])
    return Disjunction.of(*(_conjunction(one) for one in saved["any"]))


def from_values(values: dict[str, Any]) -> Condition | MultiEqual:
    """The inverse of ``to_values``."""
    if "many" in values:
        fields = {name: _rich(value) for name, value in values["many"].items()}
        pairs = tuple((Attribute(*one), Attribute(*other)) for one, other in fields.pop("equalities"))
        return MultiEqual(equalities=pairs, **fields)
    return _conjunction(values)


def _conjunction(values: dict[str, Any]) -> Conjunction:
    predicates: list[Condition] = []
    for saved in values["predicates"]:
        fields = dict(saved)
        kind = _KINDS.get(fields.pop("kind"))
        if kind is None:
            raise SnapshotError(f"unknown kind of predicate {saved['kind']!r} in a saved query")
        predicates.append(kind(**{name: _rich(value) for name, value in fields.items()}))
    filters = [_residue(saved) for saved in values["filters"]]
    return Conjunction.of(ALWAYS, *predicates, *filters)


def expression_text(expression: pc.Expression) -> str:
    """Arrow's own serialised form, which keeps column names (Substrait has positions, wrong in a narrower row)."""
    _, (serialised,) = expression.__reduce__()
    return base64.b64encode(serialised).decode()


def expression_from_text(text: str) -> pc.Expression:
    """The inverse of ``expression_text``."""
    return pc.Expression._deserialize(pa.py_buffer(base64.b64decode(text)))


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, timedelta):
        return {"microseconds": value // timedelta(microseconds=1)}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    return value


def _rich(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_rich(item) for item in value)
    if isinstance(value, dict) and "microseconds" in value:
        return timedelta(microseconds=value["microseconds"])
    if isinstance(value, dict) and "decimal" in value:
        return Decimal(value["decimal"])
    return value
