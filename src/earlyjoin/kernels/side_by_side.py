"""Texts of a row that lie side by side: written there column by column, and read from there into columns."""

from __future__ import annotations

import numpy.typing as npt
from numba import njit
from numpy import int64, uint8, uint32

Int64 = npt.NDArray[int64]
UInt32 = npt.NDArray[uint32]
UInt8 = npt.NDArray[uint8]


@njit(cache=True, nogil=True)
def put_texts(data: UInt8, starts: Int64, lengths: UInt32, rows: UInt8, ends: Int64) -> None:
    """Copy the text of each row to where its row ends so far, and move that end."""
    for row in range(len(lengths)):
        start, end = starts[row], ends[row]
        for at in range(int64(lengths[row])):
            rows[end + at] = data[start + at]
        ends[row] = end + int64(lengths[row])


@njit(cache=True, nogil=True)
def take_texts(rows: UInt8, starts: Int64, lengths: UInt32, slots: Int64, columns: UInt8, places: Int64) -> None:
    """Copy the texts of rows into columns that lie one behind the other.

    ``slots`` is the column that each text goes to, -1 for none; ``places`` where the first free byte of each column is.
    """
    for row in range(len(lengths)):
        start = starts[row]
        for text in range(lengths.shape[1]):
            length, slot = int64(lengths[row, text]), slots[text]
            if slot >= 0:
                place = places[slot]
                for at in range(length):
                    columns[place + at] = rows[start + at]
                places[slot] = place + length
            start += length
