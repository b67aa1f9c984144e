"""PSMJ on sorted runs: the papers' examples, and every way to cut, merge and interrupt against a nested loop."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import earlyjoin as ej
from earlyjoin.algorithms.hash_join.hmj import HashMergeJoin
from earlyjoin.algorithms.hash_join.merging.matching_runs import MatchingRunsRule, slots
from earlyjoin.algorithms.hash_join.merging.merge_input import page_cost
from earlyjoin.algorithms.hash_join.merging.settings import MergeSettings
from earlyjoin.algorithms.hash_join.merging.sorted_runs_policy import SortedRuns
from earlyjoin.algorithms.hash_join.merging.tasks import DiskDiskTask, fitting, next_merge
from earlyjoin.algorithms.hash_join.rules import Stamps
from earlyjoin.algorithms.hash_join.table.disk_part import DiskRun
from earlyjoin.algorithms.planning import make_plan
from earlyjoin.algorithms.protocol import Context, Step
from earlyjoin.errors import InputError
from earlyjoin.predicates.encoding.keys import Bool
from earlyjoin.state import joined
from earlyjoin.state.budget import Budget, MemoryLimit
from earlyjoin.state.disk.runs import Run
from earlyjoin.state.disk.spill import SpillDirectory

SCHEMA = pa.schema([("k", pa.int64()), ("id", pa.int64())])
Rows = list[tuple[int, int]]
"""(key, id) of each row."""


class LabelsAlone(MatchingRunsRule):
    """Runs that were flushed together have met, and nothing else is known: rows here have no history."""

    def joined(self, partition: int, left: Stamps, right: Stamps) -> Bool:
        return joined.same_run(left.labels, right.labels)


class Bench:
    """One partition whose runs are put on disk by hand, two sides of each label at once as HMJ does."""

    def __init__(
        self,
        directory: Path,
        memory: MemoryLimit,
        *,
        fan_in: int = 2,
        output_rows: int = 100,
        one_side: str | None = None,
    ) -> None:
        plan = make_plan(ej.equal("k"), SCHEMA, SCHEMA)
        context = Context(budget=Budget(memory), spill=SpillDirectory(directory), output_rows=output_rows)
        self.join = HashMergeJoin(plan, context, MergeSettings(partitions=1, fan_in=fan_in, one_side=one_side))
        assert isinstance(self.join.policy, SortedRuns)
        self.policy = self.join.policy
        self.join.state.rule = self.policy.merge_work.rule = LabelsAlone(1)
        self.found: list[tuple[int, int]] = []

    def flush(self, left: Rows, right: Rows, *, together: bool = True) -> None:
        label = self.join.table.next_label()
        for side, rows in enumerate((left, right)):
            for at in range(0, len(rows), 2):  # no more than two rows at once: memory may be tiny
                batch = pa.RecordBatch.from_pylist([{"k": k, "id": n} for k, n in rows[at : at + 2]], schema=SCHEMA)
                keys = self.join.state.key.encode(side, batch)
                ticks = self.join.context.ticks
                self.join.table.insert(side, 0, batch, keys, ticks.upcoming(batch.num_rows))
                ticks.pass_by(batch.num_rows)
            if rows:
                self.policy.flush_sorted(side, 0, label=label if together else None)

    def take(self, step: Step) -> None:
        if step is not None:
            table = self.join.plan.output.build(step.rows, step.index)
            self.found += [(row["id"], row["id_right"]) for row in table.to_pylist()]

    def merge_all(self) -> None:
        self.run(self.policy.merge_task(0))

    def run(self, task: DiskDiskTask) -> None:
        while not task.done:
            self.take(task.step())

    def keys_of(self, side: int) -> list[list[int]]:
        """What every run holds, page by page put together."""
        runs = []
        for run in self.join.table.runs[side][0]:
            reader = run.run.read(self.join.context.counters)
            runs.append([k for page in range(run.run.pages) for k in reader.page(page).column(0).to_pylist()])
            reader.close()
        return runs

    def close(self) -> None:
        self.join.close()
        budget = self.join.context.budget
        assert (budget.used_bytes, budget.used_rows) == (0, 0)
        self.join.context.spill.close()


def test_the_example_of_rpj_section_2_2(tmp_path: Path) -> None:
    """Figure 2: 1 and 12 meet, 2 and 10 met in memory, 13 is alone, 6 and 11 meet; then the third runs come in."""
    bench = Bench(tmp_path, MemoryLimit(rows=40))
    bench.flush([(1, 1), (3, 2), (9, 3)], [(3, 10), (7, 11)])
    bench.flush([(6, 5), (7, 6)], [(1, 12), (4, 13)])
    bench.flush([(4, 7)], [(9, 14), (4, 15)])
    task = bench.policy.merge_task(0)
    while len(bench.join.table.runs[0][0]) == 3:
        bench.take(task.step())
    assert bench.found == [(1, 12), (6, 11)], "the first merging: runs 1 and 2 of both sides"
    assert bench.keys_of(0) == [[4], [1, 3, 6, 7, 9]]
    assert bench.keys_of(1) == [[4, 9], [1, 3, 4, 7]]
    while not task.done:
        bench.take(task.step())
    assert Counter(bench.found) == Counter([(1, 12), (6, 11), (7, 13), (3, 14)]), "4 and 4 of the third runs had met"
    assert bench.keys_of(0) == [[1, 3, 4, 6, 7, 9]]
    bench.close()


def run_of(label: int, rows: int = 1) -> DiskRun:
    return DiskRun(Run(Path(str(label)), rows, (0,), (0, 1), (0, 0)), label, (1,))


def labels(found: list[tuple[list[DiskRun], list[DiskRun]]]) -> list[tuple[list[int], list[int]]]:
    return [([run.label for run in left], [run.label for run in right]) for left, right in found]


def test_the_example_of_rpj_figure_6() -> None:
    """Four and three runs: r5 matches r4, r6 matches r3; then r7 matches r5, and new runs follow."""
    left, right = [run_of(label) for label in (1, 2, 3, 4)], [run_of(label) for label in (11, 12, 13)]
    assert labels(slots(left, right)) == [([1], [11]), ([2], [12]), ([3], [13]), ([4], [])]
    assert not slots(left, right)[0].matches
    assert slots(left, right)[3].matches, "nothing to join"
    left, right = [run_of(5), run_of(6)], [run_of(5), run_of(6)]
    assert labels(slots(left, right)) == [([5], [5]), ([6], [6])]
    assert all(slot.matches for slot in slots(left, right))
    left, right = [run_of(8), run_of(7), run_of(9)], [run_of(18), run_of(7)]
    assert labels(slots(left, right)) == [([7], [7]), ([8], [18]), ([9], [])], "matching runs stay together"


def test_the_long_run_of_earlier_tasks_is_merged_last() -> None:
    left = [run_of(1, 900), *(run_of(label, 10 + label % 3) for label in range(2, 25))]
    right = [run_of(1, 700), *(run_of(label, 10) for label in range(32, 55))]
    memory, merged, label = MemoryLimit(bytes=10**6), [], 100
    while len(found := slots(left, right)) > 1:
        chosen = next_merge(found, 5, Budget(memory))
        merged.append([slot.left[0].label for slot in chosen])
        label += 1
        for side, runs in enumerate((left, right)):
            gone = [run for slot in chosen for run in slot[side]]
            runs[:] = [run for run in runs if run not in gone] + [run_of(label, sum(run.rows for run in gone))]
    assert [1 in labels for labels in merged] == [False] * 5 + [True], "once, and at the end"
    assert [len(labels) for labels in merged] == [4, 5, 5, 5, 5, 5], "only the first merge takes fewer"
    assert merged[0] == [2, 3, 4, 5], "the oldest of the short ones"


def test_matching_runs_are_not_joined_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path, MemoryLimit(rows=60))
    for start in range(0, 12, 3):
        bench.flush([(start % 2, start)], [(start % 2, 100 + start)], together=False)
    bench.flush([(0, 50)], [], together=False)
    bench.merge_all()
    first = Counter(bench.found)
    assert first == Counter((i, j) for i in (0, 3, 6, 9, 50) for j in (100, 103, 106, 109) if i % 2 == j % 2)
    bench.merge_all()
    assert Counter(bench.found) == first, "one pair of matching runs: nothing to do"
    bench.flush([(1, 60)], [(0, 160), (1, 161)], together=False)
    bench.merge_all()
    later = Counter(bench.found) - first
    assert set(later) == {(60, 103), (60, 109), (60, 161), (0, 160), (6, 160), (50, 160), (3, 161), (9, 161)}
    bench.close()


sides = st.lists(st.integers(0, 4), max_size=9)
pairs_of_runs = st.lists(st.tuples(sides, sides), min_size=1, max_size=6)
memories = st.sampled_from([MemoryLimit(rows=12), MemoryLimit(rows=40), MemoryLimit(bytes=2**16)])


@given(
    runs=pairs_of_runs,
    together=st.booleans(),
    fan_in=st.sampled_from([2, 3, 10]),
    memory=memories,
    output_rows=st.sampled_from([1, 3, 50]),
)
@settings(max_examples=15, deadline=None)
def test_merges_find_what_a_nested_loop_finds(
    tmp_path_factory: pytest.TempPathFactory,
    runs: list[tuple[list[int], list[int]]],
    together: bool,
    fan_in: int,
    memory: MemoryLimit,
    output_rows: int,
) -> None:
    bench = Bench(tmp_path_factory.mktemp("merge"), memory, fan_in=fan_in, output_rows=output_rows)
    everything: tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]] = ([], [])
    for number, keys in enumerate(runs):
        numbered = [[(k, 100 * number + n) for n, k in enumerate(side)] for side in keys]
        bench.flush(*numbered, together=together)
        for side in (0, 1):
            everything[side].extend((number, k, n) for k, n in numbered[side])
    bench.merge_all()
    expected = Counter(
        (i, j)
        for run, k, i in everything[0]
        for other, o, j in everything[1]
        if k == o and not (together and run == other)
    )
    assert Counter(bench.found) == expected
    for side in (0, 1):
        merged = bench.keys_of(side)
        assert len(merged) <= 1
        assert [k for run in merged for k in run] == sorted(k for _, k, _ in everything[side])
    bench.close()


def test_a_merge_takes_no_more_runs_than_have_a_page_in_memory() -> None:
    """Regression: what is held besides, and what a row takes while it is merged, did not count; then pages were read
    again for every key."""
    found = slots([run_of(label, 50) for label in range(40)], [])
    budget = Budget(MemoryLimit(bytes=100_000))
    pages = budget.account("pages")
    taken = fitting(found, len(found), budget)
    assert 2 < len(taken) < len(found)
    for slot in taken:
        pages.reserve(page_cost(slot.left[0], 0)[0])
    pages.clear()
    budget.account("besides").reserve(50_000)
    assert len(fitting(found, len(found), budget)) < len(taken)


def test_settings_are_checked() -> None:
    for wrong in ({"flush": "some"}, {"fan_in": 1}, {"flush_fraction": 0}, {"decay": 1}, {"random_cost": 0.5}):
        with pytest.raises(InputError):
            MergeSettings(**wrong)  # type: ignore[arg-type]


def test_a_merge_that_was_saved_half_way_goes_on(tmp_path: Path) -> None:
    """Also in the middle of a hot key that does not fit."""
    (tmp_path / "first").mkdir()
    rng = np.random.default_rng(7)
    keys = [[rng.choice([0, 0, 0, 1, 2], 9).tolist() for _ in range(2)] for _ in range(2)]
    steps = 0
    while True:
        spill = tmp_path / f"spill-{steps}"
        spill.mkdir()
        bench = Bench(spill, MemoryLimit(rows=12), output_rows=5)
        for number, (left, right) in enumerate(keys):
            bench.flush([(k, 100 * number + n) for n, k in enumerate(left)], [(k, n) for n, k in enumerate(right)])
        task = bench.policy.merge_task(0)
        for _ in range(steps):
            if not task.done:
                bench.take(task.step())
        if task.done:
            bench.close()
            break
        bench.join.state.task = task
        saved = bench.join.snapshot()
        saved.values = json.loads(json.dumps(saved.values))
        again = Bench(spill, MemoryLimit(rows=12), output_rows=5)
        again.join.state.rule = again.policy.merge_work.rule
        again.join.restore(saved)
        found = list(bench.found)
        bench.run(task)
        resumed = again.join.state.task
        assert isinstance(resumed, DiskDiskTask)
        again.run(resumed)
        assert Counter(found + again.found) == Counter(bench.found)
        for opened in (bench, again):
            opened.join.state.task = None
            opened.close()
        steps += 9
    assert steps > 20


def test_pages_of_a_hot_word_that_do_not_have_it(tmp_path: Path) -> None:
    """Regression: left pages without the word were taken again for every right page, until nothing fitted."""
    bench = Bench(tmp_path, MemoryLimit(rows=12), fan_in=10)
    for number in range(6):
        low, high = 2 * number, 100 + number
        bench.flush([(low, number), (high, 50 + number)], [(50, 100 + number), (50, 200 + number)], together=False)
    bench.flush([(50, 99)], [(50, 300)], together=False)
    bench.merge_all()
    assert Counter(bench.found) == Counter((99, j) for j in [300, *range(100, 106), *range(200, 206)])
    bench.close()


@pytest.mark.parametrize("one_side", ["left", "right"])
def test_a_repeated_key_of_the_one_side_as_a_hot_word(one_side: str, tmp_path: Path) -> None:
    """Its rows are on pages that never are in memory together; a pause between them forgets nothing."""
    given: dict[str, Any] = {"output_rows": 5, "one_side": one_side}
    pauses = 0
    for steps in range(1000):
        spill = tmp_path / str(steps)
        spill.mkdir()
        bench = Bench(spill, MemoryLimit(rows=12), **given)
        for number in range(2):
            once: Rows = [(50, number)]
            many: Rows = [(50, 10 * number + n) for n in range(1, 10)]
            bench.flush(*((once, many) if one_side == "left" else (many, once)), together=False)
        task = bench.join.state.task = bench.policy.merge_task(0)
        try:
            for _ in range(steps):
                bench.take(task.step())
        except InputError:
            bench.close()
            break
        saved = bench.join.snapshot()
        pauses += task.merge is not None and task.merge.merge.hot is not None
        again = Bench(spill, MemoryLimit(rows=12), **given)
        again.join.restore(saved)
        resumed = again.join.state.task
        assert isinstance(resumed, DiskDiskTask)
        with pytest.raises(InputError, match="k = 50 occurs more than once"):
            again.run(resumed)
        for opened in (bench, again):
            opened.close()
    assert pauses > 5


def test_without_the_rule_of_matching_runs_pairs_come_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined, "same_run", lambda left, right: np.zeros(len(left), dtype=np.bool_))
    bench = Bench(tmp_path, MemoryLimit(rows=60))
    for number in range(4):
        bench.flush([(0, number)], [(0, 100 + number)], together=False)
        bench.merge_all()
    assert max(Counter(bench.found).values()) > 1
    bench.close()
