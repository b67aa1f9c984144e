"""Cases in a process of their own: one that crashes or hangs is a finding, and the next one gets a new process."""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

from earlyjoin.report.fuzz.cases import draw
from earlyjoin.report.fuzz.checking import Ending, Verdict, judge
from earlyjoin.report.fuzz.running import run

HANG_S = 150.0
_GRACE_S = 15.0
_TRACEBACK_LINES = 4

Work = Callable[[int], tuple[str, Verdict]]


def run_case(seed: int) -> tuple[str, Verdict]:
    """Draw, run and judge one case: what it was, and what came of it."""
    case = draw(seed)
    outcome = run(case)
    verdict = judge(case, outcome)
    if len(outcome.inputs) == len(case.forms):
        case = replace(case, forms=(outcome.inputs[0].form, outcome.inputs[1].form))
    if verdict.kind is Ending.ERROR and outcome.error is not None:
        where = traceback.extract_tb(outcome.error.__traceback__)[-_TRACEBACK_LINES:]
        places = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(where))
        verdict = Verdict(verdict.kind, f"{verdict.detail} (in {places})")
    return case.text, verdict


def _described(seed: int) -> str:
    """What a case was that can no longer tell it."""
    with contextlib.suppress(Exception):
        return draw(seed).text
    return "cannot be drawn"


class Worker:
    """A process that runs one case at a time, and is replaced when it dies."""

    def __init__(self, work: Work = run_case, hang_s: float = HANG_S) -> None:
        self._work, self._hang_s = work, hang_s
        self._process: Any = None
        self._pipe: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._end()

    def run(self, seed: int) -> tuple[str, Verdict]:
        """What became of the case."""
        pipe = self._ready()
        try:
            pipe.send(seed)
            if not pipe.poll(self._hang_s + _GRACE_S):
                self._end()
                return "", Verdict(Ending.HANG, f"no end after {self._hang_s:.0f} s")
            answer: tuple[str, Verdict] = pipe.recv()
        except (EOFError, OSError):
            return "", self._dead()
        return answer

    def results(self, seeds: Iterable[int]) -> Iterator[tuple[int, str, Verdict]]:
        """One case after the other."""
        for seed in seeds:
            text, verdict = self.run(seed)
            yield seed, text or _described(seed), verdict

    def _ready(self) -> Connection:
        if self._pipe is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, other = context.Pipe()
            self._process = context.Process(target=_serve, args=(other, self._work, self._hang_s), daemon=True)
            self._process.start()
            other.close()
        return self._pipe

    def _dead(self) -> Verdict:
        self._process.join(_GRACE_S)
        code = self._process.exitcode
        self._end()
        if code == 1:  # faulthandler's exit, after it has written where every thread was
            return Verdict(Ending.HANG, f"no end after {self._hang_s:.0f} s; the threads are above")
        return Verdict(
            Ending.CRASH, f"the process ended with {code}" + (f" (signal {-code})" if code and code < 0 else "")
        )

    def _end(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._process = self._pipe = None


def _serve(pipe: Connection, work: Work, hang_s: float) -> None:
    faulthandler.enable()
    while True:
        try:
            seed = pipe.recv()
        except (EOFError, OSError, KeyboardInterrupt):
            return
        faulthandler.dump_traceback_later(hang_s, exit=True, file=sys.stderr)
        try:
            answer = work(seed)
        except Exception as error:
            places = traceback.format_exc().strip().splitlines()[-3:]
            answer = "", Verdict(Ending.CRASH, f"in the fuzz itself: {type(error).__name__}: {' '.join(places)}")
        faulthandler.cancel_dump_traceback_later()
        pipe.send(answer)
