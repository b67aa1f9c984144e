"""Random conditions: what earlyjoin is asked, and the same in SQL over plain columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

import earlyjoin as ej
from earlyjoin.predicates.banding import Band
from earlyjoin.predicates.equality import Equal
from earlyjoin.report.fuzz.columns import FAMILIES, Rng, key_pair

ORDERED = tuple(FAMILIES)
MEASURED = ("integer", "float", "decimal", "date", "timestamp", "instant", "time", "duration")
_FITTING = 0.95
"""How often types that are refused for their width are drawn again."""
_NANOSECONDS = {"date": 86_400 * 10**9, "timestamp": 3600 * 10**9, "instant": 3600 * 10**9}


@dataclass(slots=True)
class DrawnCondition:
    """A condition in both languages, and the key columns that it compares."""

    keys: list[tuple[str, str, pa.DataType, pa.DataType, bool]] = field(default_factory=list)
    """Name on the left, name on the right, types, and whether it is to be the end behind the key before it."""
    parts: list[Any] = field(default_factory=list)
    where: list[str] = field(default_factory=list)
    sql: list[str] = field(default_factory=list)
    equality: bool = False
    """Is there an equality, so that many rows are joined soon?"""
    equal: list[tuple[str, str]] = field(default_factory=list)
    """Columns that are compared for equality."""
    shared: set[str] = field(default_factory=set)
    """Names that both inputs have, and the output has once."""
    plain: bool = False
    """Are there only types that text files carry?"""

    def key(self, rng: Rng, families: tuple[str, ...] = ORDERED, *, measured: bool = False) -> tuple[str, str, str]:
        """Another pair of key columns: two names and the family; ``measured`` ones mostly fit 64 bits, as they must."""
        left, right, family = key_pair(rng, families, plain=self.plain)
        while measured and _too_wide(left, right) and rng.random() < _FITTING:
            left, right, family = key_pair(rng, families, plain=self.plain)
        return (*self._named(left, right, False), family)

    def alike(self, types: tuple[pa.DataType, pa.DataType], *, behind: bool) -> tuple[str, str]:
        """Another pair of columns with types that are given."""
        return self._named(*types, behind)

    def _named(self, left: pa.DataType, right: pa.DataType, behind: bool) -> tuple[str, str]:
        number = len(self.keys)
        names = f"lk{number}", f"rk{number}"
        self.keys.append((*names, left, right, behind))
        return names

    @property
    def sortable(self) -> bool:
        """Can the result come out in the order of the key: an equality of one number or time, or a band?"""
        if len(self.parts) != 1 or len(self.keys) != 1:
            return False
        numbers = all(pt.is_integer(type_) or pt.is_temporal(type_) for type_ in self.keys[0][2:4])
        return isinstance(self.parts[0], Band) or (isinstance(self.parts[0], Equal) and numbers)

    @property
    def on(self) -> Any:
        """All parts as one condition, or None."""
        whole = None
        for part in self.parts:
            whole = part if whole is None else whole & part
        return whole

    @property
    def text(self) -> str:
        """The condition in SQL."""
        return " AND ".join(f"({part})" for part in self.sql) if self.sql else "true"


def _too_wide(*types: pa.DataType) -> bool:
    """Do they meet as numbers of more than 64 bits?"""
    wide = any(pt.is_decimal(type_) and type_.precision > 18 for type_ in types)
    unsigned = [type_ == pa.uint64() for type_ in types]
    return wide or (any(unsigned) and not all(unsigned) and not any(pt.is_floating(type_) for type_ in types))


def draw_condition(rng: Rng, *, plain: bool) -> DrawnCondition:
    """An equality most of the time, then one to three more parts."""
    drawn = DrawnCondition(plain=plain)
    first = rng.choice(list(_PARTS), p=[0.45, 0.15, 0.1, 0.03, 0.08, 0.06, 0.07, 0.06])
    _PARTS[str(first)](drawn, rng)
    for _ in range(int(rng.choice([0, 1, 2], p=[0.7, 0.25, 0.05]))):
        _PARTS[str(rng.choice(list(_PARTS)))](drawn, rng)
    return drawn


def _equality(drawn: DrawnCondition, rng: Rng) -> None:
    columns = int(rng.choice([1, 2, 3], p=[0.7, 0.2, 0.1]))
    safe = rng.random() < 0.15
    pairs = [drawn.key(rng)[:2] for _ in range(columns)]
    sign = "IS NOT DISTINCT FROM" if safe else "="
    drawn.sql += [f"l.{left} {sign} r.{right}" for left, right in pairs]
    drawn.equality = True
    alone = not drawn.parts and columns == 1 and drawn.keys[-1][2] == drawn.keys[-1][3]
    if alone and rng.random() < 0.5:
        drawn.keys[-1] = ("k", "k", *drawn.keys[-1][2:])
        drawn.sql[-1] = f"l.k {sign} r.k"
        drawn.shared.add("k")
        drawn.equal.append(("k", "k"))
        drawn.parts.append(ej.equal("k", null_safe=safe))
        return
    drawn.equal += pairs
    lefts, rights = zip(*pairs, strict=True)
    drawn.parts.append(ej.equal(list(lefts), list(rights), null_safe=safe))


def _band(drawn: DrawnCondition, rng: Rng) -> None:
    left, right, family = drawn.key(rng, MEASURED, measured=True)
    number = int(rng.integers(0, 4))
    if family in ("integer", "decimal"):
        drawn.sql.append(f"abs(l.{left}::DECIMAL(38, 4) - r.{right}::DECIMAL(38, 4)) <= {number}")
        eps: Any = number
    elif family == "float":
        eps = number * 0.25
        drawn.sql.append(
            f"isfinite(l.{left}::DOUBLE) AND isfinite(r.{right}::DOUBLE) "
            f"AND abs(l.{left}::DOUBLE - r.{right}::DOUBLE) <= {eps}"
        )
    else:
        unit = _NANOSECONDS.get(family, 60 * 10**9)
        eps = f"{number * unit} ns"
        drawn.sql.append(f"abs(l.{left} - r.{right}) <= {number * unit}")
    drawn.parts.append(ej.band(left, right, eps=eps))


_COMPARISONS: dict[str, Callable[[str, str], Any]] = {
    "<": ej.less,
    "<=": ej.less_equal,
    ">": ej.greater,
    ">=": ej.greater_equal,
}


def _inequality(drawn: DrawnCondition, rng: Rng) -> None:
    left, right, _ = drawn.key(rng)
    sign = str(rng.choice(list(_COMPARISONS)))
    drawn.parts.append(_COMPARISONS[sign](left, right))
    drawn.sql.append(f"l.{left} {sign} r.{right}")


def _difference(drawn: DrawnCondition, rng: Rng) -> None:
    left, right, _ = drawn.key(rng)
    drawn.parts.append(ej.not_equal(left, right))
    drawn.sql.append(f"l.{left} <> r.{right}")


def _overlap(drawn: DrawnCondition, rng: Rng) -> None:
    starts = drawn.key(rng, ("integer", "float", "date", "timestamp", "duration"), measured=True)[:2]
    ends = drawn.alike(drawn.keys[-1][2:4], behind=True)
    closed = bool(rng.random() < 0.6)
    drawn.parts.append(ej.overlaps((starts[0], ends[0]), (starts[1], ends[1]), closed=closed))
    drawn.sql.append(_meeting(starts, ends, "<=" if closed else "<"))


def _meeting(starts: tuple[str, str], ends: tuple[str, str], sign: str) -> str:
    """Intervals that meet; DuckDB holds NaN for the largest number, and no NaN bounds anything."""
    proper = [f"{side}.{s} <= {side}.{e}" for side, s, e in zip("lr", starts, ends, strict=True)]
    real = [f"l.{ends[0]}::VARCHAR <> 'nan'", f"r.{ends[1]}::VARCHAR <> 'nan'"]
    meet = [f"l.{starts[0]} {sign} r.{ends[1]}", f"r.{starts[1]} {sign} l.{ends[0]}"]
    return " AND ".join(proper + real + meet)


def _rectangles(drawn: DrawnCondition, rng: Rng) -> None:
    corners, sql = [], []
    for _ in range(2):
        starts = drawn.key(rng, ("integer", "float"), measured=True)[:2]
        ends = drawn.alike(drawn.keys[-1][2:4], behind=True)
        corners.append((starts, ends))
        sql.append(_meeting(starts, ends, "<="))
    (x1, x2), (y1, y2) = corners
    drawn.parts.append(ej.intersects((x1[0], y1[0], x2[0], y2[0]), (x1[1], y1[1], x2[1], y2[1])))
    drawn.sql.append(" AND ".join(sql))


def _near(drawn: DrawnCondition, rng: Rng) -> None:
    pairs = [drawn.key(rng, ("integer", "float"))[:2] for _ in range(int(rng.integers(1, 4)))]
    eps = float(rng.integers(0, 5)) * 0.5
    finite = [f"isfinite(l.{a}::DOUBLE) AND isfinite(r.{b}::DOUBLE)" for a, b in pairs]
    steps = [f"(l.{a}::DOUBLE - r.{b}::DOUBLE) * (l.{a}::DOUBLE - r.{b}::DOUBLE)" for a, b in pairs]
    lefts, rights = zip(*pairs, strict=True)
    drawn.parts.append(ej.near(list(lefts), list(rights), eps=eps))
    drawn.sql.append(" AND ".join([*finite, f"{' + '.join(steps)} <= {eps * eps}"]))


def _text(drawn: DrawnCondition, rng: Rng) -> None:
    """``where=``: alternatives, and constants beside a column."""
    ours, theirs = [], []
    for _ in range(int(rng.integers(1, 4))):
        left, right, _ = drawn.key(rng, ("integer", "float"))
        constant = int(rng.integers(-5, 20))
        sign = str(rng.choice(["<", "<=", "=", "<>", ">", ">="]))
        shape = rng.integers(3)
        ours.append([f"{left} {sign} {right}", f"left.{left} {sign} {constant}", f"{constant} {sign} {right}"][shape])
        theirs.append(
            [f"l.{left} {sign} r.{right}", f"l.{left} {sign} {constant}", f"{constant} {sign} r.{right}"][shape]
        )
    words = [str(rng.choice(["and", "or"])) for _ in ours[1:]] + [""]
    drawn.where.append(" ".join(f"{part} {word}" for part, word in zip(ours, words, strict=True)).strip())
    drawn.sql.append(" ".join(f"{part} {word}" for part, word in zip(theirs, words, strict=True)).strip())


_PARTS: dict[str, Callable[[DrawnCondition, Rng], None]] = {
    "equality": _equality,
    "band": _band,
    "inequality": _inequality,
    "difference": _difference,
    "overlap": _overlap,
    "rectangles": _rectangles,
    "near": _near,
    "text": _text,
}
