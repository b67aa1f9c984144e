"""``earlyjoin experiment``: a figure of a paper, run again."""

from __future__ import annotations

import argparse
import json

from earlyjoin.cli.arguments import EXIT_DONE
from earlyjoin.cli.speaking import say, tell
from earlyjoin.cli.tables import aligned
from earlyjoin.errors import InputError
from earlyjoin.report.experiments import EXPERIMENTS
from earlyjoin.report.experiments.experiment import Experiment, Figure, Findings
from earlyjoin.report.experiments.plotting import plot


def run(options: argparse.Namespace) -> int:
    """List the experiments, or run one and print its numbers beside the paper's."""
    if options.name == "list":
        say(aligned(["name", "what", "from"], [[e.name, e.title, e.paper] for e in EXPERIMENTS.values()]))
        return EXIT_DONE
    experiment = EXPERIMENTS.get(options.name)
    if experiment is None:
        raise InputError(f"unknown experiment {options.name!r}; choose one of: {', '.join(['list', *EXPERIMENTS])}")
    scale = options.scale if options.scale is not None else experiment.default_scale
    tell(f"{experiment.title} ({experiment.paper}), scale {scale:g}")
    outcome = experiment.run(scale, options.seed)
    if options.plot is not None:
        plot(experiment, outcome, options.plot)
        tell(f"picture: {options.plot}")
    say(json.dumps({"name": experiment.name, **outcome.to_dict()}) if options.json else _text(experiment, outcome))
    return EXIT_DONE


def _text(experiment: Experiment, outcome: Findings) -> str:
    table = aligned(
        ["number", "paper", "measured", "ratio"], [_row(figure) for figure in outcome.figures], right=[2, 3]
    )
    return "\n".join([table, *outcome.notes])


def _row(figure: Figure) -> list[str]:
    measured = f"{figure.measured:,.0f}" if figure.measured >= 100 else f"{figure.measured:.3g}"
    return [figure.what, figure.paper, measured, "" if figure.ratio is None else f"{figure.ratio:.2f}"]
