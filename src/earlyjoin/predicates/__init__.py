"""Join conditions: what users write, what algorithms may do with it, and how keys are encoded and compared."""

from earlyjoin.predicates.banding import Band, BoundBand, band
from earlyjoin.predicates.base import LEFT, RIGHT, BoundPredicate, Capability, Predicate
from earlyjoin.predicates.comparison import (
    BoundComparison,
    Comparison,
    greater,
    greater_equal,
    less,
    less_equal,
    not_equal,
)
from earlyjoin.predicates.conjunction import BoundConjunction, Condition, Conjunction, bind
from earlyjoin.predicates.disjunction import Disjunction
from earlyjoin.predicates.distance import BoundNear, Near, near
from earlyjoin.predicates.encoding.keys import Bytes, Keys
from earlyjoin.predicates.equality import BoundEqual, Equal, equal
from earlyjoin.predicates.filters import Filter
from earlyjoin.predicates.intervals import BoundOverlaps, Overlaps, overlaps
from earlyjoin.predicates.one_sided import OneSided
from earlyjoin.predicates.rectangles import BoundIntersects, Intersects, intersects
from earlyjoin.predicates.written.durations import parse_duration
from earlyjoin.predicates.written.where_text import parse_where, where

__all__ = [
    "LEFT",
    "RIGHT",
    "Band",
    "BoundBand",
    "BoundComparison",
    "BoundConjunction",
    "BoundEqual",
    "BoundIntersects",
    "BoundNear",
    "BoundOverlaps",
    "BoundPredicate",
    "Bytes",
    "Capability",
    "Comparison",
    "Condition",
    "Conjunction",
    "Disjunction",
    "Equal",
    "Filter",
    "Intersects",
    "Keys",
    "Near",
    "OneSided",
    "Overlaps",
    "Predicate",
    "band",
    "bind",
    "equal",
    "greater",
    "greater_equal",
    "intersects",
    "less",
    "less_equal",
    "near",
    "not_equal",
    "overlaps",
    "parse_duration",
    "parse_where",
    "where",
]
