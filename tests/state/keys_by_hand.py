"""Keys made by hand, also such as no encoder would make: equal words with different bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from earlyjoin.predicates.encoding.keys import Bytes, Keys
from earlyjoin.state.budget import Account, Budget, MemoryLimit

Key = tuple[tuple[int, ...], bytes | None]


def keys_of(keys: Sequence[Key], *, valid: Sequence[bool] | None = None, width: int = 1) -> Keys:
    """Encoded keys of (words, bytes)."""
    words = np.array([words for words, _ in keys], dtype=np.int64).reshape(len(keys), width)
    heap = None
    if not keys or keys[0][1] is not None:
        offsets = np.zeros(len(keys) + 1, dtype=np.int64)
        np.cumsum([len(data or b"") for _, data in keys], out=offsets[1:])
        heap = Bytes(offsets, np.frombuffer(b"".join(data or b"" for _, data in keys), dtype=np.uint8))
    return Keys(words, heap, None if valid is None else np.array(valid, dtype=np.bool_))


def plain(words: Sequence[int] | np.ndarray) -> Keys:
    """Keys of one word."""
    return Keys(np.asarray(words, dtype=np.int64).reshape(-1, 1))


def account(bytes_: int = 10**8, name: str = "keys") -> Account:
    """An account in a budget of its own."""
    return Budget(MemoryLimit(bytes=bytes_)).account(name)
