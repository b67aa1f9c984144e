"""Progressive Merge Join, figure 11: the estimated size of a similarity join while its initial runs are created.

Memory is 2 % of the inputs, so a block is a little less than 2 % of both together. The paper draws estimates over
seconds; here they are drawn over blocks, which is the same on every machine. Two diagrams: the honest interval, and the
paper's own.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.estimation import Aggregate, Estimate, Estimator, IndependentPairs
from earlyjoin.algorithms.estimation.joined_blocks import LoadEstimate
from earlyjoin.algorithms.estimation.tally import EVERY_MATCH
from earlyjoin.algorithms.merge_join.pmj import ProgressiveMergeJoin
from earlyjoin.algorithms.planning import make_plan
from earlyjoin.algorithms.protocol import Context
from earlyjoin.predicates import near
from earlyjoin.predicates.conjunction import Condition
from earlyjoin.report.experiments import pmj_data
from earlyjoin.report.experiments.experiment import Curve, Experiment, Figure, Findings, Panel
from earlyjoin.report.experiments.tracing import trace
from earlyjoin.state.budget import MIN_ROWS, Budget, MemoryLimit
from earlyjoin.state.disk.spill import SpillDirectory

_MEMORY = 0.02
_EPS = 3.1
_BATCH_ROWS = 50
_FOLLOWED = 16384
_FEW = 10
"""After so many blocks an estimate is to be good."""


@dataclass(slots=True)
class _Course:
    """What was said after each block."""

    results: list[int] = field(default_factory=list)
    estimates: dict[str, list[Estimate]] = field(default_factory=lambda: {"honest": [], "paper": []})

    def note(self, listener: LoadEstimate, total: tuple[int, int], results: int) -> None:
        joined = listener.joined(0, total)
        asked: dict[str, Estimator] = {"honest": joined, "paper": IndependentPairs.of(joined)}
        found = {name: estimator.get() for name, estimator in asked.items()}
        if None not in found.values():
            self.results.append(results)
            for name, estimate in found.items():
                assert estimate is not None
                self.estimates[name].append(estimate)


def _run_creation(condition: Condition, left: pa.Table, right: pa.Table, memory: MemoryLimit) -> _Course:
    """Read both inputs in turns; the merges that follow change no estimate."""
    plan, total, course = make_plan(condition, left.schema, right.schema), (len(left), len(right)), _Course()
    listener = LoadEstimate([Aggregate.COUNT], lambda _: [EVERY_MATCH], _FOLLOWED)
    with tempfile.TemporaryDirectory() as directory:
        context = Context(budget=Budget(memory), spill=SpillDirectory(directory))
        operator = ProgressiveMergeJoin(plan, context)
        assert operator.joined_blocks is not None
        operator.joined_blocks.listener = listener
        blocks = 0
        try:
            for batches in zip(*(table.to_batches(max_chunksize=_BATCH_ROWS) for table in (left, right)), strict=False):
                for side, batch in enumerate(batches):
                    for _ in operator.arrive(side, batch):
                        if context.counters.flushes > blocks:
                            blocks = context.counters.flushes
                            course.note(listener, total, context.counters.rows_out)
        finally:
            operator.close()
            context.spill.close()
    return course


def _panel(name: str, title: str, course: _Course, truth: int) -> Panel:
    estimates = course.estimates[name]
    blocks = list(range(1, len(estimates) + 1))
    curves = (
        Curve("estimate", blocks, [one.rows for one in estimates]),
        Curve("true number of results", [blocks[0], blocks[-1]], [truth, truth]),
        Curve("results so far", blocks, course.results),
    )
    band = (blocks, [one.low for one in estimates], [one.high for one in estimates])
    most = max(one.high for each in course.estimates.values() for one in each)
    return Panel(title, "blocks read", "results", curves, band=band, most_y=1.05 * max(most, truth))


def _fig11(scale: float, seed: int) -> Findings:
    left, right, origin = pmj_data.vectors(scale, seed, shuffled=True)
    condition = near([f"d{i}" for i in range(16)], eps=_EPS)
    rows = len(left) + len(right)
    course = _run_creation(condition, left, right, MemoryLimit(rows=max(MIN_ROWS, int(rows * _MEMORY))))
    truth = trace("pmj", condition, left, right, memory=MemoryLimit(rows=max(MIN_ROWS, 2 * rows))).last.results
    figures, few = [], min(_FEW, len(course.results)) - 1
    for name, whose in (("honest", "honest"), ("paper", "paper's")):
        estimates = course.estimates[name]
        inside = [one.low <= truth <= one.high for one in estimates]
        after = estimates[few]
        figures += [
            Figure(f"estimate after {few + 1} blocks over the truth", "very close", after.rows / truth),
            Figure(f"half of the {whose} interval after {few + 1} blocks, share of the truth", "",
                   (after.high - after.low) / 2 / truth),
            Figure(f"share of blocks after which the {whose} interval holds the truth", "", float(np.mean(inside))),
        ]  # fmt: skip
    panels = [
        _panel("honest", f"honest interval: {origin}", course, truth),
        _panel("paper", f"the paper's interval (Theorem 3): {origin}", course, truth),
    ]
    notes = [f"{len(left):,} and {len(right):,} points, {truth:,} results, {len(course.results)} blocks"]
    return Findings(panels, figures[:3] + figures[4:], notes)


EXPERIMENTS = (Experiment("pmj-fig11", "Estimated size of a similarity join", "PMJ, figure 11", _fig11),)
