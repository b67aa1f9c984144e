"""Many columns as one or two: what costs time a column, a few rows at a time, then costs it once a row.

Rows of hundreds of columns soon fill a small memory, so that batches and pages have few rows; gathering, writing and
reading them column by column takes far longer than moving their bytes. Columns that a join does not look at travel side
by side in one value, and are columns again when rows go out. Texts lie side by side in a second value, and their
lengths in the first::

    values of 8 bytes … │ of 4 bytes, lengths of texts … │ of 2 … │ of 1 … │ a bit a column: is it there, or null?
    text │ text │ text …
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from earlyjoin.predicates.encoding.buffers import validity
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.state.rows.packed_texts import TEXTS, Lengths, apart, side_by_side, text_lengths
from earlyjoin.state.rows.sizes import LIKELY_NBYTES, likely_row_nbytes
from earlyjoin.state.rows.store import Rows

PACKED, PACKED_TEXTS = "__packed", "__packed_texts"
"""The names of the columns of packed values."""
LEAST_COLUMNS = 32
"""Fewer columns are not worth it."""
_WORD = 8
_LENGTH_NBYTES, _OFFSET_NBYTES = 4, 8

Block = npt.NDArray[np.uint8]
"""Packed values: a row for each row, a byte for each byte of them."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Columns whose values have the same number of bytes lie side by side."""

    start: int
    width: int
    positions: tuple[int, ...]

    def values(self, block: Block) -> npt.NDArray[np.generic]:
        """A row for each row, a column for each column; a view."""
        dtype = np.dtype(f"u{self.width}" if self.width in (1, 2, 4, 8) else f"V{self.width}")
        return block[:, self.start : self.start + self.width * len(self.positions)].view(dtype)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Some columns, by position."""

    wanted: tuple[int, ...]
    plain: tuple[int, ...]
    """Those that travel as they are."""
    places: list[int]
    """Where they lie among those that travel."""
    packed: frozenset[int]
    texts: list[int]
    """Where the packed texts lie among those that travel, if any of them is wanted."""
    nbytes: int
    """Bytes of the packed ones of a row, once they are columns again, and while they still are not; without texts."""


class RowPacking:
    """Which columns of a schema are packed, and how."""

    def __init__(self, schema: pa.Schema, positions: Sequence[int]) -> None:
        self.schema = schema
        packed = set(positions)
        plain = [position for position in range(len(schema)) if position not in packed]
        self.places = {position: place for place, position in enumerate(plain)}
        """Where the columns that travel as they are lie among those that travel."""
        self._types = [field.type for field in schema]
        self._chosen: dict[tuple[int, ...], _Chosen] = {}
        self._groups: list[_Group] = []
        self._texts = [position for position in positions if not _width(self._types[position])]
        """Packed columns of texts, in the order in which they lie."""
        by_width: dict[int, list[int]] = {}
        for position in positions:
            by_width.setdefault(_width(self._types[position]) or _LENGTH_NBYTES, []).append(position)
        start = 0
        for width in sorted(by_width, key=lambda width: -(width & -width)):  # every value where its size wants it
            self._groups.append(_Group(start, width, tuple(by_width[width])))
            start += width * len(by_width[width])
        self._bits = start
        self._order = [position for group in self._groups for position in group.positions]
        """Packed columns in the order of their bits."""
        whole = start + -(-len(self._order) // 8)
        self.row_nbytes = -(-whole // _WORD) * _WORD
        self.at = len(plain)
        """Where the column of packed values lies."""
        fields = [*(schema.field(position) for position in plain), pa.field(PACKED, pa.binary(self.row_nbytes), False)]
        if self._texts:
            likely = likely_row_nbytes(pa.schema([schema.field(position) for position in self._texts]))
            fields.append(pa.field(PACKED_TEXTS, pa.large_binary(), False, {LIKELY_NBYTES: str(likely)}))
        self.packed_schema = pa.schema(fields)

    @classmethod
    def of(cls, schema: pa.Schema, looked_at: Container[str]) -> RowPacking | None:
        """The packing of an input of whose columns a join looks at some; None where there is too little to pack."""
        names = schema.names
        able = [p for p, field in enumerate(schema) if _can_be_packed(field.type) and field.name not in looked_at]
        taken = PACKED in names or PACKED_TEXTS in names
        if len(able) < LEAST_COLUMNS or len(set(names)) < len(names) or taken:
            return None
        return cls(schema, able)

    def width(self, position: int) -> int:
        """Bytes of a packed value; 0 for texts."""
        return _width(self._types[position])

    def pack(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch as its rows travel."""
        rows, columns = batch.num_rows, batch.columns
        block = np.zeros((rows, self.row_nbytes), dtype=np.uint8)
        texts = [columns[position] for position in self._texts]
        lengths = text_lengths(texts)
        number_of = {position: number for number, position in enumerate(self._texts)}
        for group in self._groups:
            values = group.values(block)
            for number, position in enumerate(group.positions):
                text = number_of.get(position)
                values[:, number] = _fixed(columns[position], values.dtype) if text is None else lengths[text]
        self._pack_bits(block, [columns[position] for position in self._order])
        packed = [pa.Array.from_buffers(pa.binary(self.row_nbytes), rows, [None, pa.py_buffer(block)])]
        if texts:
            packed.append(side_by_side(texts, lengths))
        return pa.RecordBatch.from_arrays([*(columns[p] for p in self.places), *packed], schema=self.packed_schema)

    def _pack_bits(self, block: Block, columns: list[pa.Array]) -> None:
        bits = block[:, self._bits :]
        bits[:] = 0xFF
        for number, column in enumerate(columns):
            valid = validity(column) if column.null_count else None
            if valid is not None:
                bits[~valid, number // 8] &= np.uint8(0xFF ^ (1 << number % 8))

    def unpack(self, packed: pa.Array, texts: pa.Array | None, positions: Container[int]) -> dict[int, pa.Array]:
        """Some columns, by position, of packed values; ``texts`` may be left out if none of those is text."""
        rows = len(packed)
        raw = np.frombuffer(packed.buffers()[1] or b"", dtype=np.uint8)[packed.offset * self.row_nbytes :]
        block = raw[: rows * self.row_nbytes].reshape(rows, self.row_nbytes)
        validities = self._validities(block)
        arrays: dict[int, pa.Array] = {}
        lengths: dict[int, npt.NDArray[np.generic]] = {}
        nulls: dict[int, pa.Buffer | None] = {}
        number = 0
        for group in self._groups:
            values = group.values(block)
            chosen = []
            for place, position in enumerate(group.positions):
                if _width(self._types[position]) == 0:
                    lengths[position], nulls[position] = values[:, place], validities.get(number + place)
                elif position in positions:
                    chosen.append(place)
            values = values if len(chosen) == len(group.positions) else values[:, chosen]
            buffer, step = pa.py_buffer(np.ascontiguousarray(values.T)), rows * group.width
            for at, place in enumerate(chosen):
                position = group.positions[place]
                held, type_ = buffer.slice(at * step, step), self._types[position]
                valid = validities.get(number + place)
                if group.width == 1 and pa.types.is_boolean(type_):
                    flags = pa.Array.from_buffers(pa.uint8(), rows, [valid, held])
                    arrays[position] = flags.cast(type_)
                else:
                    arrays[position] = pa.Array.from_buffers(type_, rows, [valid, held])
            number += len(group.positions)
        if texts is not None:
            matrix: Lengths = np.empty((rows, len(self._texts)), dtype=np.uint32)
            for at, position in enumerate(self._texts):
                matrix[:, at] = lengths[position]
            chosen = [number for number, position in enumerate(self._texts) if position in positions]
            wanted = [self._texts[number] for number in chosen]
            columns = apart(texts, matrix, chosen, [(self._types[one], nulls[one]) for one in wanted])
            arrays |= dict(zip(wanted, columns, strict=True))
        return arrays

    def _validities(self, block: Block) -> dict[int, pa.Buffer]:
        """The bits of those columns that have nulls, by number."""
        bits = block[:, self._bits :]
        missing = np.unpackbits(~np.bitwise_and.reduce(bits, axis=0), bitorder="little")
        return {
            number: pa.py_buffer(np.packbits(bits[:, number // 8] >> np.uint8(number % 8) & 1, bitorder="little"))
            for number in np.flatnonzero(missing).tolist()
        }

    def chosen(self, columns: Sequence[int] | None) -> _Chosen:
        """What choosing some columns means; found out once for each choice, because there may be thousands."""
        wanted = tuple(range(len(self.schema)) if columns is None else columns)
        if wanted not in self._chosen:
            plain = tuple(position for position in wanted if position in self.places)
            packed = frozenset(wanted).difference(plain)
            nbytes = sum(self.width(position) or _OFFSET_NBYTES for position in packed)
            places = [self.places[position] for position in plain]
            texts = [self.at + 1] if any(not self.width(position) for position in packed) else []
            nbytes = nbytes + self.row_nbytes if packed else 0
            self._chosen[wanted] = _Chosen(wanted, plain, places, packed, texts, nbytes)
        return self._chosen[wanted]


class UnpackedRows:
    """Rows that travel packed, as those see them who build rows of all columns."""

    def __init__(self, rows: Rows, packing: RowPacking) -> None:
        self._rows, self._packing = rows, packing
        self.schema = packing.schema

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, index: Int64, columns: Sequence[int] | None = None) -> list[pa.Array]:
        """The chosen rows, with the packed columns among those wanted unpacked."""
        chosen = self._packing.chosen(columns)
        packed = [self._packing.at, *chosen.texts] if chosen.packed else []
        taken = self._rows.take(index, [*chosen.places, *packed])
        arrays = dict(zip(chosen.plain, taken, strict=False))
        if packed:
            fixed, *texts = taken[len(chosen.plain) :]
            arrays |= self._packing.unpack(fixed, texts[0] if texts else None, chosen.packed)
        return [arrays[position] for position in chosen.wanted]

    def sizes(self, index: Int64, columns: Sequence[int] | None = None) -> Int64:
        """Bytes of each of the chosen rows."""
        chosen = self._packing.chosen(columns)
        sizes = self._rows.sizes(index, chosen.places) + chosen.nbytes
        return sizes + 2 * self._rows.sizes(index, chosen.texts) if chosen.texts else sizes

    def widest(self, columns: Sequence[int]) -> int:
        """No row takes more bytes than this."""
        chosen = self._packing.chosen(columns)
        return self._rows.widest(chosen.places) + 2 * self._rows.widest(chosen.texts) + chosen.nbytes


def _width(type_: pa.DataType) -> int:
    """Bytes of a packed value; 0 for types that are not packed."""
    is_ = pa.types
    if is_.is_boolean(type_):
        return 1
    if is_.is_primitive(type_) or is_.is_decimal(type_) or is_.is_fixed_size_binary(type_):
        return int(type_.byte_width)
    return 0


def _can_be_packed(type_: pa.DataType) -> bool:
    return bool(_width(type_)) or type_ in TEXTS


def _fixed(column: pa.Array, dtype: np.dtype[np.generic]) -> npt.NDArray[np.generic]:
    """The values of a column; under a null lies anything."""
    flat = column.cast(pa.uint8()) if pa.types.is_boolean(column.type) else column
    values: npt.NDArray[np.generic] = np.frombuffer(flat.buffers()[1], dtype, len(flat), flat.offset * dtype.itemsize)
    return values
