"""EHJ figure 3: execution time of the many-to-many join over its results."""

from __future__ import annotations

from earlyjoin.report.experiments.ehj.setting import beside, many_to_many, over_results
from earlyjoin.report.experiments.experiment import Experiment, Figure, Findings

LABELS = ("EHJ1", "EHJ2", "DHJ", "HMJ", "XJoin")
_TOTAL_S = {"EHJ1": 46.3, "EHJ2": 46.2, "DHJ": 45.4, "HMJ": 53.9, "XJoin": 52.6}


def run(scale: float, seed: int) -> Findings:
    """The curves, and the times at their ends."""
    runs = {label: many_to_many(label, scale, seed) for label in LABELS}
    panel = over_results(runs.values(), "partsupp ⋈ partsupp, memory 300,000 rows")
    figures = [
        beside(f"virtual seconds in all, {label}", _TOTAL_S[label], runs[label].last.seconds, scale) for label in LABELS
    ]
    over = runs["EHJ1"].last.seconds / runs["DHJ"].last.seconds
    return Findings([panel], [*figures, Figure("EHJ1 over DHJ", "1.02", over, over / 1.02)])


EXPERIMENT = Experiment("ehj-fig3", "Execution time, many-to-many", "EHJ, figure 3", run)
