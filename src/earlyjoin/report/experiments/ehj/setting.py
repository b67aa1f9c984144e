"""What all figures of EHJ section 5 share: the algorithms, TPC-H joins, pages of 20 rows, and what work costs.

Pages and rows written and read do not include the inputs themselves. Seconds are virtual: a comparison of keys takes
0.8 µs, what rows and pages cost is fitted to DHJ's two times in figure 2 (16.2 s until the first results, 45.4 s in
all), and the rest follows. A result costs nothing more: the paper discards them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

import pyarrow as pa

from earlyjoin.algorithms.hash_join.prediction.formulas import share
from earlyjoin.algorithms.reading import PRESETS
from earlyjoin.predicates import equal
from earlyjoin.report.experiments import tpch_keys
from earlyjoin.report.experiments.experiment import Figure, Panel
from earlyjoin.report.experiments.moments import History, Moment
from earlyjoin.report.experiments.running import Contender, Input, pull
from earlyjoin.state.cost_clock import Costs

PAGE_ROWS = 20
COSTS = Costs(page_read_s=190e-6, page_written_s=190e-6, row_s=14.25e-6, comparison_s=0.8e-6)
_FROZEN = {"partitions": 11, "page_rows": PAGE_ROWS}
"""EHJ and DHJ were best with eleven partitions (section 5.2)."""
_PAIRS = {"partitions": 20, "page_rows": PAGE_ROWS}
"""HMJ was best with twenty."""
_SINGLE = {"partitions": 40, "page_rows": PAGE_ROWS}
"""PAPER UNCLEAR: XJoin "had equivalent performance between 5-40 partitions". Figure 6 agrees best with forty."""
_MODULO = {**_FROZEN, "hashing": "mod"}
"""PAPER UNCLEAR: how keys are spread. By the key modulo eleven DHJ moves exactly the rows of figure 6. EHJ's rows there
cannot come from partitions of one size: it keeps 68,955 customers, of which five of eleven would have 68,182."""

CONTENDERS: Mapping[str, Contender] = {
    contender.label: contender
    for contender in (
        Contender(label="EHJA", algorithm="ehj", options=_FROZEN, reading="ehja"),
        Contender(label="EHJ1", algorithm="ehj", options=_FROZEN, reading="ehj1"),
        Contender(label="EHJ2", algorithm="ehj", options=_FROZEN, reading="ehj2"),
        Contender(label="EHJ*", algorithm="ehj", options=_FROZEN, reading="ehj*"),
        Contender(label="DHJ", algorithm="dhj", options=_MODULO, reading="ehj*"),
        Contender(label="HMJ", algorithm="hmj", options=_PAIRS),
        Contender(label="XJoin", algorithm="xjoin", options=_SINGLE),
    )
}


def batch_rows(scale: float) -> int:
    """Rows read from an input before another one: a few blocks, as the paper does (section 5.2)."""
    return max(5 * PAGE_ROWS, round(20 * PAGE_ROWS * scale))


@lru_cache(maxsize=64)
def many_to_many(label: str, scale: float, seed: int, memory_rows: int = 300_000) -> History:
    """Partsupp with itself on partkey, both in random order (section 5.3)."""
    tables = [tpch_keys.table("partsupp", scale, seed + side, permuted=True)[0] for side in range(2)]
    return _pulled(CONTENDERS[label], "ps_partkey", "ps_partkey", tables, memory_rows, scale)


@lru_cache(maxsize=64)
def one_to_many(label: str, scale: float, seed: int, memory_rows: int = 75_000) -> History:
    """Customer with orders, every customer once (section 5.4)."""
    tables = [tpch_keys.table(name, scale, seed)[0] for name in ("customer", "orders")]
    return _pulled(one_sided(CONTENDERS[label]), "c_custkey", "o_custkey", tables, memory_rows, scale)


def one_sided(contender: Contender) -> Contender:
    """The same algorithm, told that keys of its first input occur once."""
    return replace(contender, options={**contender.options, "one_side": "left"})


def shares(label: str) -> tuple[float, float]:
    """``q1`` and ``q2`` of the reading strategy: the part of rows that come from R before and after memory is full."""
    ratios = PRESETS.get(CONTENDERS[label].reading, ((1, 1), (1, 1)))
    first, later = (share(*ratio) for ratio in ratios)
    return first, later


def _pulled(
    contender: Contender, left: str, right: str, tables: list[pa.Table], memory_rows: int, scale: float
) -> History:
    rows = batch_rows(scale)
    memory = round(memory_rows * scale)
    inputs = [Input.of(table, rows) for table in tables]
    return pull(contender, equal(left, right), *inputs, memory_rows=memory, costs=COSTS)


def beside(what: str, paper: float, measured: float, scale: float) -> Figure:
    """A number beside the paper's; counts grow with the scale, so the paper's is scaled too."""
    printed = f"{paper:,.0f}" if paper >= 100 else f"{paper:g}"
    return Figure(what, printed, measured, measured / (paper * scale) if paper else None)


def against_formula(what: str, expected: float, measured: float) -> Figure:
    """A number beside what a formula says."""
    return Figure(f"formula: {what}", f"{expected:,.0f}", measured, measured / expected if expected else None)


def over_results(histories: Iterable[History], title: str, *, pages: bool = False) -> Panel:
    """Time or page I/Os over the results that were there by then."""

    def y(moment: Moment) -> float:
        return moment.page_ios if pages else moment.seconds

    curves = tuple(history.curve(lambda moment: moment.results / 1e6, y) for history in histories)
    return Panel(title, "results (millions)", "page I/Os" if pages else "virtual seconds", curves)
