"""EHJ figure 8: execution times at small and large memory."""

from __future__ import annotations

from earlyjoin.report.experiments.ehj.setting import beside, many_to_many, one_to_many
from earlyjoin.report.experiments.experiment import Curve, Experiment, Findings, Panel

PAPER = {
    "EHJA": (61.0, 32.8, 55.5),
    "EHJ1": (60.9, 32.6, 52.8),
    "EHJ2": (60.9, 32.5, 52.4),
    "DHJ": (62.6, 33.7, 52.9),
    "HMJ": (87.6, 49.5, 56.1),
    "XJoin": (71.3, 60.2, 53.0),
}
"""Seconds of 1:N with memory for 10 % of R, 1:N with 80 %, N:M with 10 %."""
_COLUMNS = (
    ("1:N, memory 10 % of R", one_to_many, 15_000),
    ("1:N, memory 80 % of R", one_to_many, 120_000),
    ("N:M, memory 10 % of R", many_to_many, 80_000),
)


def run(scale: float, seed: int) -> Findings:
    """All of the table."""
    figures, panels = [], []
    for column, (title, join, memory) in enumerate(_COLUMNS):
        seconds = {label: join(label, scale, seed, memory).last.seconds for label in PAPER}
        figures += [
            beside(f"virtual seconds, {title}, {label}", PAPER[label][column], seconds[label], scale) for label in PAPER
        ]
        bars = (
            Curve("paper", list(range(len(PAPER))), [scale * times[column] for times in PAPER.values()]),
            Curve("measured", list(range(len(PAPER))), list(seconds.values())),
        )
        panels.append(Panel(title, "", "seconds (paper) and virtual seconds", bars, bars=tuple(PAPER)))
    return Findings(panels, figures)


EXPERIMENT = Experiment("ehj-fig8", "Memory size", "EHJ, figure 8", run)
