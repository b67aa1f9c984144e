"""Where records of CSV end, by the rules of pyarrow's parser: a quote counts only where a field begins."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

_FIELD_BEGINS, _PLAIN, _QUOTED, _QUOTE_IN_QUOTED = 0, 1, 2, 3
_QUOTE, _LINE_FEED, _RETURN = 34, 10, 13


@njit(cache=True, nogil=True)
def whole_records(data: npt.NDArray[np.uint8], delimiter: int, most: int) -> tuple[int, int, bool]:
    """Bytes up to the end of the last whole record, how many records that are, and whether a quote is open behind them.

    Blank lines are no records. With ``most`` records it stops.

    >>> whole_records(np.frombuffer(b'a,b\\n1,"x\\ny"\\n2,"z\\n', np.uint8), ord(","), 9)
    (12, 2, True)
    """
    end = records = begin = 0
    state = _FIELD_BEGINS
    for at in range(len(data)):
        byte = data[at]
        if state == _QUOTED:
            if byte == _QUOTE:
                state = _QUOTE_IN_QUOTED
        elif byte in (_LINE_FEED, _RETURN):
            if at > begin:
                records += 1
            end = begin = at + 1
            state = _FIELD_BEGINS
            if records == most:
                break
        elif byte == _QUOTE and state in (_FIELD_BEGINS, _QUOTE_IN_QUOTED):
            state = _QUOTED
        elif byte == delimiter:
            state = _FIELD_BEGINS
        else:
            state = _PLAIN
    return end, records, state == _QUOTED
