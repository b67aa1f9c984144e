"""EHJ figure 6: what the one-to-many optimisations save.

The paper's totals have one I/O for each discarded row: the place that it leaves in its partition is written, and
nothing is read. HMJ tells, which writes all that it keeps: 2 · (150,000 + 1,500,000 − 32,870) − 31,353 is its
3,202,907. Here such a place is not written; it is counted beside the paper's totals, and rows that moved are told too.
"""

from __future__ import annotations

from earlyjoin.algorithms.hash_join.prediction.formulas import JoinSize
from earlyjoin.algorithms.hash_join.prediction.one_to_many_formulas import (
    expected_tuple_ios_one_to_many,
    results_until_full,
)
from earlyjoin.report.experiments.ehj.setting import CONTENDERS, against_formula, beside, one_to_many, shares
from earlyjoin.report.experiments.experiment import Curve, Experiment, Figure, Findings, Panel
from earlyjoin.report.experiments.moments import History

PAPER = {
    "EHJ1": (675_783, 9_594, 1_800_931),
    "EHJ2": (681_825, 5_049, 1_793_390),
    "DHJ": (682_321, 0, 1_798_998),
    "HMJ": (32_870, 31_353, 3_202_907),
    "XJoin": (160_576, 41_108, 2_796_038),
}
"""Inserts avoided, rows discarded from the hash table, tuple I/Os in all."""
_MEMORY = 75_000


def run(scale: float, seed: int) -> Findings:
    """All five rows of the table, and the formulas beside them."""
    runs = {label: one_to_many(label, scale, seed) for label in PAPER}
    size = JoinSize(r=150_000 * scale, s=1_500_000 * scale, selectivity=1 / (150_000 * scale))
    ios, moved, savings, formulas = [], [], [], []
    for label, (avoided, discards, total) in PAPER.items():
        history, contender = runs[label], CONTENDERS[label]
        counters = history.counters[-1]
        ios.append(beside(f"tuple I/Os, {label}", total, _as_counted(history), scale))
        moved.append(Figure(f"rows written and read, {label}", "", history.last.tuple_ios))
        savings.append(beside(f"inserts avoided, {label}", avoided, counters.inserts_avoided, scale))
        savings.append(beside(f"discards, {label}", discards, counters.discards, scale))
        q1, q2 = shares(label)
        if contender.algorithm in ("ehj", "dhj"):
            rows = expected_tuple_ios_one_to_many(q1, q2, _MEMORY * scale, size, partitions=11)
            formulas.append(against_formula(f"rows written and read, {label}", rows, history.last.tuple_ios))
        early = results_until_full(q1, _MEMORY * scale, size)
        formulas.append(against_formula(f"results before memory is full, {label}", early, history.full.results))
    panel = Panel(
        "Rows written and read, customer ⋈ orders", "", "tuple I/Os (millions)", (
            Curve("paper", list(range(len(PAPER))), [scale * total / 1e6 for *_, total in PAPER.values()]),
            Curve("measured", list(range(len(PAPER))), [_as_counted(runs[label]) / 1e6 for label in PAPER]),
        ), bars=tuple(PAPER),
    )  # fmt: skip
    return Findings([panel], ios + moved + savings + formulas)


def _as_counted(history: History) -> int:
    """Tuple I/Os with the places that discarded rows leave."""
    return history.last.tuple_ios + history.counters[-1].discards


EXPERIMENT = Experiment("ehj-fig6", "One-to-many optimisations", "EHJ, figure 6", run)
