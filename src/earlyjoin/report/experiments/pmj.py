"""Progressive Merge Join, section 4: results over I/O for three kinds of join, the impact of memory, the estimate.

I/O is counted as the paper counts it: one for each page of 4 KB written or read after the inputs have been delivered.
Pages are computed from the tuples that were moved and the size of the paper's tuples (Table 2).
"""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from earlyjoin.predicates import equal, intersects, near
from earlyjoin.predicates.conjunction import Condition
from earlyjoin.report.experiments import pmj_data
from earlyjoin.report.experiments.experiment import Curve, Experiment, Figure, Findings, Panel
from earlyjoin.report.experiments.tracing import Trace, trace
from earlyjoin.state.budget import MIN_ROWS, MemoryLimit

ALGORITHMS = {"pmj": "PMJ", "smj-semi": "semi-strict SMJ", "smj": "strict SMJ"}
_PAGE_BYTES = 4096
_INTEGER, _RECTANGLE, _VECTOR = _PAGE_BYTES // 4, _PAGE_BYTES // 34, _PAGE_BYTES // 64
"""Tuples a page: 8 MB for 2 million integers, 4.5 MB for 131,461 rectangles, 40 MB for 657,048 vectors."""
_EPS = 3.1


def _compare(condition: Condition, left: pa.Table, right: pa.Table, fraction: float) -> dict[str, Trace]:
    memory = _memory(left, right, fraction)
    return {name: trace(name, condition, left, right, memory=memory) for name in ALGORITHMS}


def _memory(left: pa.Table, right: pa.Table, fraction: float) -> MemoryLimit:
    return MemoryLimit(rows=max(MIN_ROWS, int((len(left) + len(right)) * fraction)))


def _over_io(runs: dict[str, Trace], tuples_a_page: int, title: str) -> Panel:
    curves = tuple(Curve(ALGORITHMS[name], run.pages(tuples_a_page), run.results) for name, run in runs.items())
    return Panel(title, "page I/Os", "results", curves)


def _ios(runs: dict[str, Trace], tuples_a_page: int) -> list[Figure]:
    totals = {name: run.last.tuple_ios / tuples_a_page for name, run in runs.items()}
    return [
        *(Figure(f"page I/Os in all, {ALGORITHMS[name]}", "", total) for name, total in totals.items()),
        Figure("PMJ over semi-strict SMJ", "1 (the same)", totals["pmj"] / totals["smj-semi"]),
        Figure("strict over semi-strict SMJ", "2 (double)", totals["smj"] / totals["smj-semi"]),
    ]


def _fig6(scale: float, seed: int) -> Findings:
    rows = int(2_000_000 * scale)
    left, right = pmj_data.uniform_integers(rows, seed)
    runs = _compare(equal("k"), left, right, 0.10)
    first = {name: run.when(1).tuple_ios / _INTEGER / scale for name, run in runs.items()}
    figures = [
        Figure("page I/Os before the first result, PMJ", "0", first["pmj"]),
        Figure(
            "page I/Os before the first result, semi-strict",
            "more than 4000",
            first["smj-semi"],
            first["smj-semi"] / 4000,
        ),
        Figure("page I/Os before the first result, strict", "more than 11000", first["smj"], first["smj"] / 11000),
    ]
    return Findings(
        [_over_io(runs, _INTEGER, f"{rows:,} integers on each side, memory 10 %")], figures + _ios(runs, _INTEGER)
    )


def _fig7(scale: float, seed: int) -> Findings:
    left, right, origin = pmj_data.rectangles(scale, seed)
    runs = _compare(intersects(("xmin", "ymin", "xmax", "ymax")), left, right, 0.10)
    start = runs["smj-semi"].when(1).tuple_ios
    before = max(moment.results for moment in runs["pmj"].moments if moment.tuple_ios <= start)
    figures = [Figure("PMJ's results when semi-strict SMJ has its first", "more than 8000", before)]
    panel = _over_io(runs, _RECTANGLE, f"rectangles: {origin}, memory 10 %")
    return Findings([panel], figures + _ios(runs, _RECTANGLE), [f"{runs['pmj'].last.results:,} results in all"])


def _similarity(scale: float, seed: int, *, shuffled: bool) -> Findings:
    left, right, origin = pmj_data.vectors(scale, seed, shuffled=shuffled)
    condition = near([f"d{i}" for i in range(16)], eps=_EPS)
    runs = _compare(condition, left, right, 0.10)
    start = runs["smj-semi"].when(1).tuple_ios
    before = max(moment.results for moment in runs["pmj"].moments if moment.tuple_ios <= start)
    paper = "a modest number" if shuffled else "about a third"
    share = before / runs["pmj"].last.results
    figures = [Figure("share of the results before semi-strict SMJ has its first", paper, share)]
    order = "random order" if shuffled else "clustered order"
    return Findings([_over_io(runs, _VECTOR, f"16 dimensions: {origin}, {order}")], figures + _ios(runs, _VECTOR))


def _fig10(scale: float, seed: int) -> Findings:
    left, right, origin = pmj_data.rectangles(scale, seed)
    condition = intersects(("xmin", "ymin", "xmax", "ymax"))
    fractions = (0.02, 0.04, 0.06, 0.10, 0.20)
    work: dict[str, list[float]] = {"pmj": [], "smj-semi": []}
    for fraction in fractions:
        for name, series in work.items():
            moment = trace(name, condition, left, right, memory=_memory(left, right, fraction), batch_rows=100).when(
                100
            )
            series.append((moment.rows_read + moment.tuple_ios) / _RECTANGLE)
    percent = [100 * fraction for fraction in fractions]
    panel = Panel(
        f"first 100 results: {origin}",
        "memory, % of the inputs",
        "pages read and written",
        tuple(Curve(ALGORITHMS[name], percent, series) for name, series in work.items()),
        log=(False, True),
    )
    earlier = [semi / pmj for pmj, semi in zip(work["pmj"], work["smj-semi"], strict=True)]
    figures = [
        Figure(f"times less work than semi-strict SMJ at {100 * fraction:g} % memory", paper, ratio)
        for fraction, ratio, paper in zip(fractions, earlier, ("100", "100", "10", "10", "10"), strict=True)
    ]
    return Findings([panel], figures)


EXPERIMENTS = (
    Experiment("pmj-fig6", "Equi-join of uniform integers", "PMJ, figure 6", _fig6, default_scale=0.1),
    Experiment("pmj-fig7", "Spatial join", "PMJ, figure 7", _fig7),
    Experiment("pmj-fig8", "Similarity join, clustered", "PMJ, figure 8", partial(_similarity, shuffled=False)),
    Experiment("pmj-fig9", "Similarity join, shuffled", "PMJ, figure 9", partial(_similarity, shuffled=True)),
    Experiment("pmj-fig10", "Memory and the first 100 results", "PMJ, figure 10", _fig10),
)
