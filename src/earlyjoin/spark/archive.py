"""The package as a zip file, for executors that have NumPy, Numba and PyArrow but not earlyjoin."""

from __future__ import annotations

import os
import tempfile
import zipfile
from pathlib import Path

from earlyjoin.errors import InputError

_EPOCH = (1980, 1, 1, 0, 0, 0)


def make_archive(path: str | os.PathLike[str]) -> Path:
    """Write a zip of this package's Python files, which get their name when the zip is complete.

    The same version gives the same bytes. Hand it to ``spark-submit --py-files``, to ``SparkContext.addPyFile``, or on
    Spark Connect to ``spark.addArtifacts(path, pyfile=True)``.
    """
    target = Path(path)
    if target.suffix != ".zip":
        raise InputError(f"the archive {str(target)!r} must be named *.zip: Python imports from nothing else")
    if not target.parent.is_dir():
        raise InputError(f"the directory {str(target.parent)!r} does not exist; create it or name another")
    package = Path(__file__).parents[1]
    handle, part = tempfile.mkstemp(suffix=".part", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for source in sorted(package.rglob("*.py")):
                entry = zipfile.ZipInfo(f"earlyjoin/{source.relative_to(package).as_posix()}", _EPOCH)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, source.read_bytes())
        os.chmod(part, 0o644)
        os.replace(part, target)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
    return target
