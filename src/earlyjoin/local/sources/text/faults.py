"""From what pyarrow raises to what a user can act on: which file, and whether it is its content or the disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from earlyjoin.errors import InputError, SourceError


def first_line(error: BaseException) -> str:
    """The message of an error in one line: pyarrow appends context that means nothing to the user."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def reason(error: BaseException) -> str:
    """Why the system or Arrow refused, without the words that pyarrow puts around what the system said."""
    number = getattr(error, "errno", None)
    return os.strerror(number) if number is not None else first_line(error)


@contextmanager
def opening(file: str, kind: str) -> Iterator[None]:
    """Errors while a file is opened: whatever is wrong, the caller named a file that cannot be used."""
    try:
        yield
    except pa.ArrowMemoryError:
        raise
    except OSError as error:
        if error.errno is not None:
            raise InputError(f"{file}: cannot be opened: {os.strerror(error.errno)}") from error
        raise InputError(f"{file}: is not a valid {kind} file: {first_line(error)}") from error
    except pa.ArrowException as error:
        raise InputError(f"{file}: is not a valid {kind} file: {first_line(error)}") from error


@contextmanager
def reading(file: str, kind: str) -> Iterator[None]:
    """Errors in the middle of a file that opened well.

    Arrow reports broken content as an ``OSError`` too; only one with an ``errno`` comes from the operating system.
    """
    try:
        yield
    except pa.ArrowMemoryError:
        raise
    except OSError as error:
        if error.errno is not None:
            raise SourceError(f"{file}: could not be read on: {os.strerror(error.errno)}") from error
        raise InputError(f"{file}: the {kind} content is broken: {first_line(error)}") from error
    except pa.ArrowException as error:
        raise InputError(f"{file}: the {kind} content is broken: {first_line(error)}") from error
