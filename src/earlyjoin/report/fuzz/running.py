"""Runs a case: joins, meddles at the moment that was drawn, and tells how it ended."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import earlyjoin as ej
from earlyjoin.errors import EarlyJoinError, InputError
from earlyjoin.report.fuzz import meddling
from earlyjoin.report.fuzz.cases import Case
from earlyjoin.report.fuzz.columns import Rng
from earlyjoin.report.fuzz.inputs import Given, give
from earlyjoin.report.fuzz.settings import draw_memory
from earlyjoin.state.budget import MemoryLimit
from earlyjoin.state.rows.gathering import POOL_NAME

_OUTCOME_PATIENCE_S = 3.0
_MEDDLE_AGAIN = 0.3
_MOST_MEDDLING = 3


@dataclass(slots=True)
class CaseOutcome:
    """What came out, what went wrong, and what was left behind."""

    inputs: list[Given]
    batches: list[pa.RecordBatch] = field(default_factory=list)
    error: BaseException | None = None
    happened: bool = False
    """Did what was to happen meanwhile happen?"""
    ended_early: bool = False
    """Was it stopped, so that a part of the rows is right?"""
    limits: list[MemoryLimit] = field(default_factory=list)
    peaks: list[dict[str, Any]] = field(default_factory=list)
    left_files: list[str] = field(default_factory=list)
    left_threads: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """Rows that came out."""
        return sum(batch.num_rows for batch in self.batches)


def run(case: Case) -> CaseOutcome:
    """Join as the case says, in a directory of its own."""
    directory = Path(tempfile.mkdtemp(prefix="earlyjoin-fuzz-"))
    before = set(threading.enumerate())
    outcome = CaseOutcome([])
    try:
        rng = case.rng(1)
        (directory / "spill").mkdir()
        for table, form, letter in zip(case.tables, case.forms, "lr", strict=True):
            outcome.inputs.append(give(table, form, directory, letter, rng))
        try:
            _Run(case, outcome, directory).go()
        except Exception as error:
            outcome.error = error
        for given in outcome.inputs:
            given.finish()
        outcome.left_files = [str(path.relative_to(directory)) for path in sorted((directory / "spill").rglob("*"))]
        outcome.left_threads = _threads_since(before)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return outcome


class _Run:
    """One join, and perhaps the one that goes on with it."""

    def __init__(self, case: Case, outcome: CaseOutcome, directory: Path) -> None:
        self._case, self._outcome, self._directory = case, outcome, directory
        self._spill = directory / "spill"
        self._rng: Rng = case.rng(2)
        self._meddled = 0

    def go(self) -> None:
        """Join until the end, or until what happens meanwhile ends it."""
        query = self._started()
        try:
            for number in self._batches(query):
                if number < self._case.settings.at:
                    continue
                resumed = self._happens(query)
                if resumed is not None:
                    query = resumed
                    for _ in self._batches(query):
                        pass
                    break
                if self._outcome.ended_early:
                    break
        finally:
            self._outcome.peaks.append(query.summary()["memory"])
            query.close()

    def _started(self) -> ej.Query:
        case, settings = self._case, self._case.settings
        left, right = (given.data for given in self._outcome.inputs)
        query = ej.join(
            left,
            right,
            on=case.condition.on,
            where=case.condition.where or None,
            how=settings.how,
            algorithm=settings.algorithm,
            options=settings.options or None,
            memory=settings.memory,
            batch_rows=settings.batch_rows,
            reading=settings.reading,
            driving=settings.driving,  # type: ignore[arg-type]
            spill_directory=self._spill,
            seed=case.seed % 1000,
        )
        self._outcome.limits.append(query.memory)
        return query

    def _batches(self, query: ej.Query) -> Iterator[int]:
        """Takes batches; gives their numbers, and 0 before the first."""
        yield 0
        for number, batch in enumerate(query, start=1):
            self._outcome.batches.append(batch)
            yield number

    def _happens(self, query: ej.Query) -> ej.Query | None:
        """What was to happen, happens; returns the query that goes on if it is another one."""
        event, outcome = self._case.settings.event, self._outcome
        if event == "damaged spill":
            if self._meddled < _MOST_MEDDLING and (self._meddled == 0 or self._rng.random() < _MEDDLE_AGAIN):
                self._meddled += meddling.damage_some(meddling.files_below(self._spill), self._rng)
                outcome.happened = self._meddled > 0
            return None
        if outcome.happened or event == "nothing":
            return None
        outcome.happened = True
        if event in ("pause", "damaged state", "changed while paused"):
            return self._pause(query)
        if event == "memory":
            self._set_memory(query)
        elif event == "changed input":
            self._change_input()
        else:
            query.stop() if event == "stop" else query.close()
            outcome.ended_early = True
        return None

    def _pause(self, query: ej.Query) -> ej.Query:
        saved, outcome = self._directory / "saved", self._outcome
        query.pause(saved)
        outcome.peaks.append(query.summary()["memory"])
        if self._case.settings.event == "damaged state":
            meddling.damage_some(meddling.files_below(saved), self._rng)
        elif self._case.settings.event == "changed while paused":
            self._change_input()
        left, right = (given.data if given.in_memory else None for given in outcome.inputs)
        return ej.resume(saved, left=left, right=right, spill_directory=self._spill)

    def _set_memory(self, query: ej.Query) -> None:
        wanted = draw_memory(self._rng, rows=query.memory.rows is not None)
        if wanted is None:
            return
        try:
            query.set_memory(wanted)
        except InputError:
            return  # it may refuse, and goes on
        self._outcome.limits.append(MemoryLimit.parse(wanted))

    def _change_input(self) -> None:
        inputs = [given for given in self._outcome.inputs if given.files]
        if inputs:
            meddling.change(inputs[self._rng.integers(len(inputs))], self._rng)


def names_a_file(error: EarlyJoinError) -> bool:
    """Does the message name a file of the case? All of them lie below one directory."""
    return "earlyjoin-fuzz-" in str(error)


def _threads_since(before: set[threading.Thread]) -> list[str]:
    """Threads that are still there after a moment, but for the pool that all queries of a process share."""
    end = time.monotonic() + _OUTCOME_PATIENCE_S
    while (left := _of_queries() - before) and time.monotonic() < end:
        time.sleep(0.01)
    return sorted(thread.name for thread in left)


def _of_queries() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if not thread.name.startswith(POOL_NAME)}
