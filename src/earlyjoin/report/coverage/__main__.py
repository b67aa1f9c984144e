"""``python -m earlyjoin.report.coverage [RUNS]``: about a quarter of an hour for 500 runs.

``python -m earlyjoin.report.coverage blocks [RUNS]``: the intervals of the Spark engine, from random blocks of files;
a quarter of an hour for 100 runs a shape.
"""

import sys

from earlyjoin.report.coverage.block_rounds import report
from earlyjoin.report.coverage.table import coverage, markdown

if __name__ == "__main__":
    of_blocks = sys.argv[1:2] == ["blocks"]
    given = sys.argv[2:] if of_blocks else sys.argv[1:]
    runs = int(given[0]) if given else None
    print(report(runs or 100) if of_blocks else markdown(coverage(runs or 500)))
