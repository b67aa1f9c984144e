"""RPJ figure 8: results over time on a reliable network."""

from __future__ import annotations

from earlyjoin.report.experiments.experiment import Experiment, Figure, Findings
from earlyjoin.report.experiments.rpj.data import SETTINGS
from earlyjoin.report.experiments.rpj.setting import (
    ahead_figure,
    end_of_transmission_s,
    over_time,
    results_in_millions,
    run,
)

LABELS = ("RPJ", "HMJ", "XJoin")
NETWORK = "reliable"


def _run(scale: float, seed: int) -> Findings:
    """Four diagrams; the first one with the clean-up, as in the paper."""
    outcome = Findings()
    for number, setting in enumerate(SETTINGS):
        runs = {label: run(label, setting, NETWORK, scale, seed) for label in LABELS}
        end_s = end_of_transmission_s(setting, NETWORK, scale, seed)
        until_s = None if number == 0 else end_s
        outcome.panels.append(
            over_time(runs.values(), setting.title, results_in_millions, "results (millions)", until_s)
        )
        for other in LABELS[1:]:
            outcome.figures.append(ahead_figure(setting.title, runs["RPJ"], runs[other], end_s))
            ratio = runs["RPJ"].at(end_s).results / max(1, runs[other].at(end_s).results)
            outcome.figures.append(Figure(f"RPJ over {other} at the end of transmission, {setting.title}", "", ratio))
    return outcome


EXPERIMENT = Experiment("rpj-fig8", "Results over time, reliable network", "RPJ, figure 8", _run, default_scale=0.1)
