"""RPJ figure 10: results over time on an unreliable network."""

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
NETWORK = "unreliable"


def _run(scale: float, seed: int) -> Findings:
    """Four diagrams of the entire join."""
    outcome = Findings()
    for setting in SETTINGS:
        runs = {label: run(label, setting, NETWORK, scale, seed) for label in LABELS}
        end_s = end_of_transmission_s(setting, NETWORK, scale, seed)
        outcome.panels.append(over_time(runs.values(), setting.title, results_in_millions, "results (millions)"))
        for label, history in runs.items():
            share = history.at(end_s).results / history.last.results
            paper = "most" if label == "RPJ" else "about 0.2"
            what = f"share of the results at the end of transmission, {label}, {setting.title}"
            outcome.figures.append(Figure(what, paper, share))
        for other in LABELS[1:]:
            outcome.figures.append(ahead_figure(setting.title, runs["RPJ"], runs[other], end_s))
            ratio = runs["RPJ"].at(end_s).results / max(1, runs[other].at(end_s).results)
            what = f"RPJ over {other} at the end of transmission, {setting.title}"
            outcome.figures.append(Figure(what, "2.5 or more", ratio, ratio / 2.5))
    return outcome


EXPERIMENT = Experiment("rpj-fig10", "Results over time, unreliable network", "RPJ, figure 10", _run, default_scale=0.1)
