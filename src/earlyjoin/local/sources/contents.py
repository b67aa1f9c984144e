"""What the first bytes of a file or a pipe tell about it."""

from __future__ import annotations

HEAD_BYTES = 1 << 12

_BEGINNINGS = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow file",
    b"\xff\xff\xff\xff": "arrow stream",
    b"FEA1": "Feather version 1",
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
    b"PK\x03\x04": "zip",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
COMPRESSIONS = ("gzip", "zstd", "bz2")
_SUFFIX_OF = {"gzip": ".gz", "zstd": ".zst", "bz2": ".bz2"}


def kind_of(head: bytes) -> str | None:
    """What begins like this: a format, a compression or an encoding; None for text and for what is not known.

    >>> kind_of(b"PAR1...")
    'parquet'
    """
    return next((kind for begin, kind in _BEGINNINGS.items() if head.startswith(begin)), None)


def no_text(head: bytes) -> str | None:
    """Why a file that should hold text does not, with what to do about it; None when nothing speaks against it."""
    kind = kind_of(head)
    if kind in COMPRESSIONS:
        return f"is compressed with {kind}; a name that ends with {_SUFFIX_OF[kind]} says so"
    if kind == "UTF-16":
        return f"is text in UTF-16; {as_utf8('UTF-16')}"
    if kind is not None:
        return f"is no text: it begins like {kind}"
    return "is no text: it has zero bytes" if b"\0" in head else None


def as_utf8(encoding: str) -> str:
    """What to do about a text in another encoding."""
    return f"save it as UTF-8, for example with iconv -f {encoding} -t UTF-8"


AS_UTF8 = as_utf8("LATIN1")
