"""Inputs that come once: named pipes, process substitution, standard input."""

from __future__ import annotations

import gc
import gzip
import io
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import earlyjoin as ej
from earlyjoin.errors import InputError
from earlyjoin.local.sources import BatchSizes, Source, open_source
from earlyjoin.local.sources.piping.pipes import Pipe

Sent = Callable[..., str]


@pytest.fixture
def sent(tmp_path: Path) -> Iterator[Sent]:
    """A named pipe into which a thread writes; the pieces one after the other, with a pause between them."""
    threads = []

    def send(*pieces: bytes, pause_s: float = 0.0) -> str:
        path = str(tmp_path / f"pipe-{len(threads)}")
        os.mkfifo(path)

        def write() -> None:
            with open(path, "wb", buffering=0) as pipe:
                for piece in pieces:
                    pipe.write(piece)
                    time.sleep(pause_s)

        threads.append(threading.Thread(target=write))
        threads[-1].start()
        return path

    yield send
    for thread in threads:
        thread.join(timeout=20)
        assert not thread.is_alive()


def rows(source: Source) -> list[dict[str, object]]:
    return [row for batch in source.batches(BatchSizes()) for row in batch.to_pylist()]


def message(path: str, **options: object) -> str:
    with pytest.raises(InputError) as caught:
        rows(open_source(path, name="left", **options))
    return str(caught.value)


def arrow(table: pa.Table, *, file: bool = False) -> bytes:
    sink = io.BytesIO()
    with (pa.ipc.new_file if file else pa.ipc.new_stream)(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


TABLE = pa.table({"id": [1, 2], "s": ["a", "b"]})
CSV = b"id,s\n1,a\n2,b\n"
JSON = b'{"id": 1, "s": "a"}\n{"id": 2, "s": "b"}\n'


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (CSV, {}),
        (CSV.rstrip(), {}),
        (b"\xef\xbb\xbf" + CSV, {}),
        (b"\n\n" + CSV.replace(b"\n", b"\r\n\r\n"), {}),
        (b"\r\r" + CSV.replace(b"\n", b"\r"), {}),
        (b'"id",s\n"1","a"\n2,b', {}),
        (CSV.replace(b",", b";"), {"delimiter": ";"}),
        (gzip.compress(CSV, mtime=0), {}),
        (gzip.compress(CSV, mtime=0), {"format": "csv"}),
        (JSON, {}),
        (b"\n\n" + JSON.rstrip(), {}),
        (gzip.compress(JSON, mtime=0), {"format": "json"}),
        (arrow(TABLE), {}),
        (arrow(TABLE, file=True), {"format": "arrow"}),
    ],
)
def test_every_format_is_told_by_its_beginning(sent: Sent, content: bytes, options: dict[str, object]) -> None:
    source = open_source(sent(content), name="left", **options)
    assert source.schema.types == [pa.int64(), pa.string()]
    assert (source.live, source.replayable, source.files, source.reopening) == (True, False, None, None)
    assert rows(source) == TABLE.to_pylist()


@pytest.mark.parametrize("content", [CSV, JSON, arrow(TABLE)])
def test_nothing_is_lost_when_it_comes_byte_by_byte(sent: Sent, content: bytes) -> None:
    assert rows(open_source(sent(*[bytes([b]) for b in content]), name="left")) == TABLE.to_pylist()


@pytest.mark.parametrize("kind", ["csv", "json", "arrow"])
def test_more_than_a_block(sent: Sent, kind: str) -> None:
    count = 200_000
    table = pa.table({"id": range(count), "s": [f"row {n}" for n in range(count)]})
    if kind == "csv":
        content = b"id,s\n" + b"".join(b"%d,row %d\n" % (n, n) for n in range(count))
    elif kind == "json":
        content = b"".join(b'{"id": %d, "s": "row %d"}\n' % (n, n) for n in range(count))
    else:
        content = arrow(table)
    source = open_source(sent(content), name="left", columns=["s", "id"])
    assert pa.Table.from_batches(source.batches(BatchSizes())).equals(table.select(["s", "id"]))


