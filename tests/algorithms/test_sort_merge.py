"""PMJ against strict and semi-strict sort-merge join, in counted work (PMJ section 4)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from algorithms.harness import Join
from earlyjoin.algorithms.protocol import Step


def uniform(count: int, domain: int, seed: int) -> pa.RecordBatch:
    """The paper's UNI1 and UNI2: uniformly distributed integers."""
    return pa.RecordBatch.from_arrays([pa.array(np.random.default_rng(seed).integers(0, domain, count))], names=["k"])


class Measured(Join):
    """A join of two uniform inputs, read by turns in small batches, that notes the work done for the first results."""

    def __init__(self, algorithm: str, rows: int, domain: int, memory_rows: int, directory: Path) -> None:
        self.inputs = (uniform(rows, domain, 1), uniform(rows, domain, 2))
        schema = self.inputs[0].schema
        super().__init__(algorithm, schema, schema, directory, memory=f"{memory_rows}rows", output_rows=4096)
        self.results = 0

    @property
    def page_ios(self) -> int:
        return int(self.counters.pages_read + self.counters.pages_written)

    def work_until(self, results: int, batch_rows: int = 128) -> int:
        """Rows read from the inputs, written to disk and read from there until so many results are there."""
        for start in range(0, self.inputs[0].num_rows, batch_rows):
            for side, whole in enumerate(self.inputs):
                for step in self.operator.arrive(side, whole.slice(start, batch_rows)):
                    if self._enough(step, results):
                        return self._work()
        for step in self.operator.finish():
            if self._enough(step, results):
                return self._work()
        return self._work()

    def _enough(self, step: Step, results: int) -> bool:
        self.results += len(step) if step is not None else 0
        return self.results >= results

    def _work(self) -> int:
        return int(sum(self.counters.rows_in)) + self.counters.tuples_written + self.counters.tuples_read


def everything(algorithm: str, directory: Path, *, rows: int, memory_rows: int) -> Measured:
    """A join run to its end."""
    join = Measured(algorithm, rows, rows // 10, memory_rows, directory)
    join.work_until(10**9, batch_rows=500)
    join.close()
    return join


def test_two_levels_cost_the_ios_of_semi_strict_and_half_of_strict(tmp_path: Path) -> None:
    joins = {name: everything(name, tmp_path, rows=8000, memory_rows=1600) for name in ("pmj", "smj-semi", "smj")}
    assert len({join.results for join in joins.values()}) == 1
    assert joins["pmj"].counters.flushes == 10
    assert joins["pmj"].page_ios == joins["smj-semi"].page_ios
    assert joins["pmj"].counters.tuples_written == joins["smj-semi"].counters.tuples_written == 16000
    assert joins["smj"].counters.tuples_written == 32000
    assert joins["smj"].page_ios == pytest.approx(2 * joins["pmj"].page_ios, rel=0.02)


def test_more_levels_cost_the_same_ios_too(tmp_path: Path) -> None:
    joins = {name: everything(name, tmp_path, rows=4000, memory_rows=400) for name in ("pmj", "smj-semi")}
    assert joins["pmj"].counters.flushes > 10
    assert joins["pmj"].page_ios == joins["smj-semi"].page_ios
    assert joins["pmj"].results == joins["smj-semi"].results


@pytest.mark.parametrize(
    ("percent", "rows", "domain", "times"),
    [(10, 50_000, 50_000, 10), (10, 50_000, 1_000, 10), (4, 400_000, 400_000, 100), (4, 50_000, 1_000, 100)],
)
def test_first_results_come_earlier_than_from_semi_strict(
    tmp_path: Path, percent: int, rows: int, domain: int, times: int
) -> None:
    """Figure 10: the first 100 results, with one match a row or many, in rows moved."""
    work = {}
    for name in ("pmj", "smj-semi"):
        join = Measured(name, rows, domain, 2 * rows * percent // 100, tmp_path)
        work[name] = join.work_until(100)
        join.close()
    assert work["smj-semi"] >= times * work["pmj"], work


@pytest.mark.parametrize("algorithm", ["smj", "smj-semi"])
def test_nothing_comes_before_the_last_merge(tmp_path: Path, algorithm: str) -> None:
    join = Measured(algorithm, 2000, 100, 400, tmp_path)
    for side, whole in enumerate(join.inputs):
        assert join.arrive(side, whole) == []
    assert join.counters.rows_out == 0
    join.close()
