"""Failures of Spark's tasks that happen to many, by the words they come with, and what to do about each."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from urllib.parse import unquote

_OURS = {"pyarrow", "pandas", "numpy", "numba", "scipy", "pyspark", "py4j", "cloudpickle"}
_NO_MODULE = re.compile(
    r"(?:ModuleNotFoundError|ImportError): No module named '([\w.]+)'|PACKAGE_NOT_INSTALLED\] (\w+)"
)
_OTHER_PYTHON = re.compile(
    r"PYTHON_VERSION_MISMATCH\].*?worker has different version: ([\d.]+) than .*?: ([\d.]+)", re.S
)
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)": (?:error=\d+, )?(.*)')
_UNREADABLE = re.compile(r"\[FAILED_READ_FILE\.(\w+)\] Encountered error while reading file (.+?)\.(?:\s|$)")
_TARGET = re.compile(r"Task failed while writing rows to (\S+?)\.(?:\s|$)")
_FULL = "No space left on device"
_FULL_FILE = re.compile(r"No space left on device: '([^']+)'|(/\S+) \(No space left on device\)")
_SCRATCH = re.compile(r"shuffle|DiskBlockObjectWriter|UnsafeSorterSpill|DiskStore|blockmgr")
_RESULT_SIZE = re.compile(r"results of .*? \(([^)]+)\) is bigger than spark\.driver\.maxResultSize \(([^)]+)\)")
_HEAP = re.compile(
    r"^(?!\s+at ).*(?:OutOfMemoryError(?:: ([\w ]+))?|UNABLE_TO_ACQUIRE_MEMORY|exit(?:ed with)? ?code:? 52\b)",
    re.MULTILINE,
)
_KILLED = re.compile(r"exceeding (?:physical |virtual )?memory limits|OOMKilled|(?:code|status|exitCode:?) 137\b")
_LOST = re.compile(r"ExecutorLostFailure \((.*)")


def known_python(raised: str) -> str | None:
    """What an exception of a Python worker means; None for one of the user's own functions."""
    other = _OTHER_PYTHON.search(raised)
    if other is not None:
        return f"Spark's workers run Python {other[1]}, and this process Python {other[2]}; {set_python()}"
    module = _NO_MODULE.search(raised)
    if module is not None and (name := (module[1] or module[2]).split(".")[0].lower()) in _OURS:
        return f"the Python of Spark's workers has no {name}; {set_python()}"
    if module is not None and name == "earlyjoin":
        return (
            "the Python of Spark's workers has no earlyjoin; install it there, or make an archive of it with "
            "`earlyjoin archive` and add it to the session: spark.addArtifacts('earlyjoin.zip', pyfile=True)"
        )
    if _FULL in raised and raised.startswith("OSError"):
        return _full_disk([raised], "")
    if raised.startswith("MemoryError"):
        return (
            "a Python worker ran out of memory; give executors more (spark.executor.memoryOverhead, "
            "spark.executor.pyspark.memory), or cut the work smaller (spark.sql.shuffle.partitions)"
        )
    return None


def known_java(links: Sequence[str], told: str) -> str | None:
    """What exceptions of Java mean, given by their messages from the outermost down; None when they are not known."""
    readers: tuple[Callable[[Sequence[str], str], str | None], ...] = (
        _no_python,
        _unreadable_file,
        _full_disk,
        _large_result,
        _no_memory,
        _lost,
    )
    return next((said for reader in readers if (said := reader(links, told)) is not None), None)


def set_python() -> str:
    """What to set, and to what."""
    version = "{}.{}".format(*sys.version_info)
    return (
        f"set PYSPARK_PYTHON to a Python {version} that has pyarrow, on this machine to {sys.executable!r}, "
        "before Spark starts (with Spark Connect: where the server starts)"
    )


def no_worker(said: str) -> str:
    """A Python that does not even start."""
    return f"the Python of Spark's workers does not start: {said or 'it does not say why'}; {set_python()}"


def _no_python(links: Sequence[str], told: str) -> str | None:
    found = next((found for link in links if (found := _NO_PROGRAM.search(link))), None)
    return no_worker(f"{found[1]!r}: {found[2].strip()}") if found is not None else None


def _unreadable_file(links: Sequence[str], told: str) -> str | None:
    for position, link in enumerate(links):
        found = _UNREADABLE.search(link)
        if found is None:
            continue
        file = _path(found[2])
        if found[1] == "FILE_NOT_EXIST":
            return (
                f"the file {file!r} is gone: it was removed or rewritten since the DataFrame was made; "
                "read the input again, and join again"
            )
        why = links[-1] if position + 1 < len(links) else link[found.end() :].strip()
        return f"the file {file!r} cannot be read: {why or 'Spark does not say why'}"
    return None


def _full_disk(links: Sequence[str], told: str) -> str | None:
    if not any(_FULL in link for link in links):
        return None
    text = "\n".join(links)
    file, target = _FULL_FILE.search(text), _TARGET.search(text)
    if file is not None:
        return f"the disk is full (no space left on device) where {file[1] or file[2]!r} is written; free some space"
    if target is not None:
        return f"the disk is full (no space left on device) where {_path(target[1])!r} is written; free some space"
    scratch = "Spark keeps temporary files" if _SCRATCH.search(told) else "Spark writes"
    return (
        f"a disk is full (no space left on device) where {scratch}; free some space, or start the session with "
        "spark.local.dir set to a directory on a larger disk (without it, that is /tmp)"
    )


def _large_result(links: Sequence[str], told: str) -> str | None:
    found = next((found for link in links if (found := _RESULT_SIZE.search(link))), None)
    if found is None:
        return None
    return (
        f"{found[1]} of rows were to come to the driver at once, and spark.driver.maxResultSize allows {found[2]}; "
        "start the session with a larger one (0: no limit); a result that is too large for this process can go to "
        "files with write()"
    )


def _no_memory(links: Sequence[str], told: str) -> str | None:
    advice = (
        "give it more when the session starts (spark.executor.memory{}; spark.driver.memory where Spark runs in one "
        "process), or cut the work smaller (spark.sql.shuffle.partitions)"
    )
    if any(_KILLED.search(link) for link in links):
        return f"an executor was killed because it took too much memory; {advice.format(', memoryOverhead')}"
    found = _HEAP.search(told)
    if found is None:
        return None
    what = f" ({found[1].strip()})" if found[1] else ""
    return f"an executor ran out of memory{what}; {advice.format('')}"


def _lost(links: Sequence[str], told: str) -> str | None:
    for link in links:
        lost = _LOST.search(link)
        if lost is not None:
            return f"Spark lost an executor, too often to go on: {lost[1].partition('Reason: ')[2] or lost[1]}"
        if link.startswith("Python worker exited unexpectedly"):
            return (
                "a Python worker ended without a word: it crashed, or was killed because memory ran out "
                "(spark.executor.memoryOverhead); 'spark.python.worker.faulthandler.enabled' makes it tell more"
            )
    return None


def _path(uri: str) -> str:
    """A path on this machine as people write it; others as they are."""
    return "/" + unquote(uri.removeprefix("file:")).lstrip("/") if uri.startswith("file:") else uri
