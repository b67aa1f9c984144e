"""TPC-H tables for experiments that count work: key columns alone, from tpchgen-cli or generated with the same keys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from earlyjoin.errors import InputError
from earlyjoin.report.bench import tpch

COLUMNS = {
    "customer": ["c_custkey", "c_nationkey"],
    "orders": ["o_orderkey", "o_custkey"],
    "lineitem": ["l_orderkey", "l_linenumber"],
    "partsupp": ["ps_partkey", "ps_suppkey"],
}


def table(name: str, scale: float, seed: int, *, permuted: bool = False) -> tuple[pa.Table, str]:
    """The key columns of a table at a scale factor, as stored or in random order, and where they come from."""
    try:
        import pyarrow.parquet as pq

        path = tpch.table(tpch.default_directory(), name, scale)
        rows, origin = pq.read_table(path, columns=COLUMNS[name]), "TPC-H"
    except InputError:  # no generator
        rows, origin = generated(name, scale, seed), "keys distributed as in TPC-H"
    if permuted:
        rows = rows.take(pa.array(np.random.default_rng([seed, len(name)]).permutation(len(rows))))
    return rows.combine_chunks(), origin


def generated(name: str, scale: float, seed: int) -> pa.Table:
    """The key columns with TPC-H's distribution, made without TPC-H's generator."""
    customers, parts, orders = (max(10, round(rows * scale)) for rows in (150_000, 200_000, 1_500_000))
    rng = np.random.default_rng([seed, len(name)])
    if name == "customer":
        columns = [np.arange(1, customers + 1), rng.integers(0, 25, customers)]
    elif name == "partsupp":
        columns = [np.repeat(np.arange(1, parts + 1), 4), np.tile(np.arange(1, 5), parts)]
    else:
        # Eight order keys in every 32; a third of the customers never orders; one to seven lines an order.
        number = np.arange(orders)
        order_keys = number // 8 * 32 + number % 8 + 1
        if name == "orders":
            custkeys = rng.integers(0, customers * 2 // 3, orders)
            columns = [order_keys, custkeys // 2 * 3 + custkeys % 2 + 1]
        else:
            lines = rng.integers(1, 8, orders)
            starts = np.repeat(np.cumsum(lines) - lines, lines)
            columns = [np.repeat(order_keys, lines), np.arange(lines.sum()) - starts + 1]
    return pa.table(dict(zip(COLUMNS[name], columns, strict=True)))
