"""What lies below a DataFrame: files that can be read block by block, a small table, or something to be computed.

Read off the plans as ``explain`` prints them, which classic and Connect sessions have in common. Only plans that
give the same rows whenever they are run, and whose rows each come from one row of one file, have blocks: a block read
early must be the block that the bulk skips.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from earlyjoin.spark.inspecting.plans import explained, node_nbytes, plan_nodes

_ROW_BY_ROW = frozenset({"Project", "Filter"})
_FORMAT = re.compile(r"\] (\w+)(?:,|$)")
_COLUMN = r"[^\n\[\]() ,]+#\d+L?"
_PLAIN_SCAN = re.compile(
    r"\n== Physical Plan ==\n"
    rf"(?:(?:\*\(1\) )?Project \[{_COLUMN}(?:, {_COLUMN})*\]\n\s*\+- )?"
    r"(?:(?:\*\(1\) )?Filter [^\n]*\n\s*\+- )?"
    r"(?:(?:\*\(1\) )?ColumnarToRow\n\s*\+- )?"
    r"FileScan parquet \[[^\n]*\] Batched: \w+, DataFilters: \[[^\n]*, Format: Parquet, "
    r"Location: InMemoryFileIndex\(1 paths\)\[[^\n]*, PartitionFilters: \[\], PushedFilters: \[[^\n]*, "
    r"ReadSchema: [^\n]*\s*$"
)
"""A scan below one path, a filter and a choice of columns, and nothing else: no computed column, no table of a
catalogue or with a log of its own. Of several paths Spark reads those that overlap several times."""
_ONE_PATH = re.compile(r"FileIndex\(1 paths\)")
_CHANGING = re.compile(
    r"\b(rand|randn|random|randstr|uniform|uuid|shuffle|monotonically_increasing_id|spark_partition_id|"
    r"input_file_block_\w+|\w*udf\w*)\(",
    re.IGNORECASE,
)
FILE, ROW = "_metadata.file_path", "_metadata.row_index"
"""Hidden columns of rows that come from files, the second of Parquet alone."""
SMALL_BYTES = 4 * 2**20
"""A table in memory up to this size is taken as one block."""


@dataclass(frozen=True, slots=True)
class Files:
    """Rows that come from files, row by row."""

    paths: tuple[str, ...]
    """As the hidden column ``_metadata.file_path`` has them."""
    format: str
    nbytes: int
    filtered: bool = False
    """Do only some of their rows come out? Then rows found tell nothing about rows read."""
    several: bool = False
    """Were they named by several paths? Spark reads those that overlap several times."""
    plain: bool = False
    """Is reading them, and dropping rows and columns, all that Spark does?"""

    @property
    def numbered(self) -> bool:
        """Do rows know their number in the file?"""
        return self.format == "parquet"


@dataclass(frozen=True, slots=True)
class Small:
    """A small table in memory, one block as a whole."""

    nbytes: int
    filtered: bool = False


@dataclass(frozen=True, slots=True)
class Computed:
    """No blocks to choose from."""

    reason: str
    nbytes: int | None = None
    aggregated_nbytes: int | None = None
    """Of files of which nothing is computed but groups: those of a few keys may be found without all others."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of rows from files, of which those of some keys can be asked for."""

    nbytes: int
    """Of the files below them."""
    filtered: bool = False


Below = Files | Small | Computed


@dataclass(frozen=True, slots=True)
class Planned:
    """Rows that come from files row by row, or from a small table, as far as the plan tells."""

    format: str | None
    """Of the files; None for a table in memory."""
    nbytes: int
    plain: bool = False
    """Is its physical plan nothing but a scan of Parquet files that were named by a path, and perhaps a filter?"""
    filtered: bool = False
    several: bool = False


def examine(dataframe: Any) -> Below:
    """Look at a DataFrame's plan and at its hidden columns; nothing is run."""
    return with_blocks(dataframe, look(dataframe))


def look(dataframe: Any) -> Planned | Computed:
    """Look at a DataFrame's plan alone."""
    text = explained(dataframe)
    nodes = plan_nodes(text)
    if not nodes:
        return Computed("its plan cannot be read")
    nbytes = node_nbytes(nodes[0][1])
    *above, (leaf, leaf_text) = nodes
    others = [name for name, _ in above if name not in _ROW_BY_ROW]
    changing = next((found[1] for _, line in nodes if (found := _CHANGING.search(line))), None)
    if others:
        grouped = set(others) == {"Aggregate"} and leaf == "Relation" and changing is None
        return Computed(
            f"it is behind {_described(others[0])}", nbytes, (node_nbytes(leaf_text) or 0) if grouped else None
        )
    if changing is not None:
        return Computed(f"{changing}() may give other rows when it is asked again", nbytes)
    if leaf == "LocalRelation" and nbytes is not None and nbytes <= SMALL_BYTES:
        return Planned(None, nbytes)
    format_ = _FORMAT.search(leaf_text)
    if leaf != "Relation" or format_ is None:
        return Computed(f"it does not come from files but from {_described(leaf)}", nbytes)
    filtered = any(name == "Filter" for name, _ in above)
    return Planned(
        format_[1].lower(),
        node_nbytes(leaf_text) or 0,
        plain=_PLAIN_SCAN.search(text) is not None,
        filtered=filtered,
        several=_ONE_PATH.search(text) is None,
    )


def with_blocks(dataframe: Any, planned: Planned | Computed) -> Below:
    """What was seen in the plan, with its files."""
    if isinstance(planned, Computed):
        return planned
    if planned.format is None:
        return Small(planned.nbytes)
    paths = tuple(sorted(_as_in_metadata(path) for path in dataframe.inputFiles()))
    if not paths:
        return Computed("it has no files", planned.nbytes)
    files = Files(paths, planned.format, planned.nbytes, planned.filtered, planned.several, planned.plain)
    if not _resolves(dataframe, FILE, *([ROW] if files.numbered else [])):
        return Computed("it is behind a view, or a column of its own hides which file a row comes from", planned.nbytes)
    return files


def _resolves(dataframe: Any, *columns: str) -> bool:
    """Can these hidden columns be asked for?"""
    with _no_page_from_this_thread():
        try:
            return len(dataframe.select(*columns).schema) == len(columns)
        except Exception as error:
            if type(error).__name__ != "AnalysisException":
                raise
            return False


@contextmanager
def _no_page_from_this_thread() -> Iterator[None]:
    """PySpark logs a page about what is a plain no here. What other threads have to log goes out as ever."""
    from pyspark.logger import PySparkLogger

    thread = threading.get_ident()

    def of_others(record: logging.LogRecord) -> bool:
        return record.thread != thread

    # Made by PySpark's own class: a logger of another class under this name would break PySpark's own messages.
    logger = PySparkLogger.getLogger("DataFrameQueryContextLogger")
    logger.addFilter(of_others)
    try:
        yield
    finally:
        logger.removeFilter(of_others)


def _described(node: str) -> str:
    known = {
        "Aggregate": "an aggregation",
        "Join": "a join",
        "Union": "a union",
        "GlobalLimit": "a limit, which may give other rows when it is asked again",
        "LocalLimit": "a limit, which may give other rows when it is asked again",
        "Sample": "a sample",
        "Window": "a window",
        "Sort": "a sort",
        "Generate": "a generator such as explode",
        "InMemoryRelation": "Spark's cache",
        "LogicalRDD": "rows that were handed to Spark",
        "LocalRelation": "a large table in memory",
        "Range": "a range of numbers",
    }
    return known.get(node, f"the operator {node}")


def _as_in_metadata(path: str) -> str:
    return re.sub(r"^file:/+", "file:/", path)
