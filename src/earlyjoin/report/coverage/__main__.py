"""``python -m earlyjoin.report.coverage [RUNS]``: about a quarter of an hour for 500 runs."""

import sys

from earlyjoin.report.coverage.table import coverage, markdown

if __name__ == "__main__":
    print(markdown(coverage(int(sys.argv[1]) if len(sys.argv) > 1 else 500)))
