"""Experiments: figures of the papers, run again on counted work."""

from earlyjoin.report.experiments import pmj, pmj_fig11
from earlyjoin.report.experiments.experiment import Experiment, Outcome

EXPERIMENTS: dict[str, Experiment] = {one.name: one for one in (*pmj.EXPERIMENTS, *pmj_fig11.EXPERIMENTS)}

__all__ = ["EXPERIMENTS", "Experiment", "Outcome"]