def test_types_are_those_of_the_same_file(sent: Sent, tmp_path: Path) -> None:
    """A pipe gives out its first bytes in small pieces; what a column is must not depend on that."""
    content = [b"id,x\n", *(b"%d,%d\n" % (n, n) for n in range(50)), b"50,1.5\n"]
    (tmp_path / "same.csv").write_bytes(b"".join(content))
    expected = open_source(str(tmp_path / "same.csv"), name="left").schema
    assert open_source(sent(*content), name="left").schema == expected
    assert expected.field("x").type == pa.float64()


@pytest.mark.parametrize("kind", ["csv", "json", "arrow"])
def test_rows_come_before_the_pipe_ends(kind: str) -> None:
    """At once where the types are known, else behind the first block."""
    asked: list[threading.Event] = [threading.Event() for _ in range(3)]
    reading, writing = os.pipe()

    def write() -> None:
        with open(writing, "wb", buffering=0) as pipe:
            stream = pa.ipc.new_stream(pipe, TABLE.schema) if kind == "arrow" else None
            if kind == "json":
                pipe.write(b"".join(b'{"id": %d, "s": "x"}\n' % n for n in range(100_000)))
            if kind == "csv":
                pipe.write(b"id,s\n")
            for number, event in enumerate(asked):
                if stream is not None:
                    stream.write_batch(pa.record_batch({"id": [number], "s": ["late"]}))
                else:
                    pipe.write((b"%d,late\n" if kind == "csv" else b'{"id": %d, "s": "late"}\n') % number)
                assert event.wait(20), "the row is there only when another one has come"

    thread = threading.Thread(target=write)
    thread.start()
    types = {"id": "int64", "s": "string"} if kind == "csv" else None
    late = (
        row
        for batch in open_source(f"/dev/fd/{reading}", name="left", types=types).batches(BatchSizes())
        for row in batch.to_pylist()
        if row["s"] == "late"
    )
    for number, event in enumerate(asked):
        assert next(late)["id"] == number
        event.set()
    assert next(late, None) is None
    thread.join()
    os.close(reading)


def test_the_same_pipe_twice(sent: Sent) -> None:
    path = sent(CSV)
    first = open_source(path, name="left")
    other = os.path.join(os.path.dirname(path), ".", os.path.basename(path))
    assert "is read as another input already, and its rows come only once" in message(other)
    assert len(rows(first)) == 2


