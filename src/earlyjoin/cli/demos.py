"""``earlyjoin demo``: on Spark where Spark can run, else in this process."""

from __future__ import annotations

import argparse
from importlib.util import find_spec

from earlyjoin.cli.speaking import tell
from earlyjoin.errors import InputError
from earlyjoin.spark.session import INSTALL, missing_java


def run(options: argparse.Namespace) -> int:
    """The demo that was asked for, or that is possible. ``--seconds`` is about the bursty sources of the local one."""
    missing = missing_java() if find_spec("pyspark") is not None else f"PySpark is not installed ({INSTALL})"
    if options.engine == "spark" and missing is not None:
        raise InputError(f"--engine spark: {missing}")
    if options.engine == "spark" or (options.engine == "auto" and options.seconds is None and missing is None):
        from earlyjoin.cli.demo_spark import run as on_spark

        return on_spark(options)
    if options.engine == "auto" and missing is not None:
        tell(f"earlyjoin: the local demo, because {missing}")
    from earlyjoin.cli.demo import run as locally

    return locally(options)
