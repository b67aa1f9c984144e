"""Where records of CSV end, against pyarrow's own parser."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv
from hypothesis import given
from hypothesis import strategies as st

from earlyjoin.kernels.csv_records import whole_records

PIECES = st.lists(st.sampled_from(["a", '"', '""', ",", "\n", "\r\n", '"x\ny"', ' "']), max_size=30)


def parsed(text: bytes) -> list[str]:
    """The records as pyarrow sees them: all in one column, which a delimiter that does not occur makes."""
    if not text.strip(b"\r\n"):
        return []
    table = pyarrow.csv.read_csv(
        pa.BufferReader(text),
        read_options=pyarrow.csv.ReadOptions(column_names=["all"], use_threads=False),
        parse_options=pyarrow.csv.ParseOptions(delimiter="\x01", newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(column_types={"all": pa.string()}),
    )
    values: list[str] = table["all"].to_pylist()
    return values


@given(PIECES)
def test_a_cut_leaves_the_records_as_they_are(pieces: list[str]) -> None:
    text = "".join(pieces).encode()
    end, records, quoted = whole_records(np.frombuffer(text, np.uint8), 1, 1000)
    if not quoted:
        assert parsed(text[:end]) + parsed(text[end:]) == parsed(text)
    assert len(parsed(text[:end])) == records
