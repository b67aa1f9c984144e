"""Data that is used up by reading: nobody may read it twice, neither two sides of one query nor two queries."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Sequence

from earlyjoin.errors import InputError
from earlyjoin.local.sources.base import Source
from earlyjoin.query.query import Query

_ADVICE = "read it into a table first (pyarrow.table(...), or read_all() of a reader), or open it once for each use"

_taken: dict[int, weakref.ref[object]] = {}
"""Objects that a source has begun to read, by identity: many of them cannot be hashed."""
_lock = threading.Lock()


def refuse_shared(sources: Sequence[Source]) -> None:
    """Refuse inputs of one query that would take the rows from each other, and those that an earlier one has begun."""
    names = _names(sources)
    for number, source in enumerate(sources):
        origin = source.read_once
        if origin is None:
            continue
        for before, other in enumerate(sources[:number]):
            if other.read_once is origin:
                raise InputError(
                    f"inputs {names[before]!r} and {names[number]!r} are the same {_kind(origin)}, which can be "
                    f"read only once; {_ADVICE}"
                )
        if source.used_up():
            raise already_read(source.name, origin)


def _names(sources: Sequence[Source]) -> list[str]:
    """What the inputs are called; those that were opened beforehand may all have the same name."""
    names = [source.name for source in sources]
    if len(set(names)) == len(names):
        return names
    return ["left", "right"] if len(names) == 2 else [str(number) for number in range(1, len(names) + 1)]


def already_read(name: str, origin: object) -> InputError:
    """The error for data that somebody else has begun to read."""
    return InputError(
        f"input {name!r}: another query has already read from this {_kind(origin)}, which can be read only once; "
        f"{_ADVICE}"
    )


def is_taken(origin: object) -> bool:
    """Has a source begun to read this object?"""
    with _lock:
        return _known(origin)


def take(origin: object) -> bool:
    """Note that it is being read from now on; False when somebody has begun before."""
    with _lock:
        if _known(origin):
            return False
        # Where no weak reference can be had, nobody is told when it goes and its identity is free: it goes unnoticed.
        with contextlib.suppress(TypeError):
            _taken[id(origin)] = weakref.ref(origin, _forget(id(origin)))
        return True


def _known(origin: object) -> bool:
    reference = _taken.get(id(origin))
    return reference is not None and reference() is origin


def _forget(identity: int) -> Callable[[weakref.ref[object]], None]:
    def forget(reference: weakref.ref[object]) -> None:
        # Without the lock, which the current thread may hold; another object may have the identity by now.
        if _taken.get(identity) is reference:
            _taken.pop(identity, None)

    return forget


def _kind(origin: object) -> str:
    """What the user gave; a source that was opened by hand counts as what it is."""
    if isinstance(origin, Query):
        return "query"
    return "input" if isinstance(origin, Source) else type(origin).__name__
