"""The first rows of a join, long before the inputs have been read."""

import pyarrow as pa

import earlyjoin as ej

orders = pa.table({"order": range(50_000), "customer": [n % 1000 for n in range(50_000)]})
customers = pa.table({"customer": range(1000), "name": [f"customer {n}" for n in range(1000)]})

query = ej.join(orders, customers, on="customer", memory="64MB")
print(query.explain(), end="\n\n")
print(query.head(3).to_pylist(), end="\n\n")

rows = sum(batch.num_rows for batch in query)
print(f"{rows:,} rows, the first after {query.summary()['seconds']['first']:.3f} s")
