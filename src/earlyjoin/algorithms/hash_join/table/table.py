"""The partitioned hash table that XJoin, HMJ, RPJ, DHJ and EHJ share.

::

                     partition 0    partition 1   …             side × partition:
    side 0  memory   MemoryPart     MemoryPart                     insert ─▶ memory ──flush──▶ run on disk
            disk     runs           runs                                     └ freeze: flush, and from then on
    side 1  memory   MemoryPart     MemoryPart                                 rows go to a page buffer and to disk
            disk     runs           runs
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from earlyjoin.algorithms.hash_join.flushing import PartitionStatistics
from earlyjoin.algorithms.hash_join.settings import PAGE_ROWS, HashSettings
from earlyjoin.algorithms.hash_join.table.disk_part import DiskPage, DiskRun, PageReader, PartWriter, SideFiles, Words
from earlyjoin.algorithms.hash_join.table.frozen_buffer import FrozenBuffer
from earlyjoin.algorithms.hash_join.table.memory_part import MemoryPart
from earlyjoin.algorithms.hash_join.table.partitioning import Partitioner
from earlyjoin.algorithms.hash_join.table.sizing import buffer_size, page_bytes, rows_at_once, split_memory
from earlyjoin.algorithms.hash_join.table.stored_form import StoredKeys, stored_schema
from earlyjoin.algorithms.hash_join.table.striping import Striping
from earlyjoin.algorithms.protocol import Context, Plan
from earlyjoin.predicates.base import BoundPredicate
from earlyjoin.predicates.encoding.keys import Bool, Int64, Keys
from earlyjoin.state.clock import LogicalClock
from earlyjoin.state.counters import Counters
from earlyjoin.state.rows.storage import contiguous
from earlyjoin.state.rows.store import BatchRows
from earlyjoin.state.snapshot import Snapshot

Order = Callable[[MemoryPart, Int64], tuple[Int64, Words]]
"""Puts rows (numbers) of a part into the order in which they are to be written; also their sort words."""


@dataclass(slots=True)
class Flushed:
    """What a flush wrote."""

    side: int
    partition: int
    run: DiskRun
    arrivals: Int64
    """Arrival stamps of the rows, in the order in which they were written."""


class PartitionedTable:
    """Memory and disk part of every partition of both sides."""

    def __init__(
        self,
        plan: Plan,
        key: BoundPredicate,
        context: Context,
        settings: HashSettings,
        partitions: int,
        *,
        expendable: tuple[bool, bool] = (False, False),
        striped: bool = False,
    ) -> None:
        self.context, self.key, self.expendable = context, key, expendable
        self.partitions = partitions
        self.striping = Striping(self, striped=striped)
        self.partitioner = Partitioner(partitions, settings.hashing)
        self.pages, self.memory = split_memory(context.budget, settings, context.row_nbytes)
        self.parts: list[list[MemoryPart]] = []
        self.files: list[SideFiles] = []
        self.readers: list[PageReader] = []
        for side, arriving in enumerate(plan.schemas):
            schema = stored_schema(arriving)
            flags = plan.how.remembers_matched(side) or expendable[side]
            self.parts.append(
                [
                    MemoryPart(side, schema, self.memory, flags=flags, expendable=expendable[side])
                    for _ in range(partitions)
                ]
            )
            page_rows = settings.page_rows
            if page_rows is None and context.budget.limit.rows is not None:
                page_rows = PAGE_ROWS
            files = SideFiles(
                side, schema, StoredKeys.of(key, side, arriving), context.spill, context.counters, self.pages,
                page_rows=page_rows, flags=flags, page_part=settings.page_part,
            )  # fmt: skip
            self.files.append(files)
            self.readers.append(PageReader(files))
        self.runs: list[list[list[DiskRun]]] = [[[] for _ in range(partitions)] for _ in range(2)]
        self.frozen_at = np.full((2, partitions), LogicalClock.NEVER, dtype=np.int64)
        """The moment at which each partition was frozen: TSF in EHJ section 4.4."""
        self.arrived = np.zeros((2, partitions), dtype=np.int64)
        self.last_insert = np.zeros((2, partitions), dtype=np.int64)
        """Stamp of the last row that came into memory."""
        self.last_flush = np.zeros((2, partitions), dtype=np.int64)
        """Stamp of the last row, or run, that went to disk."""
        self._in_memory = np.zeros((2, partitions), dtype=np.int64)
        self._on_disk = np.zeros((2, partitions), dtype=np.int64)
        self._buffers: dict[tuple[int, int], FrozenBuffer] = {}
        self._labels = 0
        self.half_written: tuple[list[DiskRun], list[DiskRun]] = ([], [])
        """What a merge has written when a snapshot is taken."""
        self._buffer_rows, self._buffer_bytes = buffer_size(self.memory, partitions, settings.page_rows or PAGE_ROWS)

    # Statistics

    @property
    def frozen(self) -> Bool:
        """Which partitions take no more rows into memory."""
        return np.not_equal(self.frozen_at, LogicalClock.NEVER)

    @property
    def in_memory(self) -> Int64:
        """Rows in memory that are not dead, [side, partition]."""
        return self._in_memory

    @property
    def on_disk(self) -> Int64:
        """Rows on disk or in page buffers, [side, partition]."""
        return self._on_disk

    def statistics(self, protected: Bool | None = None, **more: Any) -> PartitionStatistics:
        """What flush policies look at; copies, so that nobody changes the table through them."""
        return PartitionStatistics(
            memory=np.array([[len(part) for part in parts] for parts in self.parts], dtype=np.int64),
            disk=self._on_disk.copy(),
            arrived=self.arrived.copy(),
            frozen=self.frozen,
            protected=protected if protected is not None else np.zeros_like(self.frozen),
            **more,
        )

    def room_rows(self) -> int | None:
        """Rows that still fit into memory; None when memory is counted in bytes."""
        limit = self.memory.limit.rows
        return None if limit is None else limit - self.memory.used_rows

    # Rows in

    def insert(
        self, side: int, partition: int, batch: pa.RecordBatch, keys: Keys, arrivals: Int64, matched: Bool | None = None
    ) -> int:
        """Rows into memory; raises BudgetExceeded, with nothing changed, when they do not fit."""
        first = self.parts[side][partition].add(batch, keys, arrivals, matched=matched)
        self._in_memory[side, partition] += batch.num_rows
        self.last_insert[side, partition] = max(int(arrivals.max()), self.last_insert[side, partition])
        return first

    def load(self, side: int, partition: int, page: DiskPage, start: int = 0, stop: int | None = None) -> Keys:
        """Take rows of a page back into memory, stamps and flags included, dead rows left out; returns the keys."""
        stop = len(page) if stop is None else stop
        batch, keys = page.rows.batch.slice(start, stop - start), page.keys.slice(start, stop)
        arrivals, departures = page.arrivals[start:stop], page.departures[start:stop]
        matched = page.matched[start:stop] if page.matched is not None else None
        if self.expendable[side] and matched is not None and matched.any():
            living = np.flatnonzero(~matched)
            batch = pa.RecordBatch.from_arrays(BatchRows(batch).take(living), schema=batch.schema)
            keys, arrivals, departures, matched = keys.take(living), arrivals[living], departures[living], None
        part = self.parts[side][partition]
        part.add(batch, keys, arrivals, matched=matched, departures=departures, labels=page.label)
        self._in_memory[side, partition] += len(arrivals)
        return keys

    def spool(
        self, side: int, partition: int, batch: pa.RecordBatch, arrivals: Int64, matched: Bool | None = None
    ) -> None:
        """Rows of a frozen partition: towards disk, never into memory."""
        self._buffers[side, partition].add(batch, arrivals, matched)
        self._on_disk[side, partition] += batch.num_rows
        self.last_flush[side, partition] = int(arrivals.max())

    def bury(self, side: int, partition: int) -> int:
        """Count rows that died since the last call and stop counting them as rows in memory."""
        died = self.parts[side][partition].count_freed()
        self._in_memory[side, partition] -= died
        return died

    # Rows out

    def flush(
        self,
        side: int,
        partition: int,
        *,
        rows: int | None = None,
        order: Order | None = None,
        label: int | None = None,
        counters: Counters | None = None,
    ) -> Flushed | None:
        """Write a partition's memory part (or its oldest ``rows`` rows) to disk as one run, and forget it in memory.

        ``order`` sorts what is written; without one, rows lie in the order of their stripes, if the partition has any.
        None when there is nothing to write; memory is given back all the same. What is written counts in ``counters``,
        if there are any: they know what was written before and behind it.
        """
        part = self.parts[side][partition]
        self.context.counters.flushes += 1 if len(part) else 0
        leaving = part.living()
        staying = leaving[:0]
        if rows is not None and rows < len(leaving):
            leaving, staying = leaving[:rows], leaving[rows:]
        flushed = None
        if len(leaving):
            words = stripe_ends = None
            if order is not None:
                leaving, words = order(part, leaving)
            else:
                leaving, stripe_ends = self.striping.ordered(side, partition, leaving)
            flushed = self._write(side, partition, leaving, words, stripe_ends, label, counters)
        again = _kept(part, staying)
        part.clear()
        self._in_memory[side, partition] = 0
        if again is not None:
            batch, keys, arrivals, matched = again
            self.insert(side, partition, batch, keys, arrivals, matched)
        return flushed

    def _write(
        self,
        side: int,
        partition: int,
        leaving: Int64,
        words: Words | None,
        stripe_ends: Int64 | None,
        label: int | None,
        counters: Counters | None,
    ) -> Flushed:
        part, files = self.parts[side][partition], self.files[side]
        files = files if counters is None else files.counting(counters)
        departure = self.context.ticks.tick()
        label = self.next_label() if label is None else label
        writer = PartWriter(files, label, page_bytes(part, words), stripe_ends=stripe_ends)
        most, departures = rows_at_once(part, self.pages), part.departures
        for start in range(0, len(leaving), most):
            chosen = leaving[start : start + most]
            matched = part.matched[chosen] if part.matched is not None else None
            stamps = np.minimum(departures[chosen], departure)  # rows read back keep their first departure
            sorting = words[start : start + most] if words is not None else None
            first, count = int(chosen[0]), len(chosen)
            batch = part.rows.view(first, first + count) if contiguous(chosen) else part.rows.batch(chosen)
            writer.write(batch, part.arrivals[chosen], stamps, matched, words=sorting)
        run = writer.close()
        self.runs[side][partition].append(run)
        self._on_disk[side, partition] += run.rows
        self.last_flush[side, partition] = departure
        return Flushed(side, partition, run, part.arrivals[leaving].copy())

    def freeze(self, side: int, partition: int, counters: Counters | None = None) -> Flushed | None:
        """Flush a partition for good: from now on its rows go to a page buffer and to disk."""
        flushed = self.flush(side, partition, counters=counters)
        self.frozen_at[side, partition] = self.context.ticks.tick()
        self._open_buffer(side, partition)
        return flushed

    def _open_buffer(self, side: int, partition: int, rows: int | None = None) -> None:
        rows = self._buffer_rows if rows is None else rows
        self._buffers[side, partition] = FrozenBuffer(
            self.files[side], self.next_label(), self.memory, rows=rows, nbytes=self._buffer_bytes
        )

    def empty_buffers(self) -> bool:
        """Write what page buffers hold and give its bytes back; False when they hold nothing."""
        held = [buffer.empty() for buffer in self._buffers.values()]
        return any(held)

    def next_label(self) -> int:
        """A new label for runs."""
        self._labels += 1
        return self._labels

    def close_runs(self, side: int, partition: int) -> None:
        """Finish the open run of a frozen partition, so that it can be read; later rows start another."""
        buffer = self._buffers.get((side, partition))
        run = buffer.close_run() if buffer is not None else None
        if run is not None:
            run.label = self.next_label()
            self.runs[side][partition].append(run)

    def forget(self, side: int, partition: int) -> None:
        """Drop the memory part: its rows will never be needed again."""
        self.parts[side][partition].clear()
        self._in_memory[side, partition] = 0

    def keep(self, side: int, partition: int, kept: Bool) -> None:
        """Drop the other rows of a memory part; its bytes come back only when none are left."""
        if not kept.any():
            self.forget(side, partition)
            return
        part = self.parts[side][partition]
        part.keep(np.flatnonzero(kept))
        self._in_memory[side, partition] = part.live

    def forget_disk(self, side: int, partition: int) -> None:
        """Remove the runs: their rows will never be needed again."""
        self.readers[side].drop()
        for run in self.runs[side][partition]:
            run.run.delete()
        self.runs[side][partition].clear()
        self._on_disk[side, partition] = 0

    def replace_runs(self, side: int, partition: int, old: list[DiskRun], new: list[DiskRun]) -> None:
        """Runs were merged: the old ones are removed, the new ones are the last."""
        self.readers[side].drop()
        for run in old:
            run.run.delete()
        merged = {run.run.path for run in old}
        kept = [run for run in self.runs[side][partition] if run.run.path not in merged]
        self.runs[side][partition] = [*kept, *new]
        self._on_disk[side, partition] = sum(run.rows for run in self.runs[side][partition])

    # State

    def held_bytes(self) -> int:
        """Bytes really held."""
        held = sum(part.nbytes for parts in self.parts for part in parts)
        held += sum(buffer.nbytes for buffer in self._buffers.values())
        return held + sum(reader.nbytes for reader in self.readers)

    def close(self) -> None:
        """Give memory back and remove all files. Idempotent."""
        for buffer in self._buffers.values():
            buffer.discard()
        self._buffers.clear()
        for side in range(2):
            self.readers[side].drop()
            for partition in range(self.partitions):
                self.forget(side, partition)
                self.forget_disk(side, partition)
            flags = self.files[side].flags
            if flags is not None:
                flags.delete()

    def snapshot(self) -> Snapshot:
        """Everything; page buffers are written out for it."""
        for side, partition in list(self._buffers):
            self.close_runs(side, partition)
        saved = Snapshot(values={"labels": self._labels, "runs": [[], []], "flags": [0, 0]})
        saved.values["buffers"] = [[*place, buffer.room_rows] for place, buffer in self._buffers.items()]
        saved.arrays |= {name: array.copy() for name, array in self._arrays().items()}
        for side in range(2):
            for partition, part in enumerate(self.parts[side]):
                name = f"{side}-{partition}"
                saved.values["runs"][side].append([run.save(saved) for run in self.runs[side][partition]])
                if len(part):
                    part.save(saved, f"rows-{name}")
            flags = self.files[side].flags
            if flags is not None:
                saved.values["flags"][side] = flags.save(saved, f"flags-{side}")
        saved.values["half_written"] = [[run.save(saved) for run in runs] for runs in self.half_written]
        self.half_written = ([], [])  # they are the merge's
        return saved

    def _arrays(self) -> dict[str, Int64]:
        return {
            "frozen_at": self.frozen_at,
            "arrived": self.arrived,
            "on_disk": self._on_disk,
            "last_insert": self.last_insert,
            "last_flush": self.last_flush,
        }

    def restore(self, saved: Snapshot) -> None:
        """Take over a snapshot; the table must be new."""
        self._labels = saved.values["labels"]
        for runs, written in zip(saved.values["half_written"], self.half_written, strict=True):
            written.extend(DiskRun.load(saved, run, self.context.spill) for run in runs)
        for name, array in self._arrays().items():
            array[:] = saved.arrays[name]
        for buffer in self._buffers.values():
            buffer.discard()
        for side, partition, rows in saved.values["buffers"]:
            # One that found no room must not find it now: rows that are to be loaded need it.
            self._open_buffer(side, partition, rows if self.memory.limit.rows is not None else None)
        for side in range(2):
            flags = self.files[side].flags
            if flags is not None:
                flags.load(saved, f"flags-{side}", saved.values["flags"][side])
            for partition in range(self.partitions):
                runs = saved.values["runs"][side][partition]
                self.runs[side][partition] = [DiskRun.load(saved, run, self.context.spill) for run in runs]
                self.parts[side][partition].load(saved, f"rows-{side}-{partition}", self.files[side].key)
                self._in_memory[side, partition] = self.parts[side][partition].live


def _kept(part: MemoryPart, staying: Int64) -> tuple[pa.RecordBatch, Keys, Int64, Bool | None] | None:
    """Copies of the rows that stay when a part is cleared."""
    if not len(staying):
        return None
    keys = part.keys
    assert keys is not None
    matched = part.matched[staying] if part.matched is not None else None
    return part.rows.batch(staying), keys.take(staying), part.arrivals[staying], matched
