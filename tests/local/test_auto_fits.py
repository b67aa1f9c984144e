"""``auto`` takes a join that cannot spill only for inputs that fit, however small their files are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import earlyjoin as ej

ROWS = 50_000
TABLES = {
    "numbers": pa.table({"k": np.arange(ROWS), "v": np.arange(ROWS)}),
    "zeros": pa.table({"k": np.arange(ROWS), **{f"z{n}": np.zeros(ROWS, np.int64) for n in range(19)}}),
    "empty texts": pa.table({"k": np.arange(ROWS), **{f"s{n}": [""] * ROWS for n in range(10)}}),
    "one text": pa.table({"k": np.arange(ROWS), "s": ["x" * 200] * ROWS}),
    "lists": pa.table({"k": np.arange(ROWS), "l": pa.array([[0] * 20] * ROWS)}),
}


FORMS = ["csv", "jsonl", "arrow", "parquet", "no statistics"]


def form_of(name: str, form: str) -> bool:
    """Is there such a file? CSV has no lists."""
    return (name, form) != ("lists", "csv")


def write(table: pa.Table, form: str, path: Path) -> str:
    if form == "csv":
        pacsv.write_csv(table, path)
    elif form == "jsonl":
        lines = table.to_pandas().to_json(orient="records", lines=True)
        path.write_text(lines)
    elif form == "arrow":
        pyarrow.feather.write_feather(table, path, compression="zstd")
    elif form == "no statistics":
        pq.write_table(table, path, write_statistics=False)
    else:
        pq.write_table(table, path)
    return str(path)


@pytest.mark.parametrize(
    ("name", "form", "memory"),
    [
        pytest.param(name, form, memory, marks=[] if memory == "4MB" or form == "parquet" else [pytest.mark.slow])
        for name in TABLES
        for form in FORMS
        for memory in ("4MB", "8MB", "16MB")
        if form_of(name, form)
    ],
)
def test_a_join_that_was_begun_ends(tmp_path: Path, name: str, form: str, memory: str) -> None:
    suffix = {"no statistics": "parquet"}.get(form, form)
    path = write(TABLES[name], form, tmp_path / f"a.{suffix}")
    with ej.join(path, path, on="k", memory=memory) as query:
        assert sum(batch.num_rows for batch in query) == ROWS


@pytest.mark.parametrize("memory", ["2MB", "4MB", "16MB"])
def test_one_long_text_in_many_rows(tmp_path: Path, memory: str) -> None:
    path = write(pa.table({"k": np.arange(400), "s": ["x" * 100_000] * 400}), "parquet", tmp_path / "a.parquet")
    with ej.join(path, path, on="k", memory=memory) as query:
        assert sum(batch.num_rows for batch in query) == 400


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_small_files_are_joined_in_memory(tmp_path: Path, form: str) -> None:
    path = write(TABLES["numbers"], form, tmp_path / f"a.{form}")
    assert ej.join(path, path, on="k", memory="256MB").algorithm == "shj"
