"""Chunks of a plane sweep (PMJ section 3, spatial and similarity joins): sorted by the second axis.

Chunks lie side by side: chunk c is the elements ``spans[c, 0]`` to ``spans[c, 1]``, sorted by their place on the
second axis, and ``bounds[c]`` are the least and the largest sweep word and the largest sweep word that one of them
still reaches. Queries go on and end as in ``sweep_ranges``; chunks are visited from the last to the first, and places
count down.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]
RectangleArea = tuple[Int64, Int64, Int64, Int64, Int64, Int64]
NearArea = tuple[Float64, Int64, Float64]


@njit(cache=True, nogil=True, inline="always")
def _chunk_of(spans: Int64, place: int) -> int:
    """The chunk in which a query stopped at ``place``; the last one for a new query."""
    chunk = len(spans) - 1
    if place >= 0:
        while spans[chunk, 0] >= place:
            chunk -= 1
    return chunk


@njit(cache=True, nogil=True)
def rectangle_pairs(
    spans: Int64, bounds: Int64, area: RectangleArea, queries: Int64, valid: Bool,
    row: int, place: int, out_handles: Int64, out_rows: Int64,
) -> tuple[int, int, int]:  # fmt: skip
    """Elements ``(y lows, x lows, x highs, handles, y highs, tops of y highs)`` that intersect rectangles (n, 4)."""
    y_lows, x_lows, x_highs, handles, y_highs, tops = area
    found = 0
    room = len(out_handles)
    while row < len(queries):
        if valid.size and not valid[row]:
            row += 1
            continue
        x_low, y_low, x_high, y_high = queries[row, 0], queries[row, 1], queries[row, 2], queries[row, 3]
        chunk = _chunk_of(spans, place)
        while chunk >= 0:
            first = spans[chunk, 0]
            if place < 0:
                if bounds[chunk, 0] > x_high or bounds[chunk, 2] < x_low:
                    chunk -= 1
                    continue
                place = first + np.searchsorted(y_lows[first : spans[chunk, 1]], y_high, side="right")
            while place > first:
                if tops[place - 1] < y_low:
                    place -= place & -place
                    continue
                k = place - 1
                if y_highs[k] >= y_low and x_lows[k] <= x_high and x_highs[k] >= x_low:
                    if found == room:
                        return found, row, place
                    out_handles[found] = handles[k]
                    out_rows[found] = row
                    found += 1
                place -= 1
            place = -1
            chunk -= 1
        row += 1
    return found, row, -1


@njit(cache=True, nogil=True, inline="always")
def _far(points: Float64, k: int, query: Float64, most: float) -> bool:
    """Whether the squared distance is surely above ``most``: looked at after two, four and then every four steps."""
    width = len(query)
    squares = 0.0
    j = 0
    while j + 4 <= width:
        a = points[k, j] - query[j]
        b = points[k, j + 1] - query[j + 1]
        squares += a * a + b * b
        if squares > most:
            return True
        a = points[k, j + 2] - query[j + 2]
        b = points[k, j + 3] - query[j + 3]
        squares += a * a + b * b
        if squares > most:
            return True
        j += 4
    while j < width:
        a = points[k, j] - query[j]
        squares += a * a
        j += 1
    return squares > most


@njit(cache=True, nogil=True, inline="always")
def _near(points: Float64, k: int, query: Float64, ranks: Int64, square: float) -> bool:
    """The predicate itself: squares summed in the order of the columns."""
    squares = 0.0
    for j in ranks:
        step = points[k, j] - query[j]
        squares += step * step
    return squares <= square


@njit(cache=True, nogil=True)
def near_pairs(
    spans: Int64, bounds: Float64, area: NearArea, queries: Float64, valid: Bool, dimensions: Int64,
    limits: tuple[float, float, float], row: int, place: int, out_handles: Int64, out_rows: Int64,
) -> tuple[int, int, int]:  # fmt: skip
    """Elements ``(y, handles, points)`` whose squared distance is at most a limit.

    Points hold their coordinates in the order ``dimensions``, the sweep's axis first and the chunks' axis next.
    ``limits``: the square of eps, a bit more than it (to sort out by sums in any order), and a bit more than eps.
    """
    ys, handles, points = area
    square, most, reach = limits
    found = 0
    room = len(out_handles)
    width = len(dimensions)
    second = min(1, width - 1)
    ranks = np.empty(width, dtype=np.int64)
    for j in range(width):
        ranks[dimensions[j]] = j
    query = np.empty(width, dtype=np.float64)
    while row < len(queries):
        if valid.size and not valid[row]:
            row += 1
            continue
        for j in range(width):
            query[j] = queries[row, dimensions[j]]
        y_low, y_high = np.nextafter(query[second] - reach, -np.inf), np.nextafter(query[second] + reach, np.inf)
        x_high = np.nextafter(query[0] + reach, np.inf)
        chunk = _chunk_of(spans, place)
        while chunk >= 0:
            first, stop = spans[chunk, 0], spans[chunk, 1]
            if place < 0:
                if bounds[chunk, 0] > x_high or bounds[chunk, 2] < query[0]:
                    chunk -= 1
                    continue
                place = first + np.searchsorted(ys[first:stop], y_high, side="right")
            while place > first and ys[place - 1] >= y_low:
                k = place - 1
                if not _far(points, k, query, most) and _near(points, k, query, ranks, square):
                    if found == room:
                        return found, row, place
                    out_handles[found] = handles[k]
                    out_rows[found] = row
                    found += 1
                place -= 1
            place = -1
            chunk -= 1
        row += 1
    return found, row, -1
