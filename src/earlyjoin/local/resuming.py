"""From the directory of a paused query to a query that goes on."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from earlyjoin.errors import SnapshotError
from earlyjoin.local.options import JoinOptions
from earlyjoin.local.query import Query
from earlyjoin.local.sources import open_source
from earlyjoin.local.sources.base import BatchRows, Source
from earlyjoin.predicates import saved
from earlyjoin.state.budget import MemoryLimit
from earlyjoin.state.clock import Clock
from earlyjoin.state.snapshot import Snapshot


def resume(
    directory: str | os.PathLike[str], inputs: Sequence[Any | None] = (None, None), *, clock: Clock | None = None
) -> Query:
    """Go on with a paused query. Files are opened again by themselves; other inputs must be given.

    Data in memory is given as it was; of an iterator, what it has not given out yet.
    """
    snapshot = Snapshot.load(directory)
    values = snapshot.values
    sources = [_reopened(snapshot, side, given) for side, given in enumerate(inputs)]
    options = dict(values["options"])
    options["memory"] = MemoryLimit(**options["memory"])
    options["suffixes"] = tuple(options["suffixes"])
    query = Query(sources, saved.from_values(values["condition"]), JoinOptions(**options), clock=clock)
    query.restore(snapshot)
    return query


def _reopened(snapshot: Snapshot, side: int, given: Any | None) -> Source:
    name = ("left", "right")[side]
    if given is None:
        reopening = snapshot.values["sources"][side]
        if reopening is None:
            raise SnapshotError(f"the {name} input was not a file: pass it again to resume")
        return open_source(**reopening)
    source = open_source(given, name=name)
    untaken = snapshot.tables[f"untaken-{side}"]
    return source if source.replayable else _Continued(untaken, source)


class _Continued(Source):
    """Rows that were read before a pause and not joined, then the rest of an input that can be read once."""

    live = True
    replayable = False

    def __init__(self, before: pa.Table, rest: Source) -> None:
        self._before = before
        self._rest = rest
        self.name = rest.name
        self.schema = rest.schema

    def batches(self, size: BatchRows, start_row: int = 0) -> Iterator[pa.RecordBatch]:
        yield from self._before.to_batches(max_chunksize=size.most)
        yield from self._rest.batches(size, start_row)
