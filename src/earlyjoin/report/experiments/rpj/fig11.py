"""RPJ figure 11: results over time of RPJ and of its variants with one kind of reactive task, unreliable network.

At first the variants have about as many results as each other, in the paper: so RPJ-md and RPJ-dd are held against each
other soon after the first flush as well, and after a tenth of the time; ``fig11_start`` does so at the paper's scale.
"""

from __future__ import annotations

from earlyjoin.report.experiments.experiment import Experiment, Figure, Findings
from earlyjoin.report.experiments.rpj.data import SETTINGS
from earlyjoin.report.experiments.rpj.fig10 import NETWORK
from earlyjoin.report.experiments.rpj.setting import (
    end_of_transmission_s,
    first_hundredth_s,
    over_time,
    results_in_millions,
    run,
)

LABELS = ("RPJ", "RPJ-dd", "RPJ-md")


def _run(scale: float, seed: int) -> Findings:
    """Four diagrams, until the end of the transmission."""
    outcome = Findings()
    for setting in SETTINGS:
        runs = {label: run(label, setting, NETWORK, scale, seed) for label in LABELS}
        end_s = end_of_transmission_s(setting, NETWORK, scale, seed)
        outcome.panels.append(over_time(runs.values(), setting.title, results_in_millions, "results (millions)", end_s))
        last = {label: history.at(end_s).results for label, history in runs.items()}
        for more, less in (("RPJ", "RPJ-dd"), ("RPJ-dd", "RPJ-md")):
            ratio = last[more] / max(1, last[less])
            what = f"{more} over {less} at the end of transmission, {setting.title}"
            outcome.figures.append(Figure(what, "1 or more", ratio, ratio))
        first_s = first_hundredth_s(runs["RPJ-md"], runs["RPJ-dd"], end_s)
        for at_s, expected in ((first_s, "about 1"), (end_s / 10, "not said")):
            ratio = runs["RPJ-md"].at(at_s).results / max(1, runs["RPJ-dd"].at(at_s).results)
            what = f"RPJ-md over RPJ-dd after {at_s / end_s:.0%} of the time, {setting.title}"
            outcome.figures.append(Figure(what, expected, ratio, ratio))
    return outcome


EXPERIMENT = Experiment("rpj-fig11", "Variants of RPJ, unreliable network", "RPJ, figure 11", _run, default_scale=0.1)
