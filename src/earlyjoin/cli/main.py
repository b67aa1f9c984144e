"""The ``earlyjoin`` command: from arguments to an exit code."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from io import TextIOWrapper

from earlyjoin.cli.arguments import EXIT_BAD_INPUT, EXIT_DONE, EXIT_FAILED, EXIT_INTERRUPTED, parse
from earlyjoin.cli.signals import aborted_by_signals
from earlyjoin.cli.speaking import discard, tell
from earlyjoin.errors import EarlyJoinError, InputError


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 done, 1 failed, 2 bad arguments or input, 130 interrupted."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without ▁ shows ? and goes on
    with aborted_by_signals():
        return _run_and_tell(arguments)


def _run_and_tell(arguments: list[str] | None) -> int:
    try:
        return _run(parse(arguments))
    except SystemExit as end:  # argparse, after --help, --version or an error
        return end.code if isinstance(end.code, int) else EXIT_FAILED
    except BrokenPipeError:
        discard(sys.stdout)
        return EXIT_DONE
    except KeyboardInterrupt:
        return _end(EXIT_INTERRUPTED, "aborted; nothing was kept")
    except InputError as error:
        return _end(EXIT_BAD_INPUT, error.command or str(error))
    except EarlyJoinError as error:
        return _end(EXIT_FAILED, error.command or str(error))
    except Exception as error:
        return _end(EXIT_FAILED, f"internal error: {type(error).__name__}: {error}")


def _run(options: argparse.Namespace) -> int:
    """Each command is imported when it is asked for: the kernels take a second to load."""
    if options.command == "join":
        from earlyjoin.cli.joining import run
    elif options.command == "demo":
        from earlyjoin.cli.demos import run
    elif options.command == "experiment":
        from earlyjoin.cli.experiment import run
    elif options.command == "bench":
        from earlyjoin.cli.bench import run
    elif options.command == "archive":
        from earlyjoin.cli.archive import run
    else:
        from earlyjoin.cli.listing import run
    return run(options)


def _end(code: int, message: str) -> int:
    if os.environ.get("EARLYJOIN_DEBUG", "0") not in ("", "0"):
        traceback.print_exc()
    tell(f"earlyjoin: {' '.join(message.split())}")
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        discard(sys.stdout)
    return code
