"""How often do the intervals of the estimators contain the truth? Seeded runs, no clock.

Each run draws two inputs and their random order by its seed, joins them block by block and asks the estimators after
some of the blocks. ``python -m earlyjoin.report.coverage`` prints the table of docs/estimates.md. Intervals that the
Spark engine gives from random blocks of files have runs of their own (``block_rounds``): ``... coverage blocks``.
"""

from earlyjoin.report.coverage.designs import run
from earlyjoin.report.coverage.inputs import SCENARIOS, InputPair
from earlyjoin.report.coverage.table import Coverage, coverage, markdown

__all__ = ["SCENARIOS", "Coverage", "InputPair", "coverage", "markdown", "run"]
