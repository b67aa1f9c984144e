"""Rows of this process as a directory of Parquet files, as Spark would have written it.

::

    batches ──▶ .NAME.…/part-00000-….snappy.parquet, part-00001-…, …  ──▶ _SUCCESS ──▶ NAME

The files are written into a hidden directory beside the target, which takes its name when it is complete. Sending the
rows to Spark first would take ten times as long.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from earlyjoin.errors import SinkError
from earlyjoin.spark.writing.swapping import Swap

FILE_NBYTES = 256 * 2**20
"""Rows of a file, as they are in memory."""
SUCCESS = "_SUCCESS"
_SCHEMA_KEY = b"org.apache.spark.sql.parquet.row.metadata"
_CODEC_SETTING = "spark.sql.parquet.compression.codec"
_CODECS = {"snappy": "snappy", "gzip": "gzip", "zstd": "zstd", "lz4_raw": "lz4", "none": "none", "uncompressed": "none"}
_SAME_IN_SPARK = frozenset({"boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary"})


def spark_schema(schema: pa.Schema, fields: Sequence[Any]) -> Any | None:
    """Spark's schema of the rows, from the fields of the inputs that fill them; None if it takes Spark to write them.

    Only types that have one meaning in Parquet are written here.
    """
    from pyspark.sql.types import StructField, StructType

    if any(one.dataType.simpleString() not in _SAME_IN_SPARK for one in fields):
        return None
    return StructType(
        [StructField(name, one.dataType, True, one.metadata) for name, one in zip(schema.names, fields, strict=True)]
    )


def codec_of(session: Any) -> str | None:
    """How the session compresses Parquet; None for what Arrow does not know."""
    return _CODECS.get(str(session.conf.get(_CODEC_SETTING, "snappy")).lower())


def write_batches(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, target: Path, *, spark_fields: Any, codec: str
) -> int:
    """Write all rows and return their number. After a failure nothing is left, and nothing was replaced."""
    stored = schema.with_metadata({_SCHEMA_KEY: spark_fields.json().encode()})
    with Swap(target) as swap:
        try:
            swap.hidden.mkdir(parents=True)
            rows = _write_files(batches, stored, swap.hidden, codec)
            (swap.hidden / SUCCESS).touch()
            swap.commit()
        except (OSError, pa.ArrowException) as error:
            raise SinkError(f"cannot write {str(target)!r}: {error}") from error
    return rows


def _write_files(batches: Iterable[pa.RecordBatch], schema: pa.Schema, directory: Path, codec: str) -> int:
    """At least one file, so that an empty result has columns too."""
    job, ending = uuid.uuid4(), "parquet" if codec == "none" else f"{codec}.parquet"
    rows, number, source = 0, 0, iter(batches)
    batch = next(source, None)
    while batch is not None or number == 0:
        path, nbytes = directory / f"part-{number:05}-{job}-c000.{ending}", 0
        with pq.ParquetWriter(path, schema, compression=codec) as writer:
            while batch is not None and nbytes < FILE_NBYTES:
                writer.write_batch(batch.replace_schema_metadata(schema.metadata))
                rows, nbytes = rows + batch.num_rows, nbytes + batch.nbytes
                batch = next(source, None)
        number += 1
    return rows
