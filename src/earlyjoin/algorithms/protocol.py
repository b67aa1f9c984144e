"""The one protocol that every algorithm follows and both runtimes drive.

::

        arrive(side, batch)*      react(slice)*         end(side), once a side       finish(), once
    ──▶ arriving ───────────▶ reactive (inputs silent) ──▶ arriving … ─────────▶ cleanup ──▶ done

Each call returns an iterator of steps: :class:`Matches` no longer than ``context.output_rows``, or None for a bounded
step that found nothing. The driver takes them one by one and may look at its inputs, or stop, in between. The state of
an operator is complete between two steps: it may be snapshot there, and ``resume()`` in the same or in a restored
operator goes on where the interrupted call stood. The next call may come only when the last one is exhausted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, ClassVar, TypeVar

import pyarrow as pa

from earlyjoin.algorithms.matching.join_types import JoinType
from earlyjoin.algorithms.options import OperatorOptions
from earlyjoin.algorithms.output import OutputSchema
from earlyjoin.predicates.base import Capability
from earlyjoin.predicates.conjunction import BoundConjunction
from earlyjoin.predicates.encoding.columns import SIDES
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.state.budget import Budget, MemoryLimit
from earlyjoin.state.clock import LogicalClock
from earlyjoin.state.counters import Counters, Phase
from earlyjoin.state.disk.spill import SpillDirectory
from earlyjoin.state.rows.store import Rows
from earlyjoin.state.snapshot import Snapshot

if TYPE_CHECKING:
    from earlyjoin.algorithms.estimation.joined_blocks import JoinedBlocks

DEFAULT_OUTPUT_ROWS = 65536


@dataclass(frozen=True, slots=True)
class Matches:
    """Result rows as row numbers: one entry for each side, None for a side that is null (or absent) in all of them."""

    rows: tuple[Rows | None, ...]
    index: tuple[Int64 | None, ...]

    def __len__(self) -> int:
        return next(len(index) for index in self.index if index is not None)


Step = Matches | None
"""What a bounded piece of work found; None when it found nothing."""

OptionsOf = TypeVar("OptionsOf", bound=OperatorOptions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be joined: the same for every algorithm."""

    schemas: tuple[pa.Schema, ...]
    condition: BoundConjunction
    output: OutputSchema
    """What goes out."""
    joined_row: OutputSchema
    """All columns of all sides by their output names, also for joins that give fewer: what filters look at."""
    how: JoinType = JoinType.INNER
    names: tuple[str, ...] = SIDES
    """What messages and reports call the inputs."""

    @property
    def sides(self) -> int:
        """Number of inputs."""
        return len(self.schemas)

    @property
    def text(self) -> str:
        """The join type and the condition, as a person would say it."""
        if self.condition.always:
            return "cross join, every pair of rows"
        return f"{self.how} join on {self.condition.text}"


@dataclass(slots=True, kw_only=True)
class Context:
    """What an operator works with: memory, disk, time, counters."""

    budget: Budget
    spill: SpillDirectory
    ticks: LogicalClock = field(default_factory=LogicalClock)
    counters: Counters = field(default_factory=Counters)
    output_rows: int = DEFAULT_OUTPUT_ROWS
    seed: int = 0
    rows_expected: tuple[int | None, ...] | None = None
    """About how many rows each input has, None where nobody knows."""
    bytes_expected: tuple[int | None, ...] | None = None
    row_nbytes: int = 0
    """About what a row of the input with the widest rows takes, as far as that is known."""
    key_nbytes: int = 0
    """What a key takes, where keys are as wide as rows."""
    concurrent: bool = False
    """May an operator work in a thread of its own? Then results come in an order that differs from run to run."""
    options: OperatorOptions | None = None
    """The algorithm's own options; None: its defaults."""

    def own_options(self, kind: type[OptionsOf]) -> OptionsOf:
        """The options as those of a family."""
        return kind.make(self.options)


@dataclass(slots=True)
class Slice:
    """A bounded piece of reactive work: at most ``steps`` steps, none once input waits."""

    steps: int
    input_waits: Callable[[], bool] = lambda: False

    @property
    def over(self) -> bool:
        """Must the operator return?"""
        return self.steps <= 0 or self.input_waits()

    def spend(self, steps: int = 1) -> None:
        """Some steps were done."""
        self.steps -= steps


