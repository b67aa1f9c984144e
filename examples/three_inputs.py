"""Three inputs joined at once on one attribute: no two of them are joined first."""

import pyarrow as pa

import earlyjoin as ej

sensors = {"temperature": 1, "humidity": 7, "wind": 11}
readings = {
    name: pa.table({"minute": [(n * step) % 6000 for n in range(6000)], name: [n % 97 for n in range(6000)]})
    for name, step in sensors.items()
}

query = ej.multi_join(readings, on="minute", memory="1MB")
print(query.explain(), end="\n\n")
print(query.head(2).to_pylist(), end="\n\n")

rows = sum(batch.num_rows for batch in query)
print(f"{rows:,} minutes with all three, {query.summary()['phases']['arriving']:,} of them while the inputs were read")
