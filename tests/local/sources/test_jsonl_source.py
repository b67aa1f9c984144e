"""JSON lines: columns from the first block, and the line of whatever is wrong."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlyjoin.errors import InputError
from earlyjoin.local.sources import BatchSizes, open_source
from earlyjoin.local.sources.text import jsonl


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
    monkeypatch.setattr(jsonl, "BLOCK_BYTES", 64)


GOOD = '{"a": 1, "s": "x"}\n'


def test_reads(tmp_path: Path, small_blocks: None) -> None:
    path = written(
        tmp_path / "a.jsonl", '\n\n{"a": 1, "s": "x", "n": null}\r\n\n' + '{"s": "y"}\n' * 20 + '{"n": "late"}'
    )
    result = table(path)
    assert result["a"].to_pylist() == [1] + [None] * 21
    assert result["n"].to_pylist() == [None] * 21 + ["late"]


def test_long_lines(tmp_path: Path) -> None:
    path = written(tmp_path / "a.ndjson", "".join(json.dumps({"t": c * 3_000_000}) + "\n" for c in "abc"))
    assert [len(text) for text in table(path)["t"].to_pylist()] == [3_000_000] * 3


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        ('{"a": 1, "s": }', "line 45 is not one JSON object: Expecting value at character 15: "),
        ('{"a": 1', "line 45 is not one JSON object: Expecting ',' delimiter at character 9: "),
        ("[1, 2]", "line 45 is not one JSON object but a list: [1, 2]"),
        ("7", "line 45 is not one JSON object but a number: 7"),
        (
            '{"a": "one"}',
            "line 45 field 'a': \"one\" is not a valid int64, the type inferred from the first rows; pass",
        ),
        (
            '{"a": 1.5}',
            "line 45 field 'a': 1.5 is not a valid int64, the type inferred from the first rows; pass types=",
        ),
        ('{"a": 1, "b": 2}', "line 45 has a field 'b' that the first rows do not have; name it in types= to read it"),
        ('{"a": 1, "a": 2}', 'line 45 does not fit the lines before it: {"a": 1, "a": 2}'),
    ],
)
def test_broken_lines(tmp_path: Path, small_blocks: None, broken: str, expected: str) -> None:
    path = written(tmp_path / "a.jsonl", GOOD * 20 + "\n\n" + GOOD * 22 + broken + "\n" + GOOD * 20)
    assert message(path).startswith(expected)
    packed = written(tmp_path / "b.jsonl.gz", gzip.compress(path.read_bytes()))
    assert message(packed).startswith(expected)


def test_broken_in_the_first_block(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", GOOD * 3 + '{"a": "one"}\n' + GOOD)
    assert message(path).startswith("line 4 field 'a': \"one\" is not a valid int64, the type inferred")
    assert message(written(path, "{\n" + GOOD)).startswith("line 1 is not one JSON object: ")
    assert message(written(path, GOOD + "\n\noops\n")).startswith("line 4 is not one JSON object: Expecting value at")
    assert message(path, types={"a": "bool"}).startswith("line 1 field 'a': 1 is not a valid bool, the type given in")


def test_not_utf8(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", GOOD.encode() + b'{"a": 1, "s": "\xff"}\n')
    assert message(path) == "line 2 is not valid UTF-8 at byte 16"


def test_types_override_and_add(tmp_path: Path, small_blocks: None) -> None:
    path = written(tmp_path / "a.json", '{"a": 1}\n' * 30 + '{"a": 2.5, "b": "x"}\n')
    result = table(path, types={"a": "double", "b": "string"})
    assert result["a"].to_pylist() == [1.0] * 30 + [2.5]
    assert result["b"].to_pylist() == [None] * 30 + ["x"]


def test_several_files(tmp_path: Path) -> None:
    written(tmp_path / "0.jsonl", "\n")
    written(tmp_path / "1.jsonl", GOOD)
    written(tmp_path / "2.jsonl", '{"s": "y", "a": 2}\n')
    assert table(tmp_path).to_pydict() == {"a": [1, 2], "s": ["x", "y"]}
    written(tmp_path / "3.jsonl", GOOD + '{"a": true}\n')
    with pytest.raises(InputError, match=r"3.jsonl: line 2 field 'a': true is not a valid int64"):
        table(tmp_path)


def test_empty_and_not_compressed(tmp_path: Path) -> None:
    assert message(written(tmp_path / "a.jsonl", "\n\n")) == "is empty: no line to tell the columns by"
    assert message(written(tmp_path / "a.jsonl.gz", GOOD)).startswith("is not a valid JSON file: ")
    packed = gzip.compress(GOOD.encode() * 200_000)
    cut = written(tmp_path / "b.jsonl.gz", packed[: len(packed) * 3 // 4])
    assert message(cut).startswith("the JSON content is broken: Truncated compressed stream")


@settings(max_examples=40, deadline=None)
@given(before=st.lists(st.sampled_from([GOOD, "\n", "{}\n", '{"s": "a\\nb"}\r\n']), max_size=60))
def test_line_numbers_of_any_file(tmp_path_factory: pytest.TempPathFactory, before: list[str]) -> None:
    content = GOOD + "".join(before)
    path = written(tmp_path_factory.mktemp("jsonl") / "a.jsonl", content + "{broken}\n" + GOOD)
    assert message(path).startswith(f"line {content.count(chr(10)) + 1} is not one JSON object: ")
