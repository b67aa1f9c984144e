"""Random settings of a join: algorithm, its options, memory, batches, and what happens meanwhile."""

from __future__ import annotations

from dataclasses import Field, dataclass, fields
from typing import Any

from earlyjoin.algorithms import registry
from earlyjoin.report.fuzz.columns import Rng

HOWS = ("inner", "left", "right", "full", "semi", "anti")
EVENTS: dict[str, float] = {
    "nothing": 0.36,
    "pause": 0.14,
    "memory": 0.08,
    "stop": 0.05,
    "close": 0.03,
    "damaged spill": 0.14,
    "damaged state": 0.06,
    "changed input": 0.08,
    "changed while paused": 0.06,
}
"""What may happen while a join runs, and how often it does."""

HARMFUL = frozenset({"damaged spill", "damaged state", "changed input", "changed while paused"})
"""After these an error that names the file is as good as the right result."""

_LEFT_ALONE = frozenset({"one_side"})
"""Options that promise something of the data."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything about a join but its inputs and its condition."""

    how: str
    algorithm: str
    options: dict[str, Any]
    memory: str | None
    batch_rows: int
    reading: str
    driving: str
    event: str
    at: int
    """The batch after which it happens."""

    @property
    def text(self) -> str:
        """In a few words."""
        options = "".join(f" {name}={value}" for name, value in self.options.items())
        sizes = f"memory {self.memory}, batches of {self.batch_rows}, reading {self.reading} {self.driving}"
        event = "" if self.event == "nothing" else f", {self.event} after {self.at} batches"
        return f"{self.how} {self.algorithm}{options}, {sizes}{event}"


def draw_settings(
    rng: Rng, *, hashable: bool, sweepable: bool, sortable: bool, replayable: bool, files: bool
) -> Settings:
    """Settings for a condition with an equality, or one that can be swept, or neither."""
    algorithm = _algorithm(rng, hashable, sweepable)
    allowed = [name for name in EVENTS if _possible(name, replayable, files)]
    weights = [EVENTS[name] for name in allowed]
    event = str(rng.choice(allowed, p=[weight / sum(weights) for weight in weights]))
    how = str(rng.choice(HOWS))
    options = _options(rng, algorithm)
    if not (sortable and how == "inner"):
        options.pop("sorted_output", None)
    return Settings(
        how=how,
        algorithm=algorithm,
        options=options,
        memory=draw_memory(rng, small=event == "damaged spill"),
        batch_rows=int(rng.choice([1, 7, 64, 500, 4096, 65536], p=[0.03, 0.1, 0.2, 0.3, 0.2, 0.17])),
        reading=str(rng.choice(["auto", "1:1", "5:1", "1:3"], p=[0.7, 0.1, 0.1, 0.1])),
        driving=str(rng.choice(["auto", "push"], p=[0.85, 0.15])),
        event=event,
        at=int(rng.choice([0, 1, 2, 5, 20])),
    )


def draw_memory(rng: Rng, *, small: bool = False, rows: bool | None = None) -> str | None:
    """From 64 KiB on, evenly on a scale of powers; in rows at times."""
    if rows is None:
        rows = bool(rng.random() < 0.2)
    if rows:
        return f"{int(10 ** rng.uniform(1, 2.5 if small else 4))}rows"
    if not small and rng.random() < 0.1:
        return None
    return f"{int(2 ** rng.uniform(16, 18.5 if small else 26))}"


def _possible(event: str, replayable: bool, files: bool) -> bool:
    if event.startswith("changed"):
        return files and (replayable or event == "changed input")
    return replayable or event not in ("pause", "damaged state")


def _algorithm(rng: Rng, hashable: bool, sweepable: bool) -> str:
    if rng.random() < 0.2:
        return "auto"
    needs = {"HASHABLE": hashable, "SWEEPABLE": sweepable or hashable}
    able = [name for name in registry.names() if needs.get(registry.get(name).description.needs.name or "", True)]
    return str(rng.choice(able))


def _options(rng: Rng, algorithm: str) -> dict[str, Any]:
    if algorithm == "auto" or rng.random() < 0.6:
        return {}
    chosen = {one.name: _option(rng, one) for one in fields(registry.get(algorithm).options_type) if rng.random() < 0.3}
    return {name: value for name, value in chosen.items() if value is not None}


def _option(rng: Rng, one: Field[Any]) -> Any:
    if one.name in _LEFT_ALONE:
        return None
    if one.metadata["of"]:
        return str(rng.choice(one.metadata["of"]))
    if isinstance(one.default, bool):
        return bool(rng.random() < 0.5)
    if "float" in str(one.type):
        return None
    least, most = one.metadata["least"] or 1, one.metadata["most"] or 40
    return int(rng.integers(least, max(least, min(most, 40)) + 1))
