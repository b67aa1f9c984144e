"""RPJ figure 9: cost of a result over time on a reliable network."""

from __future__ import annotations

from earlyjoin.report.experiments.experiment import Experiment, Findings
from earlyjoin.report.experiments.rpj.data import SETTINGS
from earlyjoin.report.experiments.rpj.fig8 import LABELS, NETWORK
from earlyjoin.report.experiments.rpj.setting import cheaper_figure, cost_over_time, end_of_transmission_s, run


def _run(scale: float, seed: int) -> Findings:
    """Four diagrams, until the end of the transmission."""
    outcome = Findings()
    for setting in SETTINGS:
        runs = {label: run(label, setting, NETWORK, scale, seed) for label in LABELS}
        end_s = end_of_transmission_s(setting, NETWORK, scale, seed)
        outcome.panels.append(cost_over_time(runs.values(), setting.title, end_s))
        outcome.figures += [cheaper_figure(setting.title, runs["RPJ"], runs[other], end_s) for other in LABELS[1:]]
    return outcome


EXPERIMENT = Experiment("rpj-fig9", "Cost of a result, reliable network", "RPJ, figure 9", _run, default_scale=0.1)
