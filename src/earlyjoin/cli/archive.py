"""``earlyjoin archive``: the package as a zip that Spark can send to executors."""

from __future__ import annotations

import argparse

from earlyjoin.cli.arguments import EXIT_DONE
from earlyjoin.cli.speaking import say
from earlyjoin.spark.archive import make_archive


def run(options: argparse.Namespace) -> int:
    """Write the zip and say how to use it."""
    path = make_archive(options.output)
    say(f"{path}: {path.stat().st_size:,} bytes; send it to executors with")
    say(f"  spark-submit --py-files {path} …             or --py-files of pyspark")
    say(f"  spark.addArtifacts({str(path)!r}, pyfile=True)     on a Connect session")
    say("executors need numpy, numba and pyarrow")
    return EXIT_DONE