def test_a_pipe_can_be_used_again_when_it_has_another_writer(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    for _ in range(2):
        thread = threading.Thread(target=path.write_bytes, args=(CSV,))
        thread.start()
        source = open_source(str(path), name="left")
        assert len(rows(source)) == 2
        thread.join()


def test_a_query_on_a_pipe_cannot_be_paused(sent: Sent, tmp_path: Path) -> None:
    query = ej.join(sent(CSV), TABLE, on="id")
    with pytest.raises(InputError, match="can be read only once, so the query cannot be paused"):
        query.pause(tmp_path / "state")
    assert query.to_arrow().num_rows == 2


def test_a_header_without_rows_takes_the_types_of_the_other_side(sent: Sent) -> None:
    query = ej.join(sent(b"id,s\n"), TABLE, on="id", how="right")
    assert query.to_arrow().sort_by("id")["id"].to_pylist() == [1, 2]
    assert query.schema.field("id").type == pa.int64()


def test_parquet_is_refused(sent: Sent, tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "t.parquet")
    text = message(sent((tmp_path / "t.parquet").read_bytes()))
    assert text.endswith(
        "Parquet is read from its end, which a pipe cannot do; write it to a file, or send CSV, JSON lines or Arrow IPC"
    )


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        (b"", {}, "is empty: nothing came through it"),
        (b"", {"format": "csv"}, "is empty: CSV needs at least a header line"),
        (b"\n\n", {"format": "json"}, "is empty: no line to tell the columns by"),
        (b"a,b\n1\n", {}, "record 2 has 1 field, the header has 2"),
        (b"a,a\n1,2\n", {}, "the header names column 'a' twice"),
        (b"a,b\n1,caf\xe9\n", {}, "column 'b': its text is not valid UTF-8; save it as UTF-8"),
        (b"caf\xe9,b\n1,2\n", {}, r"the column name 'caf\xe9' in the header is not valid UTF-8"),
        ("a,b\n1,2\n".encode("utf-16"), {}, "is text in UTF-16"),
        (b'a,b\n1,5" disk\n2,"x\n3,y"\n4\n', {}, "record 4 has 1 field, the header has 2"),
        (b'a,b\n1,"x\n2,y\n', {}, "the last record opens a quote that is never closed"),
        (b'{"a": 1}\n{"a": [}\n', {}, "line 2 is not one JSON object"),
        (b"\x00\x01\x02", {}, "is no text: it has zero bytes"),
        (CSV, {"format": "arrow"}, "is not valid Arrow IPC: it does not begin like it"),
        (arrow(TABLE)[:-100], {}, "the Arrow IPC content is broken"),
        (gzip.compress(CSV, mtime=0)[:-10], {}, "is not a valid compressed file"),
        (CSV, {"types": {"x": "int64"}}, "types: no column 'x'; it has id, s"),
        (CSV, {"types": {"id": "date32"}}, "is not a valid date32[day]; the type was given in types="),
        (b"d\nx\n", {"types": {"d": pa.decimal128(5, 2)}}, "record 2, column 'd': 'x' is not a valid decimal128(5, 2)"),
        (b"d\n1.234\n", {"types": {"d": pa.decimal128(5, 2)}}, "data loss; the type was given in types="),
        (b"s\ncaf\xe9\n", {"types": {"s": "string"}}, "column 's': the text is not valid UTF-8; save it as UTF-8"),
        (CSV, {"order": "shuffled"}, "a pipe does not take the option 'order'"),
    ],
)
def test_what_cannot_be_read(sent: Sent, content: bytes, options: dict[str, object], words: str) -> None:
    if "order" in options:
        reading, writing = os.pipe()
        os.close(writing)
        assert words in message(f"/dev/fd/{reading}", **options)
        os.close(reading)
    else:
        assert words in message(sent(content), **options)


def test_a_value_that_does_not_fit_far_behind(sent: Sent, tmp_path: Path) -> None:
    """With the advice that the same file gets, in the words of either face."""
    content = b"id,s\n" + b"".join(b"%d,xxxxxxxx\n" % n for n in range(200_000)) + b"x,y\n"
    file = tmp_path / "same.csv"
    file.write_bytes(content)
    errors = []
    for path in (sent(content), str(file)):
        with pytest.raises(InputError) as caught:
            rows(open_source(path, name="left"))
        errors.append(caught.value)
    what = "column 'id': 'x' is not a valid int64; the type was inferred from the first rows; "
    assert f"record 200002, {what}pass types={{'id': 'string'}}" in str(errors[0])
    assert "--types-left" in (errors[0].command or "")
    told = [[text.split("column 'id': ")[1] for text in (str(one), one.command or "")] for one in errors]
    assert told[0] == told[1]


def test_a_pipe_stays_taken_however_often_it_is_refused() -> None:
    reading, writing = os.pipe()
    try:
        pipe = Pipe(f"/dev/fd/{reading}", "left")
        for _ in range(3):
            with pytest.raises(InputError, match="read as another input already"):
                Pipe(f"/dev/fd/{reading}", "right")
            gc.collect()
        pipe.close()
        Pipe(f"/dev/fd/{reading}", "right").close()
    finally:
        os.close(reading)
        os.close(writing)
