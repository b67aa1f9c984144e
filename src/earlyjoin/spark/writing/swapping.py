"""A directory on this machine that is replaced only by one that is complete."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path
from typing import Self


class Swap:
    """Write into ``hidden``, then ``commit``: it takes the name of the target, and what was there goes away.

    Without a ``commit`` nothing is left of the hidden directory, and the target is as it was.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        # Spark and others pass over names that begin with a dot.
        self._mark = uuid.uuid4().hex[:12]
        self.hidden = target.with_name(f".{target.name}.{self._mark}.new")
        self._made = _first_missing(target.parent)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.hidden, ignore_errors=True)
        if self._made is not None and not self._target.exists():
            shutil.rmtree(self._made, ignore_errors=True)

    def commit(self) -> None:
        """Let the new directory take the place of the old one."""
        old = self._target.with_name(f".{self._target.name}.{self._mark}.old")
        replaced = self._target.exists()
        if replaced:
            self._target.rename(old)
        try:
            self.hidden.rename(self._target)
        except BaseException:
            if replaced:
                old.rename(self._target)
            raise
        if replaced:
            shutil.rmtree(old, ignore_errors=True)


def _first_missing(directory: Path) -> Path | None:
    """The uppermost directory that is not there yet."""
    missing = [one for one in (directory, *directory.parents) if not one.exists()]
    return missing[-1] if missing else None
