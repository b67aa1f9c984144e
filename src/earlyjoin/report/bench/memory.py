"""Resident memory of whole joins, beside what they were allowed: the memory that was given and a constant.

Each join runs in a process of its own, twice: rows iterated in Python, and written to Parquet by the command line.
Above base is the largest size of the process without that of one that has joined a few rows in the same way.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from earlyjoin.algorithms import registry
from earlyjoin.errors import EarlyJoinError
from earlyjoin.report.bench import memory_shapes
from earlyjoin.report.bench.measuring import TableOutcome
from earlyjoin.report.bench.memory_shapes import MemoryShape
from earlyjoin.report.bench.one_command import measure_command
from earlyjoin.report.bench.one_join import JoinToMeasure, measure, small_joins
from earlyjoin.state.budget import MemoryLimit, format_bytes

ALGORITHMS = ("shj", "ehj", "rpj", "pmj")
BUDGETS = ("16MB", "64MB", "256MB", "1GB")
MORE_BYTES = 64_000_000
"""What a process may grow by besides the memory that was given."""
_NO_ROOM = "does not fit"


@dataclass(frozen=True, slots=True)
class Cell:
    """One join, both ways; None where the system does not tell, and where it failed."""

    algorithm: str
    shape: str
    budget: str
    iterated_bytes: int | None = None
    written_bytes: int | None = None
    seconds: tuple[float, ...] = ()
    failure: str | None = None

    @property
    def allowed_bytes(self) -> int:
        """How far the process may grow."""
        return (MemoryLimit.parse(self.budget).bytes or 0) + MORE_BYTES

    @property
    def held(self) -> bool:
        """Is it no more?"""
        sizes = (self.iterated_bytes, self.written_bytes)
        fails = self.failure not in (None, _NO_ROOM)
        return not fails and all(size is None or size <= self.allowed_bytes for size in sizes)


class MemoryBenchmark:
    """Joins of some shapes with several memories."""

    def __init__(self, name: str, title: str, shapes: Sequence[MemoryShape], budgets: Sequence[str] = BUDGETS) -> None:
        self.name, self.title = name, title
        self._shapes, self._budgets = tuple(shapes), tuple(budgets)

    def missing(self) -> str | None:
        """Why it cannot run here; None when it can."""
        return None

    def run(self, directory: Path, scale: float, rounds: int, say: Callable[[str], None]) -> TableOutcome:
        """Every cell once: sizes vary little, so ``rounds`` does not matter."""
        cells = []
        for shape in self._shapes:
            say(f"{self.name}: preparing {shape.name} at scale {scale:g}")
            paths = shape.paths(directory, scale)
            # Beside the data: the system's temporary directory may be small.
            with tempfile.TemporaryDirectory(dir=directory) as scratch:
                for cell in self._cells(shape, paths, Path(scratch)):
                    say(f"{self.name}: {' '.join(_row(cell))}")
                    cells.append(cell)
        header = ["algorithm", "shape", "memory", "iterated", "written", "allowed", "aim"]
        missed = sum(not cell.held for cell in cells)
        aim = (
            f"the aim: a process at most {format_bytes(MORE_BYTES)} larger than that of a join of a few rows and the "
            f"memory: {f'MISSED {missed} times of {len(cells)}' if missed else 'reached'}"
        )
        values: list[dict[str, Any]] = [asdict(cell) | {"allowed_bytes": cell.allowed_bytes} for cell in cells]
        return TableOutcome(self.name, self.title, header, [_row(cell) for cell in cells], values, [aim])

    def _cells(self, shape: MemoryShape, paths: tuple[str, str], scratch: Path) -> Iterator[Cell]:
        for algorithm in ALGORITHMS:
            base = None
            for budget in self._budgets:
                task = JoinToMeasure(*paths, ("k", "k"), algorithm, budget, str(scratch / "joined.parquet"), shape.how)
                if base is None:
                    base = _base(task, scratch)
                try:
                    yield _measured(shape, task, base)
                except EarlyJoinError as error:
                    spills = registry.get(algorithm).description.spills
                    yield Cell(algorithm, shape.name, budget, failure=str(error) if spills else _NO_ROOM)


def _base(task: JoinToMeasure, scratch: Path) -> int:
    """The size of a process that has joined a few rows."""
    return max(measure_command(small).resident_bytes for small in small_joins(task, scratch))


def _measured(shape: MemoryShape, task: JoinToMeasure, base: int) -> Cell:
    iterated = measure(_without_sink(task))
    written = measure_command(task)
    if iterated.rows != written.rows:
        raise AssertionError(f"{iterated.rows:,} rows iterated, {written.rows:,} written")
    return Cell(
        task.algorithm,
        shape.name,
        task.memory,
        iterated.growth_bytes,
        written.resident_bytes - base,
        (iterated.seconds, written.seconds),
    )


def _without_sink(task: JoinToMeasure) -> JoinToMeasure:
    return JoinToMeasure(task.left, task.right, task.on, task.algorithm, task.memory, how=task.how)


def _row(cell: Cell) -> list[str]:
    if cell.failure is not None:
        verdict = cell.failure if cell.failure == _NO_ROOM else "FAILED"
        return [cell.algorithm, cell.shape, cell.budget, "", "", format_bytes(cell.allowed_bytes), verdict]
    sizes = ["unknown" if size is None else format_bytes(size) for size in (cell.iterated_bytes, cell.written_bytes)]
    verdict = "reached" if cell.held else "MISSED"
    return [cell.algorithm, cell.shape, cell.budget, *sizes, format_bytes(cell.allowed_bytes), verdict]


ALL = (
    MemoryBenchmark(
        "memory", "resident memory of a process above its base", (memory_shapes.NARROW, memory_shapes.WIDE)
    ),
    MemoryBenchmark(
        "memory-shapes",
        "resident memory of a process above its base, further shapes",
        memory_shapes.OTHERS,
        ("16MB", "64MB"),
    ),
)
