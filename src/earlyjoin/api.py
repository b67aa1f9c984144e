"""The Python interface: ``join``, ``multi_join``, ``resume``, ``source`` and ``algorithm_names``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from earlyjoin.algorithms import registry
from earlyjoin.algorithms.aggregates import AggregateOf
from earlyjoin.algorithms.matching.join_types import is_cross
from earlyjoin.algorithms.options import GivenOptions
from earlyjoin.algorithms.protocol import DEFAULT_OUTPUT_ROWS
from earlyjoin.errors import InputError
from earlyjoin.local.estimating.running import EstimatorName
from earlyjoin.local.options import Driving, JoinOptions
from earlyjoin.local.query import LocalQuery
from earlyjoin.local.resuming import resume as _resume
from earlyjoin.local.sources import Source, open_source
from earlyjoin.predicates.conjunction import Condition
from earlyjoin.predicates.encoding.columns import Names
from earlyjoin.predicates.multiway import MultiOn, multi_equal
from earlyjoin.predicates.written.arguments import On, Where, condition_from
from earlyjoin.query.query import Query
from earlyjoin.spark.session import is_dataframe
from earlyjoin.state.budget import MemoryLimit
from earlyjoin.state.clock import Clock

Engine = Literal["auto", "local", "spark"]
_WAIT_MS = 25.0


def join(
    left: Any,
    right: Any,
    on: On | None = None,
    *,
    left_on: Names | None = None,
    right_on: Names | None = None,
    where: Where | Sequence[Where] | None = None,
    how: str = "inner",
    algorithm: str = "auto",
    options: GivenOptions = None,
    memory: str | int | MemoryLimit | None = None,
    suffixes: tuple[str, str] = ("", "_right"),
    reading: str = "auto",
    driving: Driving = "auto",
    wait_ms: float = _WAIT_MS,
    batch_rows: int = DEFAULT_OUTPUT_ROWS,
    spill_directory: str | os.PathLike[str] | None = None,
    seed: int = 0,
    aggregates: Mapping[str, AggregateOf] | None = None,
    estimator: EstimatorName = "honest",
    clock: Clock | None = None,
    engine: Engine = "auto",
    master: str | None = None,
) -> Query:
    """Join two inputs while they arrive.

    ``left`` and ``right`` are paths (files, directories, globs of Parquet, CSV, Arrow IPC or JSON lines), Arrow,
    pandas or Polars tables, or iterators of batches; :func:`source` gives them options. ``on`` is a column name, a list
    of names or of (left, right) pairs, or a predicate such as ``equal("a") & band("t", eps=5)``. Columns of different
    names may also be given as ``left_on="id", right_on="order_id"``, or as two lists. Nothing is read before the result
    is asked for.

    ``where`` says more about the pairs that match: a text such as ``"left.price > 10"``, ``"a < b or kind = 'x'"``, an
    Arrow expression over the joined row, or a list of these, all of which must hold (see :func:`earlyjoin.where`). It
    is part of the condition, as in SQL's ``ON``: rows that an outer join keeps are there without a match.

    ``memory`` bounds everything the join holds: "64MB", "300000rows", bytes, or None for a quarter of the machine's.
    ``how`` is inner, left, right, full, semi or anti, in any of the spellings of Spark, pandas and Polars
    ("left_outer", "OUTER"), or cross: every row with every row, without a condition.
    ``algorithm`` is "auto" or a name from ``earlyjoin.algorithm_names()``. ``options`` are that algorithm's own, by
    name: ``{"fan_in": 4}``; ``earlyjoin algorithms`` lists them.

    ``aggregates`` are sums, means and counts over the result, such as ``{"revenue": earlyjoin.sum("price")}``:
    ``query.estimates`` has them with an interval while the join runs, and exactly at its end. ``estimator="paper"``
    gives the intervals of the PMJ paper instead of the honest ones.

    Spark DataFrames are joined on Spark, as are paths and names of tables with ``engine="spark"`` (``master`` says
    where a new session runs). The result has the same face and ``to_df()``; options of the local engine are refused.
    Names of columns are taken as Spark takes them, by default without regard to case: ``on="K"`` finds ``k``, and
    ``id`` clashes with ``ID``, so that it gets a suffix.

    >>> import pyarrow as pa
    >>> orders = pa.table({"id": [1, 2], "item": ["pen", "ink"]})
    >>> prices = pa.table({"item": ["ink", "pen"], "price": [5, 2]})
    >>> join(orders, prices, on="item").to_arrow().sort_by("id").to_pydict()
    {'id': [1, 2], 'item': ['pen', 'ink'], 'price': [2, 5]}
    """
    condition = condition_from(on, left_on, right_on, where, cross=is_cross(how))
    if _on_spark(engine, left, right):
        _refuse_local_options(
            algorithm=(algorithm, "auto"),
            reading=(reading, "auto"),
            driving=(driving, "auto"),
            spill_directory=(spill_directory, None),
            options=(options, None),
            aggregates=(aggregates, None),
            estimator=(estimator, "honest"),
            wait_ms=(wait_ms, _WAIT_MS),
            batch_rows=(batch_rows, DEFAULT_OUTPUT_ROWS),
        )
        return _join_on_spark(left, right, condition, how, memory, suffixes, seed, clock, master)
    if master is not None:
        raise InputError(f"master={master!r} is for Spark; add engine='spark', or leave it out")
    sources = [open_source(left, name="left"), open_source(right, name="right")]
    how_to_run = JoinOptions(
        how=how,
        algorithm=algorithm,
        memory=memory,
        suffixes=suffixes,
        reading=reading,
        driving=driving,
        wait_ms=wait_ms,
        batch_rows=batch_rows,
        spill_directory=spill_directory,
        seed=seed,
        aggregates={} if aggregates is None else aggregates,
        estimator=estimator,
        operator=options,
    )
    return LocalQuery(sources, condition, how_to_run, clock=clock)


def source(
    data: Any,
    *,
    format: str | None = None,
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    types: Mapping[str, object] | None = None,
) -> Source:
    """An input with options of its own, for ``join``, ``multi_join`` and ``resume``.

    ``format`` ("parquet", "csv", "arrow", "json") is for files and pipes whose name does not tell it; ``columns`` reads
    only these; ``delimiter`` is for CSV; ``types`` gives Arrow types, or their names, of columns in CSV and JSON lines.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "towns.csv"
    >>> _ = path.write_text("id;zip\\n1;01234\\n")
    >>> source(path, delimiter=";", types={"zip": "string"}).schema.names
    ['id', 'zip']
    """
    return open_source(data, name="input", format=format, columns=columns, delimiter=delimiter, types=types)


def multi_join(
    inputs: Mapping[str, Any],
    on: MultiOn,
    *,
    null_safe: bool = False,
    how: str = "inner",
    algorithm: str = "auto",
    options: GivenOptions = None,
    memory: str | int | MemoryLimit | None = None,
    reading: str = "auto",
    driving: Driving = "auto",
    wait_ms: float = _WAIT_MS,
    batch_rows: int = DEFAULT_OUTPUT_ROWS,
    spill_directory: str | os.PathLike[str] | None = None,
    seed: int = 0,
    clock: Clock | None = None,
) -> Query:
    """Join two or more inputs on the same attribute while they arrive, all at once: no two of them are joined first.

    ``inputs`` are by name whatever :func:`join` takes. ``on`` is a column that all of them have, or a list of such
    columns, of equalities "a.x = b.y" and of pairs ("a.x", "b.y"); each column must come to be equal to one column of
    every input. ``null_safe`` makes null equal null. It is an inner join; the other arguments are those of ``join``,
    ``reading`` with a number for each input ("2:1:1").

    The result has the columns of all inputs, input by input. A column named once for all inputs appears once. Any other
    name that several inputs have gets the name of the input behind it, in each of them: ``id_a``, ``id_b``.

    >>> import pyarrow as pa
    >>> people = pa.table({"id": [1, 2], "name": ["ann", "bob"]})
    >>> towns = pa.table({"id": [2, 1], "note": ["york", "ely"]})
    >>> pets = pa.table({"owner": [2, 2], "note": ["cat", "dog"]})
    >>> on = ["people.id = towns.id", "towns.id = pets.owner"]
    >>> joined = multi_join({"people": people, "towns": towns, "pets": pets}, on=on).to_arrow()
    >>> joined.select(["name", "note_towns", "note_pets"]).sort_by("note_pets").to_pylist()[0]
    {'name': 'bob', 'note_towns': 'york', 'note_pets': 'cat'}
    """
    names = _input_names(inputs)
    condition = multi_equal(names, on, null_safe=null_safe)
    how_to_run = JoinOptions(
        how=how,
        algorithm=algorithm,
        memory=memory,
        reading=reading,
        driving=driving,
        wait_ms=wait_ms,
        batch_rows=batch_rows,
        spill_directory=spill_directory,
        seed=seed,
        operator=options,
    )
    return LocalQuery([open_source(inputs[name], name=name) for name in names], condition, how_to_run, clock=clock)


def _input_names(inputs: Mapping[str, Any]) -> list[str]:
    if not isinstance(inputs, Mapping):
        raise InputError(f'inputs: give each input a name, as in {{"a": a, "b": b}}; got a {type(inputs).__name__}')
    if len(inputs) < 2:
        raise InputError(f"inputs: a join needs two inputs or more, got {len(inputs)}")
    for name in inputs:
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"inputs: {name!r} is not a name; use texts that are not empty")
    return list(inputs)


def resume(
    directory: str | os.PathLike[str],
    *,
    left: Any = None,
    right: Any = None,
    inputs: Mapping[str, Any] | None = None,
    spill_directory: str | os.PathLike[str] | None = None,
) -> Query:
    """Go on with a query that was paused into a directory.

    Inputs that were files are opened again where they were left; data in memory must be given as it was: ``left`` and
    ``right``, or for a ``multi_join`` the ``inputs`` by name.
    """
    given = {"left": left, "right": right} | dict(inputs or {})
    return _resume(directory, given, spill_directory=spill_directory)


def algorithm_names() -> list[str]:
    """The algorithms of the local engine, for ``algorithm=``.

    >>> "ehj" in algorithm_names()
    True
    """
    return registry.names()


def _on_spark(engine: str, left: Any, right: Any) -> bool:
    if engine not in ("auto", "local", "spark"):
        raise InputError(f"unknown engine {engine!r}; choose one of: auto, local, spark")
    frames = [is_dataframe(one) for one in (left, right)]
    if engine == "local" and any(frames):
        raise InputError("engine='local' cannot read Spark DataFrames; leave engine out, or pass df.toArrow()")
    return engine == "spark" or any(frames)


def _refuse_local_options(**given: tuple[object, object]) -> None:
    for name, (value, default) in given.items():
        if value != default:
            raise InputError(f"{name}={value!r} is for the local engine; Spark decides that itself: leave it out")


def _join_on_spark(
    left: Any,
    right: Any,
    condition: Condition,
    how: str,
    memory: str | int | MemoryLimit | None,
    suffixes: tuple[str, str],
    seed: int,
    clock: Clock | None,
    master: str | None,
) -> Query:
    from earlyjoin.spark.inputs import open_frame, session_for
    from earlyjoin.spark.options import SparkOptions
    from earlyjoin.spark.query import SparkQuery

    session = session_for((left, right), master)
    frames = [open_frame(one, session, side) for side, one in enumerate((left, right))]
    options = SparkOptions(how=how, memory=memory, suffixes=suffixes, seed=seed)
    return SparkQuery(frames[0], frames[1], condition, options, clock=clock)
