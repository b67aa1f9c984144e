"""Experiments: figures of the papers, run again on counted work."""

from earlyjoin.report.experiments import ehj, pmj, pmj_fig11, rpj
from earlyjoin.report.experiments.experiment import Experiment, Findings

EXPERIMENTS: dict[str, Experiment] = {
    one.name: one for one in (*pmj.EXPERIMENTS, *pmj_fig11.EXPERIMENTS, *ehj.EXPERIMENTS, *rpj.EXPERIMENTS)
}

__all__ = ["EXPERIMENTS", "Experiment", "Findings"]
