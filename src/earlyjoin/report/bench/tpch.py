"""TPC-H tables as Parquet files, made once and kept: in the order of the generator, or with rows in random order."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from earlyjoin.errors import EarlyJoinError, InputError

_SHUFFLED_ROW_GROUP = 128 * 1024


def default_directory() -> Path:
    """Where data is kept from one run to the next."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "earlyjoin" / "bench"


def table(directory: Path, name: str, scale: float, *, shuffled: bool = False) -> Path:
    """The Parquet file of a table, generated if it is not there."""
    stored = directory / f"tpch-{scale:g}" / f"{name}.parquet"
    if not stored.exists():
        _generate(stored, name, scale)
    if not shuffled:
        return stored
    path = stored.with_name(f"{name}-shuffled.parquet")
    if not path.exists():
        _shuffle(stored, path)
    return path


def parts(directory: Path, name: str, scale: float, count: int) -> Path:
    """A table as a directory of so many files in the order of the generator, generated if it is not there."""
    target = directory / f"tpch-{scale:g}" / f"{name}-{count}-parts"
    if not target.exists():
        _generate(target, name, scale, "--parts", str(count))
    return target


def _generate(path: Path, name: str, scale: float, *more: str) -> None:
    command = Path(sys.executable).with_name("tpchgen-cli")
    tool = str(command) if command.exists() else shutil.which("tpchgen-cli")
    if tool is None:
        raise InputError("TPC-H data is made by tpchgen-cli, which is not installed; run: pip install tpchgen-cli")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as fresh:
        arguments = [tool, "parquet", "-s", f"{scale:g}", f"--tables={name}", f"--output-dir={fresh}", *more]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise EarlyJoinError(f"tpchgen-cli failed: {done.stderr.strip() or done.stdout.strip()}")
        (Path(fresh) / (name if more else path.name)).replace(path)


def _shuffle(source: Path, target: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = pq.read_table(source)
    # Arrow cannot gather string views.
    plain = pa.schema([f.with_type(pa.string()) if pa.types.is_string_view(f.type) else f for f in rows.schema])
    order = np.random.default_rng(0).permutation(len(rows))
    part = target.with_suffix(".part")
    pq.write_table(rows.cast(plain).take(pa.array(order)), part, row_group_size=_SHUFFLED_ROW_GROUP)
    part.replace(target)
