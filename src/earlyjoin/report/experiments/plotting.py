"""Experiments as pictures."""

from __future__ import annotations

import math
import os
from typing import Any

from earlyjoin.errors import InputError
from earlyjoin.report.experiments.experiment import Experiment, Findings, Panel

_COLOURS = ("#1b6ca8", "#d1495b", "#66a182", "#edae49", "#8d6a9f", "#2e4057")
_STYLES = ("-", "--", "-.", ":", (0, (3, 1, 1, 1)), (0, (5, 1)))
_ACROSS = 3
"""Most diagrams side by side; four make a square."""


def plot(experiment: Experiment, outcome: Findings, path: str | os.PathLike[str]) -> None:
    """Draw all panels into a file; its extension (.png, .svg, .pdf) tells the format."""
    try:
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        raise InputError("plots need matplotlib, which is not installed; run: pip install 'earlyjoin[plot]'") from None
    count = len(outcome.panels)
    columns = 2 if count == 4 else min(count, _ACROSS)
    rows = math.ceil(count / columns)
    figure, axes = pyplot.subplots(
        rows, columns, figsize=(5.6 * columns, 4.2 * rows), layout="constrained", squeeze=False
    )
    for axis in axes.flat[count:]:
        axis.set_visible(False)
    for axis, panel in zip(axes.flat, outcome.panels, strict=False):
        (_draw_bars if panel.bars else _draw)(axis, panel)
        _dress(axis, panel)
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
        axis.plot(curve.x, curve.y, linestyle=style, color=colour, label=curve.name, linewidth=1.8)
    axis.grid(visible=True, color="#dddddd", linewidth=0.6)
    if not any(panel.log):
        axis.margins(x=0.02)
        axis.set_ylim(bottom=min(0, axis.get_ylim()[0]))


def _draw_bars(axis: Any, panel: Panel) -> None:
    width = 0.8 / len(panel.curves)
    for number, (curve, colour) in enumerate(zip(panel.curves, ("#b8c4cf", *_COLOURS), strict=False)):
        places = [group - 0.4 + width * (number + 0.5) for group in range(len(panel.bars))]
        axis.bar(places, curve.y, width=0.94 * width, color=colour, label=curve.name)
    axis.set_xticks(range(len(panel.bars)), panel.bars)
    axis.tick_params(axis="x", length=0)
    axis.grid(visible=True, axis="y", color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.margins(y=0.12)  # room for the legend


def _dress(axis: Any, panel: Panel) -> None:
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
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=9, ncols=len(panel.curves) if panel.bars else 1)
