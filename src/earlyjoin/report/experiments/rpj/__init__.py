"""The figures of the Rate-based Progressive Join paper, one module each."""

from earlyjoin.report.experiments.rpj import fig8, fig9, fig10, fig11, fig11_start, fig12

EXPERIMENTS = tuple(module.EXPERIMENT for module in (fig8, fig9, fig10, fig11, fig11_start, fig12))
