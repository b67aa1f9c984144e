"""EHJ figure 2: reading strategies on a many-to-many join; results before memory is full, times, page I/Os."""

from __future__ import annotations

from earlyjoin.algorithms.hash_join.prediction.formulas import JoinSize, expected_tuple_ios, results_in_memory
from earlyjoin.report.experiments.ehj.setting import (
    CONTENDERS,
    PAGE_ROWS,
    against_formula,
    beside,
    many_to_many,
    shares,
)
from earlyjoin.report.experiments.experiment import Curve, Experiment, Figure, Findings, Panel

PAPER = {
    "EHJA": (114_975, 0.4, 50.9, 130_613),
    "EHJ1": (114_975, 0.4, 46.3, 111_704),
    "EHJ2": (100_754, 0.4, 46.2, 107_296),
    "EHJ*": (0, 16.2, 44.3, 101_277),
    "HMJ": (114_975, 0.4, 53.9, 160_091),
    "XJoin": (114_975, 0.4, 52.6, 130_244),
    "DHJ": (0, 16.2, 45.4, 101_836),
}
"""Results before memory is full, seconds until 1000 results, seconds in all, page I/Os."""
_MEMORY = 300_000


def run(scale: float, seed: int) -> Findings:
    """All seven rows of the table."""
    runs = {label: many_to_many(label, scale, seed) for label in PAPER}
    size = JoinSize(r=800_000 * scale, s=800_000 * scale, selectivity=4 / (800_000 * scale))
    phase_1, ios, times, formulas = [], [], [], []
    for label, (early, response_s, total_s, pages) in PAPER.items():
        history, contender = runs[label], CONTENDERS[label]
        phase_1.append(beside(f"results before memory is full, {label}", early, history.full.results, scale))
        ios.append(beside(f"page I/Os, {label}", pages, history.last.page_ios, scale))
        times.append(beside(f"virtual seconds in all, {label}", total_s, history.last.seconds, scale))
        first_s = history.when(round(1000 * scale)).seconds
        times.append(Figure(f"virtual seconds until 1000 results, {label}", f"{response_s:g}", first_s))
        q1, q2 = shares(label)
        expected = results_in_memory(_MEMORY * scale, q1, size)
        formulas.append(against_formula(f"results before memory is full, {label}", expected, history.full.results))
        if contender.algorithm in ("ehj", "dhj"):
            rows = expected_tuple_ios(q1, q2, _MEMORY * scale, size, partitions=11)
            formulas.append(against_formula(f"page I/Os, {label}", rows / PAGE_ROWS, history.last.page_ios))
    bars = Panel(
        "Page I/Os", "", "page I/Os (thousands)", (
            Curve("paper", list(range(len(PAPER))), [scale * pages / 1e3 for *_, pages in PAPER.values()]),
            Curve("measured", list(range(len(PAPER))), [runs[label].last.page_ios / 1e3 for label in PAPER]),
        ), bars=tuple(PAPER),
    )  # fmt: skip
    early_bars = Panel(
        "Results before memory is full", "", "results (thousands)", (
            Curve("paper", list(range(len(PAPER))), [scale * early / 1e3 for early, *_ in PAPER.values()]),
            Curve("measured", list(range(len(PAPER))), [runs[label].full.results / 1e3 for label in PAPER]),
        ), bars=tuple(PAPER),
    )  # fmt: skip
    total = {history.last.results for history in runs.values()}
    return Findings([early_bars, bars], phase_1 + ios + times + formulas, [f"results in all: {sorted(total)}"])


EXPERIMENT = Experiment("ehj-fig2", "Reading strategies, many-to-many", "EHJ, figure 2", run)
