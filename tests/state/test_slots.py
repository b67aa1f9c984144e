"""Slots: numbers that stay while rows come and go."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from earlyjoin.errors import BudgetExceeded
from earlyjoin.state.budget import Budget, MemoryLimit
from earlyjoin.state.side_store import ARRIVAL
from earlyjoin.state.slots import SlottedStore
from earlyjoin.state.snapshot import Snapshot

SCHEMA = pa.schema([("s", pa.string())])


def rows(values: list[str]) -> pa.RecordBatch:
    return pa.record_batch({"s": pa.array(values, pa.string())})


def check(held: SlottedStore, model: dict[int, tuple[str, int]]) -> None:
    assert len(held) == len(model)
    assert np.flatnonzero(held.used).tolist() == sorted(model)
    slots = np.array(sorted(model), dtype=np.int64)
    places = held.rows_of(slots)
    assert held.slots_of(places).tolist() == slots.tolist()
    assert held.store.rows.batch(places).column(0).to_pylist() == [model[slot][0] for slot in slots.tolist()]
    if model:
        assert held.store.arrivals[places].tolist() == [model[slot][1] for slot in slots.tolist()]


@pytest.mark.parametrize("limit", [MemoryLimit(bytes=2**16), MemoryLimit(rows=50)], ids=str)
@pytest.mark.parametrize("seed", range(5))
def test_slots_name_the_same_rows_whatever_comes_and_goes(limit: MemoryLimit, seed: int) -> None:
    rng = random.Random(seed)
    budget = Budget(limit)
    held = SlottedStore(SCHEMA, budget, ARRIVAL)
    model: dict[int, tuple[str, int]] = {}
    refused = most = 0
    for step in range(300):
        if rng.random() < 0.6:
            values = [rng.choice("xyz") * rng.randint(0, 1500) for _ in range(rng.randint(1, 8))]
            try:
                slots = held.insert(rows(values), None, arrival=step).tolist()
            except BudgetExceeded:
                refused += 1
                gone = rng.sample(sorted(model), (len(model) + 1) // 2)
                held.free(np.array(gone))
                model = {slot: row for slot, row in model.items() if slot not in gone}
            else:
                assert not set(slots) & set(model)
                model |= {slot: (value, step) for slot, value in zip(slots, values, strict=True)}
        elif model:
            gone = rng.sample(sorted(model), rng.randint(1, min(4, len(model))))
            held.free(np.array(gone))
            model = {slot: row for slot, row in model.items() if slot not in gone}
        check(held, model)
        most = max(most, len(model))
        assert held.nbytes == budget.used_bytes
    assert refused, "the memory was never full"
    assert held.capacity <= most + 8, "free slots are given out again"
    held.clear()
    assert (budget.used_bytes, budget.used_rows, held.capacity) == (0, 0, 0)


def test_free_rows_make_room() -> None:
    held = SlottedStore(SCHEMA, Budget(MemoryLimit(rows=8)))
    held.insert(rows(list("abcdefgh")), None)
    with pytest.raises(BudgetExceeded):
        held.insert(rows(["i"]), None)
    held.free(np.array([2, 5]))
    assert held.insert(rows(["i", "j"]), None).tolist() == [2, 5]
    assert held.store.rows.batch(held.rows_of(np.arange(8))).column(0).to_pylist() == list("abidejgh")


def test_what_was_saved_has_the_same_slots() -> None:
    held = SlottedStore(SCHEMA, Budget(MemoryLimit(rows=20)), ARRIVAL)
    held.insert(rows(list("abcdef")), None, arrival=np.arange(6))
    held.free(np.array([0, 4]))
    snapshot = Snapshot()
    held.save(snapshot, "side")
    again = SlottedStore(SCHEMA, Budget(MemoryLimit(rows=20)), ARRIVAL)
    for batch, notes in again.load(snapshot, "side"):
        again.store.insert(batch, None, **notes)
    check(again, {1: ("b", 1), 2: ("c", 2), 3: ("d", 3), 5: ("f", 5)})
    assert again.insert(rows(["x", "y", "z"]), None, arrival=9).tolist() == [0, 4, 6]
