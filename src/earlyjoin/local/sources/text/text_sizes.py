"""How much memory the rows of text files may take: told from their beginning, rather too much than too little."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pyarrow as pa

from earlyjoin.local.sources.paths import COMPRESSED
from earlyjoin.state.rows.sizes import likely_row_nbytes

_HEAD_BYTES = 1 << 16
_SHORTER = 2
"""Rows later in a file may be so many times as short as those at its beginning."""


def most_of_text(files: Sequence[str], schema: pa.Schema) -> tuple[int, int] | None:
    """Bytes in memory and rows; None where files are compressed, so that nobody knows."""
    if any(file.lower().endswith(COMPRESSED) for file in files):
        return None
    nbytes = sum(os.path.getsize(file) for file in files)
    rows = nbytes * _SHORTER // _line_bytes(files) + len(files)
    # Texts are no longer in memory than in the file; numbers may be shorter there.
    return nbytes + rows * likely_row_nbytes(schema), rows


def _line_bytes(files: Sequence[str]) -> int:
    """Of a line at the beginning of the first file that has some."""
    for file in files:
        with open(file, "rb") as raw:
            head = raw.read(_HEAD_BYTES)
        lines = head.count(b"\n") + (not head.endswith(b"\n"))
        if head:
            return max(1, len(head) // lines)
    return 1
