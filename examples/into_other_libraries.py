"""A query that DuckDB, Polars and pyarrow read as it is joined; OR, a condition on one side, and a cross join."""

import pyarrow as pa

import earlyjoin as ej

people = pa.table({"id": [1, 2, 3, 4], "age": [17, 34, 52, None], "town": ["ely", "york", "bath", "ely"]})
visits = pa.table(
    {"id": [1, 2, 2, 4], "kind": ["school", "school", "work", "work"], "to": ["ely", "bath", "york", "ely"]}
)

grown_up_or_at_school = ej.join(people, visits, on="id", where="age >= 18 or kind = 'school'")
print(repr(grown_up_or_at_school))
print(pa.table(grown_up_or_at_school).select(["id", "kind"]).to_pylist())

# Part of the condition, as in SQL's ON: whoever fails it is there, without a match.
kept = ej.join(people, visits, left_on=["id", "town"], right_on=["id", "to"], where="left.age < 18", how="left")

numbers = pa.table({"n": range(5)})
pairs = sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(ej.join(numbers, numbers, how="cross")))
print(f"{pairs} pairs, {len(kept.to_arrow())} rows kept on the left")
