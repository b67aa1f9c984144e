"""EHJ figure 9: customer, orders and lineitem as a tree of two joins."""

from __future__ import annotations

import tempfile

from earlyjoin.predicates import equal
from earlyjoin.report.experiments import tpch_keys
from earlyjoin.report.experiments.ehj.setting import CONTENDERS, COSTS, batch_rows, one_sided, over_results
from earlyjoin.report.experiments.experiment import Experiment, Figure, Findings
from earlyjoin.report.experiments.moments import History, Recorder
from earlyjoin.report.experiments.running import Input, PulledJoin
from earlyjoin.state.cost_clock import CostClock

LABELS = ("EHJ2", "DHJ", "HMJ", "XJoin")
_MEMORY = (90_000, 450_000)


def run(scale: float, seed: int) -> Findings:
    """The curves, and how much faster EHJ2 is."""
    runs = {label: _tree(label, scale, seed) for label in LABELS}
    total = {label: history.last.seconds for label, history in runs.items()}
    figures = [
        Figure("EHJ2 faster than XJoin, share of the time", "0.29", 1 - total["EHJ2"] / total["XJoin"]),
        Figure("EHJ2 faster than HMJ, share of the time", "0.28", 1 - total["EHJ2"] / total["HMJ"]),
        Figure("EHJ2 over DHJ", "about 1", total["EHJ2"] / total["DHJ"]),
        *(Figure(f"page I/Os, {label}", "", history.last.page_ios) for label, history in runs.items()),
    ]
    results = {history.last.results for history in runs.values()}
    panel = over_results(runs.values(), "customer ⋈ orders ⋈ lineitem, memory 90,000 and 450,000 rows")
    return Findings([panel], figures, [f"results in all: {sorted(results)}"])


def _tree(label: str, scale: float, seed: int) -> History:
    """The upper join reads the lower one's results as they come, as one of its two inputs."""
    contender, rows = one_sided(CONTENDERS[label]), batch_rows(scale)
    tables = {name: tpch_keys.table(name, scale, seed)[0] for name in ("customer", "orders", "lineitem")}
    stored = {name: Input.of(table, rows) for name, table in tables.items()}
    clock = CostClock(COSTS)
    memory = [round(scale * given) for given in _MEMORY]
    with tempfile.TemporaryDirectory() as directory:
        lower = PulledJoin(
            contender, equal("c_custkey", "o_custkey"), (stored["customer"], stored["orders"]),
            memory_rows=memory[0], clock=clock, directory=directory,
        )  # fmt: skip
        joined = Input(schema=lower.plan.output.schema, batches=lower.rows(), rows=stored["orders"].rows)
        upper = PulledJoin(
            contender, equal("o_orderkey", "l_orderkey"), (joined, stored["lineitem"]),
            memory_rows=memory[1], clock=clock, directory=directory,
        )  # fmt: skip
        recorder = Recorder(label, clock, [lower.context.counters, upper.context.counters])
        try:
            for _ in upper.steps():
                recorder.note()
        finally:
            upper.close()
            lower.close()
    return recorder.history


EXPERIMENT = Experiment("ehj-fig9", "A tree of two joins", "EHJ, figure 9", run)
