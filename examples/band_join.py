"""Trades and quotes of the same symbol within five seconds of each other."""

from datetime import datetime, timedelta

import pyarrow as pa

import earlyjoin as ej

noon = datetime(2024, 5, 17, 12)
trades = pa.table(
    {"symbol": ["A", "A", "B"], "time": [noon, noon + timedelta(seconds=30), noon], "price": [10.0, 10.5, 99.0]}
)
quotes = pa.table(
    {"symbol": ["A", "A", "B"], "time": [noon + timedelta(seconds=s) for s in (-4, 33, 60)], "bid": [9.9, 10.4, 98.0]}
)

near_in_time = ej.equal("symbol") & ej.band("time", eps="5 seconds")
for row in ej.join(trades, quotes, on=near_in_time, how="left").to_arrow().to_pylist():
    print(row["symbol"], row["price"], row["bid"])
