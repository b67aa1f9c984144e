"""``python -m earlyjoin``: the same as the ``earlyjoin`` command."""

import sys

from earlyjoin.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
