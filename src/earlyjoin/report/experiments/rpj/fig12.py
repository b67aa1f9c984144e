"""RPJ figure 12: cost of a result over time, RPJ and its variants, unreliable network, both streams equally fast."""

from __future__ import annotations

from earlyjoin.report.experiments.experiment import Experiment, Findings
from earlyjoin.report.experiments.rpj.data import SETTINGS
from earlyjoin.report.experiments.rpj.fig10 import NETWORK
from earlyjoin.report.experiments.rpj.fig11 import LABELS
from earlyjoin.report.experiments.rpj.setting import cheaper_figure, cost_over_time, end_of_transmission_s, run


def _run(scale: float, seed: int) -> Findings:
    """Two diagrams, until the end of the transmission."""
    outcome = Findings()
    for setting in SETTINGS[:2]:
        runs = {label: run(label, setting, NETWORK, scale, seed) for label in LABELS}
        end_s = end_of_transmission_s(setting, NETWORK, scale, seed)
        outcome.panels.append(cost_over_time(runs.values(), setting.title, end_s))
        outcome.figures += [cheaper_figure(setting.title, runs["RPJ"], runs[other], end_s) for other in LABELS[1:]]
    return outcome


EXPERIMENT = Experiment("rpj-fig12", "Cost of a result, variants of RPJ", "RPJ, figure 12", _run, default_scale=0.1)
