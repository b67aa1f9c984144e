"""``earlyjoin join``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from earlyjoin.algorithms.options import parse_options
from earlyjoin.algorithms.output import DEFAULT_SUFFIXES
from earlyjoin.cli import live
from earlyjoin.cli.aggregates import aggregates_of
from earlyjoin.cli.arguments import EXIT_DONE, EXIT_INTERRUPTED
from earlyjoin.cli.conditions import condition_of, multi_condition_of, split
from earlyjoin.cli.engines import SparkDirectory, choose_engine, spark_query, writes_directory
from earlyjoin.cli.inputs import input_names, open_inputs
from earlyjoin.cli.interruption import Forced, Interruption
from earlyjoin.cli.outputs import Output, check_output, choose_output
from earlyjoin.cli.speaking import say, tell
from earlyjoin.errors import EarlyJoinError, InputError
from earlyjoin.local.options import JoinOptions
from earlyjoin.local.query import LocalQuery
from earlyjoin.local.sources import Source
from earlyjoin.predicates import parse_duration
from earlyjoin.query.life import State
from earlyjoin.query.query import Query
from earlyjoin.state.budget import format_bytes

if TYPE_CHECKING:
    from earlyjoin.cli.live import Line


def run(options: argparse.Namespace) -> int:
    """Join the inputs as the options say."""
    engine = choose_engine(options)
    if engine.name == "spark":
        query, directory = spark_query(options), writes_directory(options)
        inputs: Sequence[Source] = ()
    else:
        query, directory = _local_query(options), False
        inputs = query.sources
    if options.explain:
        say(f"{query.explain()}\n{'chosen':<10}{engine.name}: {engine.reason}")
        return EXIT_DONE
    if engine.said and not options.quiet and not options.json:
        tell(f"earlyjoin: {engine.name} engine: {engine.reason}")
    with query, Interruption(query) as interruption:
        output = SparkDirectory(query, options) if directory else choose_output(options, query.schema, inputs)
        try:
            complete = _execute(query, output, options, interruption)
            result = output.finish() if complete else output.keep_partial()
        except BaseException:
            output.abort()
            raise
    if options.json:
        say(json.dumps(query.summary()))
    if not complete:
        tell(f"earlyjoin: interrupted: {result}")
        return EXIT_INTERRUPTED
    if not options.quiet and not options.json:
        tell(_closing(query, result))
        for line in _aggregates(query):
            tell(line)
    return EXIT_DONE


def _local_query(options: argparse.Namespace) -> LocalQuery:
    if not options.explain:
        check_output(options)
    condition = multi_condition_of(options, input_names(options)) if options.more else condition_of(options)
    how = _join_options(options)
    sources = open_inputs(options)
    if not options.explain:
        check_output(options, sources)
    return LocalQuery(sources, condition, how)


def _join_options(options: argparse.Namespace) -> JoinOptions:
    if options.more and options.suffixes is not None:
        raise InputError("--suffixes is for two inputs; with more, names that clash get the name of their input")
    suffixes = DEFAULT_SUFFIXES if options.suffixes is None else _suffixes(options.suffixes)
    return JoinOptions(
        how=options.how,
        algorithm=options.algorithm,
        memory=options.memory,
        reading=options.reading,
        driving=options.driving,
        wait_ms=_milliseconds(options.wait),
        batch_rows=options.batch_rows,
        spill_directory=options.spill_dir,
        seed=options.seed,
        aggregates=aggregates_of(options.aggregate or ()),
        estimator=options.estimator,
        operator=parse_options(options.option),
        suffixes=suffixes,
    )


def _execute(query: Query, output: Output, options: argparse.Namespace, interruption: Interruption) -> bool:
    """Take every row to the output; False when it was interrupted before the last one."""
    if isinstance(output, SparkDirectory):
        return _write_directory(output, query, options, interruption)
    batches = query.limited(options.limit)
    with live.line_for(query, quiet=options.quiet) as line:
        try:
            while True:
                with interruption.may_force():
                    batch = next(batches, None)
                if batch is None:
                    break
                _give(output, batch, line, interruption)
        except Forced:
            return False
    return not interruption.asked or query.state is State.FINISHED or output.rows == options.limit


def _write_directory(
    output: SparkDirectory, query: Query, options: argparse.Namespace, interruption: Interruption
) -> bool:
    """Spark writes by itself; False when it was interrupted."""
    with live.line_for(query, quiet=options.quiet):
        try:
            with interruption.may_force():
                output.write_all()
        except (Forced, EarlyJoinError):
            if not interruption.asked:
                raise
            return False
    return True


def _give(output: Output, batch: object, line: Line, interruption: Interruption) -> None:
    if not output.on_standard_output:
        output.write(batch)
        return
    # The reader of a pipe may never read on: then an interruption must not wait for it.
    with line.hidden() if output.shows else nullcontext(), interruption.may_force():
        output.write(batch)


def _closing(query: Query, result: str) -> str:
    """What was done, in one line."""
    summary = query.summary()
    seconds, memory, spilled = summary["seconds"], summary["memory"], summary["spill"]["bytes_written"]
    parts = [f"{result} in {seconds['total']:.2f} s"]
    if seconds["first"] is not None:
        parts.append(f"the first after {seconds['first']:.2f} s")
    parts.append(f"algorithm {query.algorithm}")
    if memory["budget_bytes"] is None:
        parts.append(f"peak memory {memory['peak_rows']:,} of {memory['budget_rows']:,} rows")
    else:
        parts.append(f"peak memory {format_bytes(memory['peak_bytes'])} of {format_bytes(memory['budget_bytes'])}")
    if spilled:
        parts.append(f"spilled {format_bytes(spilled)}")
    return ", ".join(parts)


def _aggregates(query: Query) -> list[str]:
    """The aggregates, one a line."""
    return [f"{name}: {live.estimated(estimate)}" for name, estimate in query.estimates.items()]


def _suffixes(text: str) -> tuple[str, str]:
    parts = split(text, ",")
    if len(parts) != 2:
        raise InputError(f"--suffixes {text!r}: write two suffixes with a comma between them, such as _l,_r or ,_right")
    return parts[0], parts[1]


def _milliseconds(text: str) -> float:
    if text.strip() == "0":
        return 0.0
    try:
        return parse_duration(text) / 1e6
    except InputError as error:
        raise InputError(f"--wait: {error}") from None
