"""What lies below a DataFrame: files that can be read block by block, a small table, or something to be computed.

Read off the plans as ``explain`` prints them, which classic and Connect sessions have in common. Only plans that
give the same rows whenever they are run, and whose rows each come from one row of one file, have blocks: a block read
early must be the block that the bulk skips.
"""

from __future__ import annotations

import contextlib
import io
import logging
import re
from dataclasses import dataclass
from typing import Any

_ROW_BY_ROW = frozenset({"Project", "Filter"})
_PLAN_HEADER = "== Optimized Logical Plan =="
_NODE = re.compile(r"^[\s:+|\-]*(\w+)")
_FORMAT = re.compile(r"\] (\w+)(?:,|$)")
_PLAIN_SCAN = re.compile(
    r"\n== Physical Plan ==\n(?:(?:\*\(1\) )?ColumnarToRow\n\+- )?"
    r"FileScan parquet \[[^\n]*\] Batched: \w+, DataFilters: \[\], Format: Parquet, "
    r"Location: InMemoryFileIndex\(1 paths\)\[[^\n]*, PartitionFilters: \[\], PushedFilters: \[\], "
    r"ReadSchema: [^\n]*\s*$"
)
"""A scan below one path and nothing else: no filter, no computed column, no table of a catalogue or with a log of its
own. Of several paths Spark reads those that overlap several times."""
_SIZE = re.compile(r"Statistics\(sizeInBytes=([\d.,E+]+) (B|KiB|MiB|GiB|TiB|PiB|EiB)")
_UNITS = {"B": 0, "KiB": 1, "MiB": 2, "GiB": 3, "TiB": 4, "PiB": 5, "EiB": 6}
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

    @property
    def numbered(self) -> bool:
        """Do rows know their number in the file?"""
        return self.format == "parquet"


@dataclass(frozen=True, slots=True)
class Small:
    """A small table in memory, one block as a whole."""

    nbytes: int


@dataclass(frozen=True, slots=True)
class Computed:
    """No blocks to choose from."""

    reason: str
    nbytes: int | None = None


Below = Files | Small | Computed


@dataclass(frozen=True, slots=True)
class Planned:
    """Rows that come from files row by row, or from a small table, as far as the plan tells."""

    format: str | None
    """Of the files; None for a table in memory."""
    nbytes: int
    plain: bool = False
    """Is its physical plan nothing but a scan of Parquet files that were named by a path?"""


def examine(dataframe: Any) -> Below:
    """Look at a DataFrame's plan and at its hidden columns; nothing is run."""
    return with_blocks(dataframe, look(dataframe))


def look(dataframe: Any) -> Planned | Computed:
    """Look at a DataFrame's plan alone."""
    explained = _explained(dataframe)
    nodes = plan_nodes(explained)
    if not nodes:
        return Computed("its plan cannot be read")
    nbytes = _nbytes(nodes[0][1])
    *above, (leaf, text) = nodes
    others = [name for name, _ in above if name not in _ROW_BY_ROW]
    if others:
        return Computed(f"it is behind {_described(others[0])}", nbytes)
    changing = next((found[1] for _, line in nodes if (found := _CHANGING.search(line))), None)
    if changing is not None:
        return Computed(f"{changing}() may give other rows when it is asked again", nbytes)
    if leaf == "LocalRelation" and nbytes is not None and nbytes <= SMALL_BYTES:
        return Planned(None, nbytes)
    format_ = _FORMAT.search(text)
    if leaf != "Relation" or format_ is None:
        return Computed(f"it does not come from files but from {_described(leaf)}", nbytes)
    return Planned(format_[1].lower(), _nbytes(text) or 0, _PLAIN_SCAN.search(explained) is not None)


def with_blocks(dataframe: Any, planned: Planned | Computed) -> Below:
    """What was seen in the plan, with its files."""
    if isinstance(planned, Computed):
        return planned
    if planned.format is None:
        return Small(planned.nbytes)
    paths = tuple(sorted(_as_in_metadata(path) for path in dataframe.inputFiles()))
    if not paths:
        return Computed("it has no files", planned.nbytes)
    files = Files(paths, planned.format, planned.nbytes)
    if not _resolves(dataframe, FILE, *([ROW] if files.numbered else [])):
        return Computed("it is behind a view, or a column of its own hides which file a row comes from", planned.nbytes)
    return files


def planned_nbytes(dataframe: Any) -> int | None:
    """How large Spark takes a DataFrame for; None when it does not say. Nothing is run."""
    nodes = plan_nodes(_explained(dataframe))
    return _nbytes(nodes[0][1]) if nodes else None


def plan_nodes(explained: str) -> list[tuple[str, str]]:
    """Name and text of each node of the optimised plan, from the root on."""
    _, found, rest = explained.partition(_PLAN_HEADER)
    section = rest.split("\n==", 1)[0] if found else ""
    nodes = []
    for line in section.splitlines():
        name = _NODE.match(line)
        if name is not None:
            nodes.append((name[1], line))
    return nodes


def _resolves(dataframe: Any, *columns: str) -> bool:
    """Can these hidden columns be asked for?"""
    logger = logging.getLogger("DataFrameQueryContextLogger")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)  # PySpark would print a page about what is a plain no
    try:
        return len(dataframe.select(*columns).schema) == len(columns)
    except Exception:
        return False
    finally:
        logger.setLevel(level)


def _explained(dataframe: Any) -> str:
    # explain() prints, and there is no other public way to a plan that a Connect session has too.
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        dataframe.explain(mode="cost")
    return text.getvalue()


def _nbytes(text: str) -> int | None:
    found = _SIZE.search(text)
    return int(float(found[1].replace(",", "")) * 1024 ** _UNITS[found[2]]) if found else None


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
