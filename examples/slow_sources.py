"""Two inputs that arrive in bursts: rows come out while both are still on their way."""

import earlyjoin as ej
from earlyjoin.local.sources import Bursty, SimulatedSource, generated

left, right = (
    SimulatedSource(generated(20_000, 5_000, seed=seed), Bursty(gap_s=0.001, burst=5, pause_s=0.05), seed=seed)
    for seed in (1, 2)
)
query = ej.join(left, right, on="k")
for _ in query:
    progress = query.progress
    print(f"{progress.seconds:5.2f} s  {progress.rows_out:7,} rows from {progress.rows_in} rows read")
