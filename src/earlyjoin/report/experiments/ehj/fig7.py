"""EHJ figure 7: the many-to-many join with more memory."""

from __future__ import annotations

from earlyjoin.report.experiments.ehj.setting import many_to_many, over_results
from earlyjoin.report.experiments.experiment import Experiment, Figure, Findings

LABELS = ("EHJ1", "EHJ2", "DHJ", "HMJ", "XJoin")
_MEMORY = 640_000


def run(scale: float, seed: int) -> Findings:
    """The curves, and how much faster EHJ1 is."""
    runs = {label: many_to_many(label, scale, seed, _MEMORY) for label in LABELS}
    panel = over_results(runs.values(), "partsupp ⋈ partsupp, memory 640,000 rows")
    total = {label: history.last.seconds for label, history in runs.items()}
    figures = [
        Figure("EHJ1 faster than XJoin, share of the time", "0.33", 1 - total["EHJ1"] / total["XJoin"]),
        Figure("EHJ1 faster than HMJ, share of the time", "0.37", 1 - total["EHJ1"] / total["HMJ"]),
        *(Figure(f"page I/Os, {label}", "", history.last.page_ios) for label, history in runs.items()),
    ]
    return Findings([panel], figures)


EXPERIMENT = Experiment("ehj-fig7", "More memory, many-to-many", "EHJ, figure 7", run)
