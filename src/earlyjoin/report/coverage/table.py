"""The table: every kind of input, every way to join, every estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from earlyjoin.report.coverage.designs import CHECKED, Design, SeededRun, run
from earlyjoin.report.coverage.inputs import SCENARIOS, InputPair

FIRST_SEED = 10_000
"""The allowance of the honest interval was chosen on seeds 0 to 499; the table is made with others."""
DESIGNS: tuple[Design, ...] = ("ripple", "diagonal", "pmj")


@dataclass(frozen=True, slots=True)
class Coverage:
    """How one estimator did after so many blocks."""

    inputs: str
    design: str
    aggregate: str
    estimator: str
    after_blocks: int
    runs: int
    alarms: float
    """Share of the runs in which the random order was taken for something else."""
    covered: float
    """Share of the runs whose interval contains the truth."""
    error: float
    """95th percentile of the error really made, as a share of the truth."""
    half_width: float
    """Median half width of the interval, as a share of the truth."""

    @property
    def width_ratio(self) -> float:
        """How much wider the interval is than the error."""
        return self.half_width / self.error if self.error else 1.0


def coverage(
    runs: int = 500,
    *,
    scenarios: Sequence[InputPair] = SCENARIOS,
    designs: Sequence[Design] = DESIGNS,
    seed: int = FIRST_SEED,
) -> list[Coverage]:
    """A line for every scenario, design, aggregate, estimator and checked block."""
    lines = []
    for inputs in scenarios:
        for design in designs:
            made = [run(inputs, design, seed + number) for number in range(runs)]
            asked = dict.fromkeys((aggregate, name) for one in made for name, aggregate, _ in one.estimates)
            for aggregate, name in asked:
                lines += [_line(inputs.name, design, aggregate, name, block, made) for block in CHECKED]
    return lines


def _line(inputs: str, design: str, aggregate: str, name: str, block: int, made: list[SeededRun]) -> Coverage:
    key = (name, aggregate, block)
    found = [(one.estimates[key], one.truth[aggregate]) for one in made if key in one.estimates]
    covered = [estimate.low <= truth <= estimate.high for estimate, truth in found]
    errors = [abs(estimate.rows - truth) / truth for estimate, truth in found]
    widths = [(estimate.high - estimate.low) / 2 / truth for estimate, truth in found]
    return Coverage(
        inputs,
        design,
        aggregate,
        name,
        block,
        len(found),
        sum(one.alarms > 0 for one in made) / len(made),
        float(np.mean(covered)),
        float(np.percentile(errors, 95)),
        float(np.median(widths)),
    )


def markdown(lines: Sequence[Coverage]) -> str:
    """The table for the documentation: an estimator a column."""
    names = ("two-sided", "between blocks", "paper")
    cells: dict[tuple[str, str, str, int], dict[str, Coverage]] = {}
    for line in lines:
        cells.setdefault((line.aggregate, line.inputs, line.design, line.after_blocks), {})[line.estimator] = line
    text = [
        "| of | inputs | joined as | after block | error made (95th pct) | " + " | ".join(names) + " |",
        "|---|---|---|--:|--:|" + "---|" * len(names),
    ]
    for (aggregate, inputs, design, block), by_name in sorted(cells.items(), key=lambda item: item[0][0]):
        told = " | ".join(_cell(by_name.get(name)) for name in names)
        error = by_name["two-sided"].error
        text.append(f"| {aggregate} | {inputs} | {design} | {block} | {error:.2%} | {told} |")
    honest = [line for line in lines if line.estimator == "two-sided"]
    worst, widest = min(line.covered for line in honest), max(line.width_ratio for line in honest)
    few, alarms = min(line.runs for line in lines), max(line.alarms for line in lines)
    text += [
        "",
        f"two-sided: at least {worst:.1%} covered, at most {widest:.2f} times as wide as the error; "
        f"{few} runs or more a line; false alarms in at most {alarms:.1%} of the runs of a line",
    ]
    return "\n".join(text)


def _cell(line: Coverage | None) -> str:
    return "–" if line is None else f"{line.covered:.1%} · {line.half_width:.2%} · {line.width_ratio:.2f}"
