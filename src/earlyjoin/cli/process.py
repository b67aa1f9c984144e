"""The process of the command: what is worth doing only where nothing but the command runs in it.

Starting and ending Python would take half as long as joining a few rows. Imports make some hundred thousand objects
that live as long as the process, and the collector of garbage would look at them again and again. At the end the
interpreter takes all modules apart, piece by piece, before the system gives back their memory at once.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from typing import NoReturn

from earlyjoin.cli.main import main
from earlyjoin.cli.speaking import discard

_COLLECT_AFTER = 1_000_000
"""New objects until the collector looks; Python's own 700 suits programs that begin with nothing."""


def command() -> NoReturn:
    """Run the command line in a process of its own, and end that process."""
    gc.set_threshold(_COLLECT_AFTER, *gc.get_threshold()[1:])
    _end(main())


def _end(code: int) -> NoReturn:
    """Do what is to be done at exit, and leave; where threads are to be waited for, the interpreter does it."""
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    if "pyspark" in sys.modules or not all(thread.daemon for thread in others):
        sys.exit(code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:  # all that had to arrive was flushed, and complained of, before
            discard(stream)
    os._exit(code)
