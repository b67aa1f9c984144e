"""Columns that grow: one storage form for each kind of Arrow type, contiguous so that gathering is one Arrow ``take``.

Fixed-width values lie in one array, strings and bytes in one heap with 64-bit offsets; booleans take a byte. Validity
is a byte a row and exists only once a null has come. :mod:`earlyjoin.state.rows.nested_columns` has the types without
a flat form.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from earlyjoin.kernels.keeping_bytes import keep_bytes
from earlyjoin.predicates.encoding.buffers import fixed_width, validity
from earlyjoin.predicates.encoding.keys import Int64
from earlyjoin.state.budget import Account
from earlyjoin.state.growable import WIDE_NBYTES, Growable

UInt8 = npt.NDArray[np.uint8]
_VIEW_BYTES = 16
"""What a string takes in an output besides its bytes, at most: an offset or a view."""


class Column(ABC):
    """One column of a row store."""

    def __init__(self, type_: pa.DataType, account: Account) -> None:
        self.type = type_
        self._account = account

    @abstractmethod
    def append(self, values: pa.Array) -> None:
        """Add values at the end."""

    @abstractmethod
    def take(self, index: pa.Array) -> pa.Array:
        """Copies of the chosen values, of the column's own type."""

    def view(self, start: int, stop: int) -> pa.Array:
        """Some values next to each other, not copied where possible; valid until the column changes."""
        return self.take(pa.array(range(start, stop), type=pa.int64()))

    @abstractmethod
    def truncate(self, length: int) -> None:
        """Forget the values from row ``length`` on."""

    @abstractmethod
    def keep(self, index: Int64) -> None:
        """Let these values, in ascending order, be all there are."""

    @abstractmethod
    def clear(self) -> None:
        """Forget everything and give the memory back."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes held."""

    @abstractmethod
    def sizes(self, index: Int64) -> Int64 | int:
        """Bytes that each of the chosen values will take in an output; one number when all take the same."""

    @property
    @abstractmethod
    def widest(self) -> int:
        """No value takes more bytes than this in an output."""


class _Nullable(Column):
    """Validity shared by the flat columns: a byte a row, from the first null on."""

    def __init__(self, type_: pa.DataType, account: Account) -> None:
        super().__init__(type_, account)
        self._valid: Growable | None = None
        self._length = 0

    def _append_validity(self, values: pa.Array) -> None:
        if self._valid is None and values.null_count:
            valid = Growable(np.uint8, self._account)
            valid.extend(self._length)[:] = 1
            self._valid = valid  # only now: a refusal must not leave flags that are shorter than the column
        if self._valid is not None:
            valid_here = validity(values)
            self._valid.append(np.ones(len(values), np.uint8) if valid_here is None else valid_here.view(np.uint8))
        self._length += len(values)

    def _validity_of(self, index: pa.Array) -> pa.Buffer | None:
        if self._valid is None:
            return None
        bits = self._valid.data[fixed_width(index, np.int64)]
        return None if bits.all() else pa.py_buffer(np.packbits(bits, bitorder="little"))

    def _validity_between(self, start: int, stop: int) -> pa.Buffer | None:
        if self._valid is None or self._valid.data[start:stop].all():
            return None
        bits = cast("npt.NDArray[np.uint8]", self._valid.data)[start:stop]
        return pa.py_buffer(np.packbits(bits, bitorder="little"))

    def _truncate_validity(self, length: int) -> None:
        self._length = min(self._length, length)
        if self._valid is not None:
            self._valid.truncate(length)

    def _keep_validity(self, index: Int64) -> None:
        self._length = len(index)
        if self._valid is not None:
            self._valid.keep(index)

    def _clear_validity(self) -> None:
        self._length = 0
        if self._valid is not None:
            self._valid.clear()
            self._valid = None

    @property
    def _validity_nbytes(self) -> int:
        return self._valid.nbytes if self._valid is not None else 0


