"""Every kind of condition: as users write it, as plain Python over two rows, and data that exercises it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

import earlyjoin as ej
from earlyjoin.predicates.conjunction import Condition

Row = dict[str, Any]
PAYLOAD = [pa.field("id", pa.int64()), pa.field("pad", pa.string())]


@dataclass(frozen=True)
class Kind:
    """One kind of condition."""

    name: str
    condition: Condition
    holds: Callable[[Row, Row], bool]
    columns: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(name, type_) for name, (type_, _) in self.columns.items()] + PAYLOAD)


def same(a: Any, b: Any) -> bool:
    """SQL equality with Spark's NaN."""
    if a is None or b is None:
        return False
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b):
        return True
    return bool(a == b)


def no_null(*values: Any) -> bool:
    return all(value is not None for value in values)


# Few values, so that keys repeat and one of them is often hot.
small = st.none() | st.sampled_from([0, 0, 0, 0, 1, 2, 3, -7])
words = st.none() | st.sampled_from(["", "a", "a", "a", "b", "longer than twelve bytes"])
floats = st.none() | st.sampled_from([0.0, -0.0, 0.5, 1.0, math.nan, math.inf, -3.25])
finite = st.none() | st.sampled_from([0.0, 0.5, 1.0, 1.5, -3.25])


def overlap(a: Row, b: Row, start: str, end: str) -> bool:
    if not no_null(a[start], a[end], b[start], b[end]) or a[start] > a[end] or b[start] > b[end]:
        return False
    return bool(a[start] <= b[end] and b[start] <= a[end])


def near(a: Row, b: Row) -> bool:
    return no_null(a["f"], a["g"], b["f"], b["g"]) and (a["f"] - b["f"]) ** 2 + (a["g"] - b["g"]) ** 2 <= 1.0


INT = {"k": (pa.int64(), small)}
KINDS = [
    Kind("equal", ej.equal("k", "k"), lambda a, b: same(a["k"], b["k"]), INT),
    Kind("equal_shared", ej.equal("k"), lambda a, b: same(a["k"], b["k"]), INT),
    Kind("equal_string", ej.equal("s", "s"), lambda a, b: same(a["s"], b["s"]), {"s": (pa.string(), words)}),
    Kind("equal_float", ej.equal("f", "f"), lambda a, b: same(a["f"], b["f"]), {"f": (pa.float64(), floats)}),
    Kind(
        "equal_composite",
        ej.equal("k", "k") & ej.equal("s", "s"),
        lambda a, b: same(a["k"], b["k"]) and same(a["s"], b["s"]),
        INT | {"s": (pa.string_view(), words)},
    ),
    Kind(
        "equal_null_safe",
        ej.equal("k", "k", null_safe=True),
        lambda a, b: a["k"] == b["k"],
        INT,
    ),
    Kind(
        "equal_and_band",
        ej.equal("k", "k") & ej.band("t", "t", eps=1),
        lambda a, b: same(a["k"], b["k"]) and no_null(a["t"], b["t"]) and abs(a["t"] - b["t"]) <= 1,
        INT | {"t": (pa.int32(), small)},
    ),
    Kind(
        "equal_and_where",
        ej.equal("k", "k") & ej.where(pc.field("id") < pc.field("id_right")),
        lambda a, b: same(a["k"], b["k"]) and a["id"] < b["id"],
        INT,
    ),
    Kind(
        "equal_and_or",
        ej.equal("k", "k") & (ej.less("t", "t") | ej.equal("s", "s") & ej.where("left.t > 0")),
        lambda a, b: (
            same(a["k"], b["k"])
            and (
                (no_null(a["t"], b["t"]) and a["t"] < b["t"])
                or (same(a["s"], b["s"]) and a["t"] is not None and a["t"] > 0)
            )
        ),
        INT | {"t": (pa.int32(), small), "s": (pa.string(), words)},
    ),
    Kind("band", ej.band("k", eps=1), lambda a, b: no_null(a["k"], b["k"]) and abs(a["k"] - b["k"]) <= 1, INT),
    Kind("less", ej.less("k"), lambda a, b: no_null(a["k"], b["k"]) and a["k"] < b["k"], INT),
    Kind("greater_equal", ej.greater_equal("k"), lambda a, b: no_null(a["k"], b["k"]) and a["k"] >= b["k"], INT),
    Kind("not_equal", ej.not_equal("k"), lambda a, b: no_null(a["k"], b["k"]) and a["k"] != b["k"], INT),
    Kind(
        "overlaps",
        ej.overlaps(("k", "t")),
        lambda a, b: overlap(a, b, "k", "t"),
        INT | {"t": (pa.int64(), small)},
    ),
    Kind(
        "intersects",
        ej.intersects(("k", "t", "u", "v")),
        lambda a, b: overlap(a, b, "k", "u") and overlap(a, b, "t", "v"),
        {name: (pa.int64(), small) for name in ("k", "t", "u", "v")},
    ),
    Kind("near", ej.near(["f", "g"], eps=1.0), near, {name: (pa.float64(), finite) for name in ("f", "g")}),
    Kind(
        "where",
        ej.where(pc.field("k") + pc.field("k_right") == 1),  # type: ignore[arg-type]
        lambda a, b: no_null(a["k"], b["k"]) and a["k"] + b["k"] == 1,
        INT,
    ),
]