class Formulas(Enum):
    """Which formulas predict the results and the I/O of a hash join."""

    FREEZING = auto()
    """Flushed partitions take no rows any longer, so complete partitions of R are in memory at the end."""
    REPLACING = auto()
    """Memory stays shared out about as the inputs come, and what is in it at the end is never written."""
    EMPTYING = auto()
    """The same, but in the end everything is written."""
    RESULTS_ONLY = auto()
    """Memory stays shared out as the inputs come; what is written and read depends on the data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What an algorithm is and can do, for the registry, ``explain`` and messages."""

    name: str
    title: str
    paper: str
    needs: Capability
    """A part of the condition must have this capability; NONE when any condition will do."""
    spills: bool
    """Can it join inputs larger than its memory?"""
    rows_at_once: float = 0
    """Rows that its part of the memory must hold so that it can go on, however much has been spilled: of two inputs."""
    join_types: frozenset[JoinType] = frozenset(JoinType)
    most_sides: int = 2
    joins_on_arrival: bool = False
    """Is an arriving row joined at once with all rows of the other side that are in memory?"""
    offers_blocks: bool = False
    """Do memory loads of both sides meet as blocks that the size can be estimated from? Options may forbid it."""
    gives_memory_back: bool = False
    """Can it go on with less memory than it holds?"""
    reading: str | None = None
    """How it prefers to read when it may choose: a text for ``make_reading``."""
    formulas: Formulas | None = None
    """The formulas that say before a run what it will show; None where there are none."""
    is_yardstick: bool = False
    """Is it there to measure others against? "auto" takes it only if nothing else can do the join."""
    remark: str = ""
    """What somebody should know for whom "auto" has picked it."""


class Operator(ABC):
    """A join algorithm at work. Its constructor takes a plan and a context, whatever the algorithm."""

    description: ClassVar[Description]
    options_type: ClassVar[type[OperatorOptions]] = OperatorOptions
    """What can be chosen about it."""
    build_side: int = 0
    """The input called R, to which reading strategies give their first number."""
    one_side: int | None = None
    """The input whose keys occur only once, where somebody has said so."""
    joined_blocks: JoinedBlocks | None = None
    """The blocks that it offers for estimates in this run."""

    def __init__(self, plan: Plan, context: Context) -> None:
        self.plan = plan
        self.context = context
        self.phase = Phase.ARRIVING
        if not context.counters.rows_in:
            context.counters.rows_in = [0] * plan.sides

    @abstractmethod
    def arrive(self, side: int, batch: pa.RecordBatch) -> Iterator[Step]:
        """One batch of input has come: join it with what is in memory, keep it, spill if memory is full."""

    @abstractmethod
    def end(self, side: int) -> Iterator[Step]:
        """No more batches of this side will come."""

    @abstractmethod
    def react(self, work: Slice) -> Iterator[Step]:
        """The inputs are silent: do a bounded piece of work on what lies on disk."""

    @abstractmethod
    def finish(self) -> Iterator[Step]:
        """Every side has ended: join whatever was never joined."""

    @abstractmethod
    def resume(self) -> Iterator[Step]:
        """Go on with a call whose iterator was abandoned; nothing when there is none."""

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """The whole state."""

    @abstractmethod
    def restore(self, snapshot: Snapshot) -> None:
        """Take over the state of another operator of the same plan; this one must be new."""

    @abstractmethod
    def has_reactive_work(self) -> bool:
        """Would ``react`` do anything now?"""

    def why_no_blocks(self) -> str:
        """Why it neither joins on arrival nor offers blocks in this run, so that nothing can be estimated."""
        return f"{self.description.name} does not join rows when they arrive"

    @abstractmethod
    def held_bytes(self) -> int:
        """Bytes really held, measured and not booked: tests compare it with the budget."""

    @abstractmethod
    def close(self) -> None:
        """Let go of memory and files. Idempotent."""

    def check_memory(self, limit: MemoryLimit) -> None:  # noqa: B027 - most operators can work with any limit
        """Raise InputError if it could not go on with this limit from now on."""

    def give_back(self, limit: MemoryLimit) -> bool:
        """Its memory is to become this small: hold less from the next step on. True when it can go on with that.

        Called before each step until what it holds fits.
        """
        return True

    def memory_changed(self) -> None:  # noqa: B027 - most operators look at the limit when they need it
        """The limit of its budget has changed."""

    def count(self, step: Step) -> Step:
        """Book results under the present phase."""
        if step is not None:
            self.context.counters.results[self.phase] += len(step)
        return step
