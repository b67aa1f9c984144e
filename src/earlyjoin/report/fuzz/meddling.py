"""Damage: to files that a join has written, and to those that it reads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from earlyjoin.report.fuzz.columns import Rng
from earlyjoin.report.fuzz.inputs import Given, write

_FEWEST_BYTES = 17


def files_below(directory: Path) -> list[Path]:
    """Files with something in them, in a fixed order."""
    return sorted(path for path in directory.rglob("*") if path.is_file() and path.stat().st_size >= _FEWEST_BYTES)


def damage_some(paths: Sequence[Path], rng: Rng) -> bool:
    """Damage a few of the files; False if there is none."""
    if not paths:
        return False
    for at in rng.choice(len(paths), min(len(paths), int(rng.integers(1, 6))), replace=False):
        damage(paths[at], rng)
    return True


def damage(path: Path, rng: Rng) -> None:
    """Overwrite 1 to 16 bytes somewhere, cut the end off, or remove the file."""
    size = path.stat().st_size
    kind = rng.random()
    if kind < 0.05:
        path.unlink()
        return
    with path.open("r+b") as file:
        if kind < 0.2:
            file.truncate(int(rng.integers(0, size)))
        else:
            file.seek(int(rng.integers(0, max(1, size - 16))))
            file.write(rng.bytes(int(rng.choice([1, 16]))))


def change(given: Given, rng: Rng) -> bool:
    """Change one file of an input: other rows, fewer rows, the same bytes later, or damage; False if it has none."""
    if not given.files:
        return False
    path = given.files[rng.integers(len(given.files))]
    if not path.exists():
        return False
    kind = rng.random()
    if kind < 0.4:
        damage(path, rng) if path.stat().st_size >= _FEWEST_BYTES else path.touch()
    elif kind < 0.5:
        os.utime(path)
    else:
        replacement = path.with_name("new" + path.suffix)
        write(_other_rows(given.table, path, rng), replacement, rng)
        if rng.random() < 0.5:
            os.replace(replacement, path)
        else:
            path.write_bytes(replacement.read_bytes())
            replacement.unlink()
    return True


def _other_rows(table: pa.Table, path: Path, rng: Rng) -> pa.Table:
    """The rows in another order under the old numbers, and perhaps fewer of them."""
    if "=" in path.parent.name:
        table = table.drop_columns([table.column_names[-1]])
    id_at = next(at for at, name in enumerate(table.column_names) if name in ("lid", "rid"))
    most = max(1, table.num_rows // (2 if rng.random() < 0.5 else 1))
    numbers = table.column(id_at)
    cut = int(
        rng.integers(0, table.num_rows + 1)
    )  # rows cannot be taken one by one: Arrow has no kernel for some types
    turned = pa.concat_tables([table.slice(cut), table.slice(0, cut)])
    return turned.set_column(id_at, table.field(id_at), numbers).slice(0, most)
