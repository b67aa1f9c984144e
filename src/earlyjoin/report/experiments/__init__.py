"""Experiments: figures of the papers, run again on counted work."""

from earlyjoin.report.experiments import ehj, pmj, rpj
from earlyjoin.report.experiments.experiment import Experiment, Outcome

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment for experiment in (*pmj.EXPERIMENTS, *ehj.EXPERIMENTS, *rpj.EXPERIMENTS)
}

__all__ = ["EXPERIMENTS", "Experiment", "Outcome"]
