"""EHJ figure 4: page I/Os of the many-to-many join over its results."""

from __future__ import annotations

from earlyjoin.report.experiments.ehj.fig2 import PAPER
from earlyjoin.report.experiments.ehj.setting import beside, many_to_many, over_results
from earlyjoin.report.experiments.experiment import Experiment, Findings

LABELS = ("EHJ1", "EHJ2", "DHJ", "HMJ", "XJoin")


def run(scale: float, seed: int) -> Findings:
    """The curves, and the page I/Os at their ends."""
    runs = {label: many_to_many(label, scale, seed) for label in LABELS}
    panel = over_results(runs.values(), "partsupp ⋈ partsupp, memory 300,000 rows", pages=True)
    figures = [beside(f"page I/Os, {label}", PAPER[label][3], runs[label].last.page_ios, scale) for label in LABELS]
    return Findings([panel], figures)


EXPERIMENT = Experiment("ehj-fig4", "Page I/Os, many-to-many", "EHJ, figure 4", run)