class FixedColumn(_Nullable):
    """Values of a fixed number of bytes."""

    def __init__(self, type_: pa.DataType, account: Account) -> None:
        super().__init__(type_, account)
        self._stored = pa.uint8() if pa.types.is_boolean(type_) else type_
        self._values = Growable(np.dtype((np.void, self._stored.byte_width)), account)

    def append(self, values: pa.Array) -> None:
        if len(values) == 0:
            return
        flat = values.cast(self._stored) if self._stored is not self.type else values
        # By bytes: a buffer may end in padding that is not a whole value.
        width = self._values.row_nbytes
        raw = np.frombuffer(flat.buffers()[1], dtype=np.uint8)[flat.offset * width : (flat.offset + len(flat)) * width]
        self._values.append(raw.view(self._values.whole.dtype))
        self._append_validity(values)

    def take(self, index: pa.Array) -> pa.Array:
        everything = pa.Array.from_buffers(self._stored, self._length, [None, pa.py_buffer(self._values.data)])
        taken = everything.take(index)
        validity = self._validity_of(index)
        if validity is not None:
            taken = pa.Array.from_buffers(self._stored, len(taken), [validity, taken.buffers()[1]])
        return taken.cast(self.type) if self._stored is not self.type else taken

    def view(self, start: int, stop: int) -> pa.Array:
        if self._stored is not self.type:
            return super().view(start, stop)
        buffers = [self._validity_between(start, stop), pa.py_buffer(self._values.data[start:stop])]
        return pa.Array.from_buffers(self._stored, stop - start, buffers)

    def truncate(self, length: int) -> None:
        self._values.truncate(length)
        self._truncate_validity(length)

    def keep(self, index: Int64) -> None:
        self._values.keep(index)
        self._keep_validity(index)

    def clear(self) -> None:
        self._values.clear()
        self._clear_validity()

    @property
    def nbytes(self) -> int:
        return self._values.nbytes + self._validity_nbytes

    def sizes(self, index: Int64) -> Int64 | int:
        return self.widest

    @property
    def widest(self) -> int:
        return int(self._stored.byte_width)


class HeapColumn(_Nullable):
    """Strings and bytes of any length."""

    def __init__(self, type_: pa.DataType, account: Account) -> None:
        super().__init__(type_, account)
        textual = pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_)
        self._stored = pa.large_string() if textual else pa.large_binary()
        self._longest = 0
        self._offsets = Growable(np.int64, account)
        self._heap = Growable(np.uint8, account)

    def append(self, values: pa.Array) -> None:
        if len(values) == 0:
            return
        flat = values if values.type == self._stored else values.cast(self._stored)
        _, offsets_buffer, data_buffer = flat.buffers()
        offsets = np.frombuffer(offsets_buffer, dtype=np.int64)[flat.offset : flat.offset + len(flat) + 1]
        if self._offsets.length == 0:
            self._offsets.append(np.zeros(1, dtype=np.int64))
        data = np.frombuffer(data_buffer or b"", dtype=np.uint8)[offsets[0] : offsets[-1]]
        # Room for the offsets first: a refusal must leave offsets and heap of the same length.
        self._offsets.ensure(self._offsets.length + len(flat))
        self._longest = max(self._longest, int(np.diff(offsets).max()))
        shift = self._heap.length - offsets[0]
        self._heap.wide = self._heap.wide or len(data) >= WIDE_NBYTES * len(flat)
        self._heap.append(data)
        self._offsets.append(offsets[1:] + shift)
        self._append_validity(values)

    def take(self, index: pa.Array) -> pa.Array:
        buffers = [None, pa.py_buffer(self._offsets.data), pa.py_buffer(self._heap.data)]
        taken = pa.Array.from_buffers(self._stored, self._length, buffers).take(index)
        validity = self._validity_of(index)
        if validity is not None:
            taken = pa.Array.from_buffers(self._stored, len(taken), [validity, *taken.buffers()[1:]])
        return taken if self._stored == self.type else taken.cast(self.type)

    def view(self, start: int, stop: int) -> pa.Array:
        offsets = pa.py_buffer(self._offsets.data[start : stop + 1])
        buffers = [self._validity_between(start, stop), offsets, pa.py_buffer(self._heap.data)]
        values = pa.Array.from_buffers(self._stored, stop - start, buffers)
        return values if self._stored == self.type else values.cast(self.type)

    def truncate(self, length: int) -> None:
        if self._offsets.length:
            self._offsets.truncate(length + 1)
            self._heap.truncate(int(self._offsets.data[-1]))
        self._truncate_validity(length)

    def keep(self, index: Int64) -> None:
        if self._offsets.length:
            end = keep_bytes(cast(Int64, self._offsets.data), cast(UInt8, self._heap.data), index)
            self._offsets.truncate(len(index) + 1)
            self._heap.truncate(end)
        self._keep_validity(index)

    def clear(self) -> None:
        self._offsets.clear()
        self._heap.clear()
        self._clear_validity()

    @property
    def nbytes(self) -> int:
        return self._offsets.nbytes + self._heap.nbytes + self._validity_nbytes

    def sizes(self, index: Int64) -> Int64 | int:
        offsets = cast(Int64, self._offsets.data)
        return _VIEW_BYTES + offsets[index + 1] - offsets[index]

    @property
    def widest(self) -> int:
        return _VIEW_BYTES + self._longest
