"""What an operator counts: the figures of the papers and the summary of every run come from here."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum


class Phase(StrEnum):
    """What the operator is doing."""

    ARRIVING = "arriving"
    REACTIVE = "reactive"
    CLEANUP = "cleanup"


@dataclass(slots=True)
class Counters:
    """Machine-independent work. Same input order, seed and budget give the same numbers."""

    results: dict[Phase, int] = field(default_factory=lambda: dict.fromkeys(Phase, 0))
    rows_in: list[int] = field(default_factory=list)
    comparisons: int = 0
    tuples_written: int = 0
    tuples_read: int = 0
    pages_written: int = 0
    """In the hash family, with memory in rows: partitions that leave together share pages."""
    pages_read: int = 0
    bytes_written: int = 0
    bytes_read: int = 0
    flushes: int = 0
    seeks: int = 0
    """Random accesses (hash family): one for each flush, however many partitions leave; else pages written or read that
    do not lie behind the last one of the same run."""
    inserts_avoided: int = 0
    """Arriving rows that need not be kept: they have met all that they could meet."""
    discards: int = 0
    """Rows that left memory for good before the end, for the same reason."""

    @property
    def rows_out(self) -> int:
        """Result rows of all phases."""
        return sum(self.results.values())

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return asdict(self) | {"results": {phase.value: count for phase, count in self.results.items()}}

    @classmethod
    def from_dict(cls, values: dict[str, object]) -> Counters:
        """The inverse of ``to_dict``."""
        results = values["results"]
        assert isinstance(results, dict)
        return cls(**(values | {"results": {Phase(name): count for name, count in results.items()}}))  # type: ignore[arg-type]
