"""The start of RPJ figure 11: which of the variants with one kind of reactive task is ahead at first.

In the paper all have about as many results at first, and memory-disk tasks are said to be of advantage then. How much
of what could be found is found at once depends on how many suspensions there are while memory fills once, and that on
the scale; so the default is the paper's. Runs stop when a tenth of the transmission is over.
Rows wait for the end of a task and are joined together then: results come in lumps, so their means over spans of time
are held against each other.
"""

from __future__ import annotations

from earlyjoin.report.experiments.experiment import Curve, Experiment, Figure, Findings, Panel
from earlyjoin.report.experiments.moments import History
from earlyjoin.report.experiments.rpj.data import SETTINGS
from earlyjoin.report.experiments.rpj.fig10 import NETWORK
from earlyjoin.report.experiments.rpj.setting import both_flushed_s, end_of_transmission_s, run

_FIRST = 0.1
_HUNDREDTHS = 100


def _run(scale: float, seed: int) -> Findings:
    """The lead of RPJ-md in four settings."""
    outcome = Findings()
    for setting in SETTINGS:
        md, dd = (run(label, setting, NETWORK, scale, seed, first=_FIRST) for label in ("RPJ-md", "RPJ-dd"))
        end_s = end_of_transmission_s(setting, NETWORK, scale, seed)
        flushed_s = both_flushed_s(md, dd, _FIRST * end_s)
        spans = _spans(flushed_s, end_s)
        leads = [_lead(md, dd, span) for span in spans]
        middles = [_HUNDREDTHS * sum(span) / 2 / end_s for span in spans]
        curves = (Curve("RPJ-md over RPJ-dd", middles, leads), Curve("as many", middles, [0.0] * len(spans)))
        outcome.panels.append(Panel(setting.title, "time (% of the transmission)", "more results (%)", curves))
        what = f"% more results of RPJ-md in the first hundredth after the first flush, {setting.title}"
        lead = _lead(md, dd, (flushed_s, flushed_s + end_s / _HUNDREDTHS))
        outcome.figures.append(Figure(what, "0 or more", lead))
        behind_s = next((span[0] for span, lead in zip(spans, leads, strict=True) if lead < 0), _FIRST * end_s)
        what = f"% of the time over when RPJ-dd takes the lead (10: not before), {setting.title}"
        outcome.figures.append(Figure(what, "not said", _HUNDREDTHS * behind_s / end_s))
    return outcome


def _spans(flushed_s: float, end_s: float) -> list[tuple[float, float]]:
    """Half hundredths of the time axis from the first flush on."""
    half = end_s / (2 * _HUNDREDTHS)
    count = int((_FIRST * end_s - flushed_s) / half)
    return [(flushed_s + half * number, flushed_s + half * (number + 1)) for number in range(count)]


def _lead(one: History, other: History, span: tuple[float, float]) -> float:
    """How many per cent more results one has, on average over a span."""
    return 100 * (one.mean_results(*span) / max(1.0, other.mean_results(*span)) - 1)


EXPERIMENT = Experiment("rpj-fig11-start", "Variants of RPJ, the first tenth of the time", "RPJ, figure 11", _run)
