"""From the directory of a paused query to a query that goes on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from earlyjoin.algorithms.aggregates import aggregates_from_values
from earlyjoin.errors import InputError, SnapshotError
from earlyjoin.local.options import JoinOptions
from earlyjoin.local.pausing import how_to_reopen
from earlyjoin.local.query import LocalQuery
from earlyjoin.local.sources import open_source
from earlyjoin.local.sources.base import Source
from earlyjoin.local.sources.watching import compare, compare_lists, compare_moved
from earlyjoin.predicates.written import saved
from earlyjoin.state.budget import MemoryLimit
from earlyjoin.state.clock import Clock
from earlyjoin.state.snapshot import Snapshot


def resume(
    directory: str | os.PathLike[str],
    inputs: Mapping[str, Any] | None = None,
    *,
    spill_directory: str | os.PathLike[str] | None = None,
    clock: Clock | None = None,
) -> LocalQuery:
    """Go on with a paused query. Files are opened again by themselves; other inputs must be given, by name.

    Data in memory is given as it was. ``spill_directory`` is where to spill from now on; the old place by default.
    """
    snapshot = Snapshot.load(directory)
    values = snapshot.values
    names, given = values["names"], {name: data for name, data in (inputs or {}).items() if data is not None}
    unknown = [name for name in given if name not in names]
    if unknown:
        raise InputError(f"the paused query has no input {unknown[0]!r}; its inputs are {', '.join(names)}")
    sources = [_reopened(snapshot, side, name, given.get(name)) for side, name in enumerate(names)]
    options = dict(values["options"])
    options["memory"] = MemoryLimit(**options["memory"])
    options["aggregates"] = aggregates_from_values(options["aggregates"])
    options["suffixes"] = tuple(options["suffixes"])
    if spill_directory is not None:
        options["spill_directory"] = spill_directory
    query = LocalQuery(sources, saved.from_values(values["condition"]), JoinOptions(**options), clock=clock)
    query.restore(snapshot)
    return query


def _reopened(snapshot: Snapshot, side: int, name: str, given: Any | None) -> Source:
    saved = snapshot.values["files"][side]
    if given is not None:
        source = open_source(given, name=name)
        if saved is not None and source.files is not None:
            compare_moved(saved, source.files, name)
        return source
    reopening = how_to_reopen(snapshot, side)
    if reopening is None:
        raise SnapshotError(f"the {name} input was not a file: pass it again to resume")
    compare(saved, name)
    source = open_source(**reopening)
    assert source.files is not None
    compare_lists(saved, source.files, name)
    return source
