"""One block of JSON lines to a table: what reading and the search for a broken line share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class LineParser:
    """Parses whole lines; fields outside ``schema`` are inferred, or are an error."""

    schema: pa.Schema
    unexpected: Literal["infer", "error"]

    def parse(self, block: bytes, schema: pa.Schema | None = None) -> pa.Table:
        """The rows of ``block``, under another schema where one is given; raises what pyarrow raises."""
        import pyarrow.json as pajson

        table = pajson.read_json(
            pa.BufferReader(block),
            read_options=pajson.ReadOptions(use_threads=False, block_size=len(block) + 1),
            parse_options=pajson.ParseOptions(
                explicit_schema=self.schema if schema is None else schema, unexpected_field_behavior=self.unexpected
            ),
        )
        table.validate(full=True)  # the parser lets invalid UTF-8 through
        return table
