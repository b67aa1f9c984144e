"""The figures of the Early Hash Join paper, one module each."""

from earlyjoin.report.experiments.ehj import fig2, fig3, fig4, fig5, fig6, fig7, fig8, fig9

EXPERIMENTS = tuple(module.EXPERIMENT for module in (fig2, fig3, fig4, fig5, fig6, fig7, fig8, fig9))
