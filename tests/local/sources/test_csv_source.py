"""CSV: types from the first rows, and the physical line of whatever is wrong."""

from __future__ import annotations

import bz2
import gzip
import re
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlyjoin.errors import InputError, SourceError
from earlyjoin.local.sources import BatchSizes, open_source
from earlyjoin.local.sources.text import csv as csv_source


def table(path: object, **options: object) -> pa.Table:
    source = open_source(path, name="left", **options)
    return pa.Table.from_batches(source.batches(BatchSizes()), source.schema)


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def message(path: Path, **options: object) -> str:
    with pytest.raises(InputError) as caught:
        table(path, **options)
    text = str(caught.value)
    assert text.startswith(str(path))
    return text[len(str(path)) + 2 :]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that inference sees a few rows only, as it does in a large file."""
    monkeypatch.setattr(csv_source, "BLOCK_BYTES", 64)


def test_types_and_nulls(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", 'i,f,s,d,e\n1,1.5,x,2020-01-02,\n,,,,\n3,NaN,"",2020-01-03,\n')
    result = table(path)
    assert [str(field.type) for field in result.schema] == ["int64", "double", "string", "date32[day]", "string"]
    assert result["i"].to_pylist() == [1, None, 3]
    assert result["s"].to_pylist() == ["x", None, ""]
    assert result["e"].to_pylist() == [None] * 3


def test_delimiter_and_types(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "k|v\n007|1\n8|2\n")
    result = table(path, delimiter="|", types={"k": "string", "v": pa.float32()})
    assert result["k"].to_pylist() == ["007", "8"]
    assert result.schema.field("v").type == pa.float32()
    assert table(written(tmp_path / "a.tsv", "k\tv\n1\t2\n"))["v"].to_pylist() == [2]
    assert table(path, delimiter="|", columns=["v"])["v"].to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"delimiter": "||"}, "the delimiter must be one ASCII character, no quote and no line end; got '||'"),
        ({"delimiter": "é"}, "the delimiter must be one ASCII character, no quote and no line end; got 'é'"),
        ({"types": {"kk": "int64"}}, "no column 'kk'; did you mean 'k'?"),
        ({"types": {"k": "integer"}}, "types: 'integer' for column 'k' is no type; give a pyarrow type, or a name"),
        ({"columns": ["z"]}, "no column 'z'; it has k, v"),
        ({"types": {"k": pa.list_(pa.int64())}}, "is not a valid CSV file: CSV conversion to list"),
    ],
)
def test_wrong_options(tmp_path: Path, options: dict[str, object], expected: str) -> None:
    path = written(tmp_path / "a.csv", "k,v\n1,2\n")
    with pytest.raises(InputError, match=re.escape(expected)):
        open_source(path, name="left", **options)


@pytest.mark.parametrize("suffix", ["gz", "bz2", "zst"])
def test_compressed(tmp_path: Path, suffix: str) -> None:
    content = b"k,v\n" + b"1,2\n" * 10_000 + b"1,2,3\n"
    packed = {
        "gz": gzip.compress,
        "bz2": bz2.compress,
        "zst": lambda data: pa.compress(data, "zstd", asbytes=True),
    }[suffix](content)
    path = written(tmp_path / f"a.csv.{suffix}", packed)
    assert message(path) == "line 10002 has 3 fields, the header has 2: 1,2,3"
    path.write_bytes(packed[: len(packed) // 2])
    assert message(path).startswith(("the CSV content is broken: ", "is not a valid CSV file: "))


def test_field_count_after_blank_lines_and_quoted_newlines(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", '\na,b\n1,2\n\n\n"x\n\ny",3\n4,5\n6,7,8\n9,9\n')
    assert message(path) == "line 10 has 3 fields, the header has 2: 6,7,8"
    path = written(tmp_path / "a.csv", '"a\nname",b\r\n1,2\r\n\r\n7\r\n')
    assert message(path) == "line 5 has 1 field, the header has 2: 7"


def test_value_that_does_not_convert(tmp_path: Path, small_blocks: None) -> None:
    path = written(tmp_path / "a.csv", "k,price\n" + "1,2\n" * 50 + "\n" + "1,2\n" * 50 + "1,cheap\n")
    assert message(path) == (
        "line 103, column 'price': 'cheap' is not a valid int64; "
        "the type was inferred from the first rows; pass types={'price': 'string'} or another type"
    )
    assert table(path, types={"price": "string"})["price"].to_pylist()[-1] == "cheap"
    assert message(path, types={"price": pa.decimal128(5, 2)}) == (
        "line 103, column 'price': 'cheap' is not a valid decimal128(5, 2); the type was given in types="
    )
    assert message(path, types={"price": pa.int64()}, columns=["price"]).startswith("line 103, column 'price': 'cheap'")


def test_text_that_is_not_utf8(tmp_path: Path, small_blocks: None) -> None:
    path = written(tmp_path / "a.csv", b"k,s\n" + b"1,abc\n" * 30 + b"1,\xe9t\xe9\n")
    where = r"line 32, column 's': the text '\xe9t\xe9' is not valid UTF-8"
    assert message(path) == f"{where}; save it as UTF-8, for example with iconv -f LATIN1 -t UTF-8"


def test_empty_columns_turn_out_to_be_text(tmp_path: Path, small_blocks: None) -> None:
    path = written(tmp_path / "a.csv", "k,s\n" + "1,\n" * 50 + "1,late\n")
    assert table(path)["s"].to_pylist() == [None] * 50 + ["late"]


def test_unclosed_quote(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", 'k,s\n1,a\n\n2,"open\n3,b\n4,c\n')
    assert message(path) == "line 4 opens a quote that is never closed"
    source = open_source(path, name="left")
    rows: list[int] = []
    with pytest.raises(InputError, match="never closed"):
        rows.extend(batch.num_rows for batch in source.batches(BatchSizes()))
    assert rows == []  # the value that swallowed the rest was never given out
    assert table(written(path, 'k,s\n1,"a\nb"\n')).num_rows == 1
    path = written(tmp_path / "b.csv", 'k,s\n1,a\n2,"open\n' + "3,b\n" * 1_000_000)
    assert message(path) == "line 3 begins a record of more than 1 MB; is a quote never closed?"


def test_byte_order_mark_and_last_line_without_end(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", b"\xef\xbb\xbfk,v\n1,2\n3,4\n5")
    assert message(path) == "line 4 has 1 field, the header has 2: 5"
    assert table(written(path, b"\xef\xbb\xbfk,v\r\n1,2\r\n3,4"))["k"].to_pylist() == [1, 3]


FIELD = st.sampled_from(["1", "22", "", '"q"', '"a,b"', '"two\nlines"', '"a ""q"" b"', '"\n\n"', 'in"ch'])
ROW = st.one_of(st.just(""), st.tuples(FIELD, FIELD).map(",".join))


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(ROW, max_size=30),
    after=st.lists(ROW, max_size=5),
    end=st.sampled_from(["\n", "\r\n"]),
    plain_rows=st.sampled_from([0, 0, 3, 400_000]),
)
def test_line_numbers_of_any_file(
    tmp_path_factory: pytest.TempPathFactory, rows: list[str], after: list[str], end: str, plain_rows: int
) -> None:
    """The line reported is the one the broken row was written on, whatever comes before it."""
    good = ["a,b", *["1,2"] * plain_rows, "", *rows]
    text = end.join(good) + end
    path = written(tmp_path_factory.mktemp("csv") / "a.csv", text + "x,y,z" + end + end.join(after))
    line = text.count("\n") + 1
    types = {"a": "string", "b": "string"}
    assert message(path, types=types) == f"line {line} has 3 fields, the header has 2: x,y,z"


def test_several_files(tmp_path: Path) -> None:
    written(tmp_path / "0.csv", "")
    written(tmp_path / "00.csv", "a,b")
    written(tmp_path / "000.csv", "a,b\n")
    written(tmp_path / "1.csv", "a,b\n1,x\n")
    written(tmp_path / "2.csv", "b,a\ny,2\n")
    assert table(tmp_path).to_pydict() == {"a": [1, 2], "b": ["x", "y"]}
    last = written(tmp_path / "3.csv", "a,b\nz,x\n")
    with pytest.raises(InputError, match=r"3.csv: line 2, column 'a': 'z' is not a valid int64; the type was inferred"):
        table(tmp_path)
    last.write_text("a,c\n1,2\n")
    with pytest.raises(InputError, match=r"3.csv: column 'b' is missing, which .*0.csv has"):
        table(tmp_path)
    last.write_text("a,b,c\n1,2,3\n")
    with pytest.raises(InputError, match=r"3.csv: column 'c' is new, .*0.csv does not have it"):
        table(tmp_path)
    last.write_text("a,b\n1,2\n")
    source = open_source(tmp_path, name="left")
    last.unlink()
    with pytest.raises(SourceError, match=r"3.csv: could not be read on: No such file or directory"):
        list(source.batches(BatchSizes()))


def test_quoted_newlines_across_blocks(tmp_path: Path, small_blocks: None) -> None:
    texts = [f"line {i}\nand more" for i in range(50)]
    path = written(tmp_path / "a.csv", "k,s\n" + "".join(f'{i},"{text}"\n' for i, text in enumerate(texts)))
    assert table(path).to_pydict() == {"k": list(range(50)), "s": texts}


def test_same_file_twice(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "a\n1\n")
    assert table([path, path])["a"].to_pylist() == [1, 1]


def test_headers(tmp_path: Path) -> None:
    assert message(written(tmp_path / "a.csv", "")) == "is empty: a CSV file needs at least a header line"
    assert message(written(tmp_path / "a.csv", "a,b,a\n1,2,3\n")) == "the header names column 'a' twice"
    only_header = table(written(tmp_path / "a.csv", "a,b\n"))
    assert only_header.num_rows == 0
    assert only_header.schema.names == ["a", "b"]
    assert table(written(tmp_path / "a.csv", "a,b")).schema.names == ["a", "b"]


def test_what_is_no_utf8_text_is_told_before_any_row(tmp_path: Path) -> None:
    """Regression: pyarrow takes a column for bytes when its first block is no UTF-8; the error came from the output."""
    latin = written(tmp_path / "latin.csv", b"k,s\n1,caf\xe9\n")
    assert r"line 2, column 's': the text 'caf\xe9' is not valid UTF-8; save it as UTF-8" in message(latin)
    header = written(tmp_path / "header.csv", b"k,caf\xe9\n1,2\n")
    assert r"the column name 'caf\xe9' in the header is not valid UTF-8" in message(header)
    wide = written(tmp_path / "wide.csv", "k,s\n1,a\n".encode("utf-16"))
    assert "is text in UTF-16; save it as UTF-8, for example with iconv -f UTF-16" in message(wide)
    packed = written(tmp_path / "packed.csv", gzip.compress(b"k,s\n1,a\n"))
    assert "is compressed with gzip; a name that ends with .gz says so" in message(packed)
