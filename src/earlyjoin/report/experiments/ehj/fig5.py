"""EHJ figure 5: execution time of the one-to-many join over its results."""

from __future__ import annotations

from earlyjoin.report.experiments.ehj.setting import one_to_many, over_results
from earlyjoin.report.experiments.experiment import Experiment, Figure, Findings

LABELS = ("EHJ1", "DHJ", "HMJ", "XJoin")


def run(scale: float, seed: int) -> Findings:
    """The curves, and how much faster EHJ1 is."""
    runs = {label: one_to_many(label, scale, seed) for label in LABELS}
    panel = over_results(runs.values(), "customer ⋈ orders, memory 75,000 rows")
    total = {label: history.last.seconds for label, history in runs.items()}
    first = {label: history.when(round(1000 * scale)).seconds for label, history in runs.items()}
    figures = [
        Figure("EHJ1 faster than XJoin, share of the time", "0.35", 1 - total["EHJ1"] / total["XJoin"]),
        Figure("EHJ1 faster than HMJ, share of the time", "0.45", 1 - total["EHJ1"] / total["HMJ"]),
        Figure("EHJ1 over DHJ", "about 1", total["EHJ1"] / total["DHJ"]),
        Figure("virtual seconds until 1000 results, EHJ1", "1", first["EHJ1"]),
        Figure("virtual seconds until 1000 results, DHJ", "4", first["DHJ"]),
    ]
    return Findings([panel], figures)


EXPERIMENT = Experiment("ehj-fig5", "Execution time, one-to-many", "EHJ, figure 5", run)
