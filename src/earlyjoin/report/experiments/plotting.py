"""Experiments as pictures."""

from __future__ import annotations

import os
from typing import Any

from earlyjoin.errors import InputError
from earlyjoin.report.experiments.experiment import Experiment, Outcome, Panel

_COLOURS = ("#1b6ca8", "#d1495b", "#66a182", "#edae49", "#8d6a9f", "#2e4057")
_STYLES = ("-", "--", "-.", ":", "-", "--")


def plot(experiment: Experiment, outcome: Outcome, path: str | os.PathLike[str]) -> None:
    """Draw all panels side by side into a file; its extension (.png, .svg, .pdf) tells the format."""
    try:
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        raise InputError("plots need matplotlib, which is not installed; run: pip install 'earlyjoin[plot]'") from None
    count = len(outcome.panels)
    figure, axes = pyplot.subplots(1, count, figsize=(5.6 * count, 4.2), layout="constrained", squeeze=False)
    for axis, panel in zip(axes[0], outcome.panels, strict=True):
        _draw(axis, panel)
    figure.suptitle(f"{experiment.title}  ({experiment.paper})", fontsize=11)
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot write the picture {os.fspath(path)!r}: {error}") from error
    finally:
        pyplot.close(figure)


def _draw(axis: Any, panel: Panel) -> None:
    if panel.band is not None:
        axis.fill_between(*panel.band, color=_COLOURS[0], alpha=0.18, linewidth=0, label="95 % interval")
    for curve, colour, style in zip(panel.curves, _COLOURS, _STYLES, strict=False):
        axis.plot(curve.x, curve.y, style, color=colour, label=curve.name, linewidth=1.8)
    axis.set_title(panel.title, fontsize=10)
    axis.set_xlabel(panel.x_label)
    axis.set_ylabel(panel.y_label)
    if panel.log[0]:
        axis.set_xscale("log")
    if panel.log[1]:
        axis.set_yscale("log")
    elif max((max(curve.y, default=0) for curve in panel.curves), default=0) >= 10_000:
        axis.yaxis.set_major_formatter("{x:,.0f}")
    if panel.most_y is not None:
        axis.set_ylim(0, panel.most_y)
    axis.grid(visible=True, color="#dddddd", linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=9)
