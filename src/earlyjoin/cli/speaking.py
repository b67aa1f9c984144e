"""What the command says: results on standard output, everything else on standard error.

A result that cannot be written is a failure. A message that nobody can read, as on a terminal that was closed,
is none.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TextIO

from earlyjoin.errors import SinkError


def say(text: str) -> None:
    """Print what was asked for, on standard output."""
    with standard_output():
        print(text)


def tell(text: str) -> None:
    """Print a message for people, on standard error, if there is one."""
    if sys.stderr is None:  # print would take standard output instead
        return
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Nobody reads it: let what is still buffered go nowhere, or the exit of the program would fail."""
    with contextlib.suppress(OSError, ValueError), open(os.devnull, "w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


@contextlib.contextmanager
def standard_output() -> Iterator[None]:
    """Around everything that writes to standard output: what was written has left, or it is an error."""
    if sys.stdout is None:
        raise SinkError("cannot write to standard output: it is closed")
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise  # nobody reads, which is no failure
    except OSError as error:
        raise SinkError(f"cannot write to standard output: {error.strerror or error}") from error
