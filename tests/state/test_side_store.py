"""Rows, keys, notes and index of one side: always of one length, whatever is refused in the middle."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import earlyjoin as ej
from earlyjoin.algorithms.planning import make_plan
from earlyjoin.errors import BudgetExceeded
from earlyjoin.predicates.encoding.keys import Keys
from earlyjoin.state.budget import Budget, MemoryLimit
from earlyjoin.state.hash_index import Cursor
from earlyjoin.state.side_store import ARRIVAL, MATCHED, Note, SideStore
from earlyjoin.state.snapshot import Snapshot

SCHEMA = pa.schema([("k", pa.string()), ("id", pa.int64())])
ORIGIN = Note(name="origin", account="origins", width=2, default=(9, -1), rare=True)
WORD = Note(name="word", account="words", dtype=None)
KEY = make_plan(ej.equal("k"), SCHEMA, SCHEMA).condition.parts[0]


def rows(keys: list[str | None], first_id: int = 0) -> tuple[pa.RecordBatch, Keys]:
    ids = pa.array(range(first_id, first_id + len(keys)), pa.int64())
    batch = pa.RecordBatch.from_arrays([pa.array(keys, pa.string()), ids], schema=SCHEMA)
    return batch, KEY.encode(0, batch)


def store(limit: MemoryLimit, **more: Any) -> tuple[SideStore, Budget]:
    budget = Budget(limit)
    return SideStore(SCHEMA, budget, ARRIVAL, ORIGIN, WORD, MATCHED, **more), budget


def found(held: SideStore, keys: list[str | None]) -> list[tuple[int, int]]:
    """Every pair of a probing row and the id of a stored row."""
    cursor, pairs, out = Cursor(), [], np.empty((2, 7), dtype=np.int64)
    probing = rows(keys)[1]
    ids = held.all_rows().column(1).to_pylist()
    while cursor.row < len(keys):
        count, _ = held.probe(probing, cursor, out[0], out[1])
        pairs += [(i, ids[j]) for i, j in out[:, :count].T.tolist()]
    return sorted(pairs)


def check(held: SideStore, model: list[dict[str, Any]]) -> None:
    assert len(held) == len(model)
    assert [(row["k"], row["id"]) for row in held.all_rows().to_pylist()] == [(row["k"], row["id"]) for row in model]
    for name in ("arrival", "word", "matched"):
        known = held.note(name)
        if model:
            assert known is not None
            assert known.tolist() == [row[name] for row in model]
    origins = held.note("origin")
    if origins is not None:
        assert origins.tolist() == [list(row["origin"]) for row in model]
    else:
        assert all(row["origin"] == (9, -1) for row in model)
    keys = held.keys
    assert (keys is None) == (not model)
    assert held.live == sum(not row["matched"] for row in model)
    assert held.living().tolist() == [number for number, row in enumerate(model) if not row["matched"]]
    expected = [
        (i, row["id"]) for i, key in enumerate(["a", "b", None]) for row in model
        if key is not None and row["k"] == key and not row["matched"]
    ]  # fmt: skip
    assert found(held, ["a", "b", None]) == expected


@pytest.mark.parametrize("limit", [MemoryLimit(bytes=2**16), MemoryLimit(rows=60)], ids=str)
@pytest.mark.parametrize("seed", range(6))
def test_all_parts_agree_after_every_step(limit: MemoryLimit, seed: int) -> None:
    rng = random.Random(seed)
    held, budget = store(limit, index=True, freed_by="matched")
    model: list[dict[str, Any]] = []
    refusals = 0
    for step in range(120):
        action = rng.random()
        if action < 0.6:
            count = rng.randint(1, 20)
            keys = [rng.choice([None, "a", "b", "c" * rng.randint(0, 2500)]) for _ in range(count)]
            notes: dict[str, Any] = {"arrival": step, "word": np.arange(count) * 0.5}
            if rng.random() < 0.3:
                notes["origin"] = np.full((count, 2), step)
            if rng.random() < 0.3:
                notes["matched"] = np.array([rng.random() < 0.5 for _ in range(count)])
            batch, encoded = rows(keys, 1000 * step)
            before = held.generation
            try:
                assert held.insert(batch, encoded, **notes) == len(model)
                assert held.generation > before
            except BudgetExceeded:
                refusals += 1
                assert held.generation == before
            else:
                for number, key in enumerate(keys):
                    origin = (step, step) if "origin" in notes else (9, -1)
                    matched = bool(notes["matched"][number]) if "matched" in notes else False
                    model.append({"k": key, "id": 1000 * step + number, "arrival": step, "word": number * 0.5,
                                  "origin": origin, "matched": matched})  # fmt: skip
        elif action < 0.75 and model:
            chosen = rng.sample(range(len(model)), rng.randint(1, len(model)))
            held.free(np.array(chosen))
            for number in chosen:
                model[number]["matched"] = True
        elif action < 0.8:
            assert held.drop_freed().tolist() == [n for n, row in enumerate(model) if not row["matched"]]
            model = [row for row in model if not row["matched"]]
        elif action < 0.84 and model:
            kept = sorted(rng.sample(range(len(model)), rng.randint(1, len(model))))
            held.keep(np.array(kept))
            model = [model[number] for number in kept]
        elif action >= 0.99:
            held.clear()
            model = []
            assert (budget.used_bytes, budget.used_rows) == (0, 0)
        check(held, model)
        assert held.nbytes == budget.used_bytes
        assert budget.used_rows == len(model)
    assert refusals, "the memory was never full"
    assert budget.peak_bytes <= (limit.bytes or budget.peak_bytes)
    held.clear()
    assert (budget.used_bytes, budget.used_rows) == (0, 0)


def test_a_refused_insert_leaves_no_half_rows() -> None:
    held, budget = store(MemoryLimit(bytes=2**16))
    batch, keys = rows(["a" * 100] * 50)
    held.insert(batch, keys, arrival=1, word=np.arange(50))
    large, large_keys = rows(["b" * 1000] * 200)
    with pytest.raises(BudgetExceeded):
        held.insert(large, large_keys, arrival=2, word=np.arange(200), origin=np.zeros((200, 2)))
    assert (len(held), budget.used_rows) == (50, 50)
    assert held.all_rows().equals(batch)
    assert len(held.keys or ()) == 50
    held.insert(batch, keys, arrival=3, word=np.arange(50))
    assert held.arrivals.tolist() == [1] * 50 + [3] * 50
    assert np.array_equal(held.note("origin"), [(9, -1)] * 100)


def test_truncate_forgets_the_last_rows() -> None:
    held, budget = store(MemoryLimit(bytes=2**20), freed_by="matched")
    batch, keys = rows(["a", "b", "c", "d"])
    held.insert(batch, keys, arrival=np.arange(4), word=np.arange(4), matched=np.array([True, False, True, True]))
    held.truncate(2)
    assert held.all_rows().equals(batch.slice(0, 2))
    assert (held.live, budget.used_rows) == (1, 2)
    assert held.arrivals.tolist() == [0, 1]


@pytest.mark.parametrize("with_origin", [False, True])
def test_what_was_saved_is_inserted_again(with_origin: bool) -> None:
    held, _ = store(MemoryLimit(bytes=2**20), index=True, freed_by="matched")
    batch, keys = rows(["a", None, "b", "a"])
    notes = {"arrival": np.arange(4), "word": np.arange(4), "matched": np.array([False, True, False, False])}
    held.insert(batch, keys, **notes, **({"origin": np.arange(8).reshape(4, 2)} if with_origin else {}))
    snapshot = Snapshot()
    held.save(snapshot, "side")
    again, _ = store(MemoryLimit(bytes=2**20), index=True, freed_by="matched")
    for saved, known in again.saved(snapshot, "side"):
        again.insert(saved, KEY.encode(0, saved), **known)
    assert again.all_rows().equals(held.all_rows())
    for name in ("arrival", "word", "matched", "origin"):
        assert np.array_equal(again.note(name), held.note(name))  # type: ignore[arg-type]
    assert again.live == held.live == 3
    assert found(again, ["a", "b"]) == found(held, ["a", "b"])
    assert list(again.saved(snapshot, "nobody")) == []


def test_a_store_without_keys_index_and_notes() -> None:
    held = SideStore(SCHEMA, Budget(MemoryLimit(bytes=2**20)))
    batch, _ = rows(["a", "b"])
    held.insert(batch, None)
    assert (held.keys, held.matched, held.count_freed()) == (None, None, 0)
    cursor = Cursor()
    assert held.probe(rows(["a"])[1], cursor, np.empty(1, np.int64), np.empty(1, np.int64)) == (0, 0)
    assert cursor.row == 1
    assert held.drop_freed().tolist() == [0, 1]


def test_a_single_value_of_the_note_that_frees_counts_for_every_row() -> None:
    held, _ = store(MemoryLimit(bytes=10**6), freed_by=MATCHED.name)
    held.insert(*rows(["a", "b", "c"]), matched=True, word=np.zeros(3, dtype=np.int64))
    assert held.live == 0
    assert held.count_freed() == 0
