"""What made Spark fail, in one line: the root cause below Java's wrappers, and what to do about it where that is known.

::

    what was caught ──▶ told: all that it and those below it say
         ├─ a Python traceback in it ──▶ its last exception ──▶ a known one, or the user's own words
         └─ exceptions of Java, from the outermost down ──▶ a known one, or the first that is no mere wrapper

A classic session gives a py4j error or an exception made of one, Spark Connect an exception with the stack trace of its
server. Both are read as text: only that is there on both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from earlyjoin.spark.known_failures import known_java, known_python, no_worker

_TRACEBACK = "Traceback (most recent call last):"
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w{5}\b.*", re.DOTALL)
_JAVA_FOLLOWS = re.compile(
    r"\s*at [\w.$/<>@-]+\(|\s*\.\.\. \d+ more|(?:PYTHONPATH was|Driver stacktrace|JVM stacktrace):"
)
_SPARKS = ("pyspark", "py4j", "grpc")
_NO_WORKER = "Error from python worker:"
_JAVA_LINK = re.compile(r"^(?:: |Caused by: )(?=[\w.$]+(?::|$))", re.MULTILINE)
_JAVA_CLASS = re.compile(r"^[a-z][\w$]*(?:\.[\w$]+)+(?:: |$)")
_ABORTED = re.compile(
    r"^Job aborted due to stage failure: (?:Task .*?Lost task [^)]*\)(?: \([^)]*\))?: )?",
    re.DOTALL,
)
_WRAPPERS = (
    "An error occurred while calling",
    "Exception thrown in awaitResult",
    "Job aborted",
    "Writing job aborted",
    "[TASK_WRITE_FAILED]",
    "Task failed while writing rows",
)
_DEEP, _AT_MOST = 10, 2000


def root_cause(error: BaseException) -> str:
    """What went wrong, in one line, without stack traces; the name of its class when it does not say."""
    if not _of_spark(error):
        return _one_line(f"{type(error).__name__}: {said(error)}".removesuffix(": "))
    texts = _texts(error)
    told = "\n".join(texts)
    raised = next(filter(None, map(_python_exception, texts)), None)
    if _NO_WORKER in told:
        return _one_line(no_worker(raised or told.partition(_NO_WORKER)[2].strip().partition("\n")[0]))
    if raised is not None:
        return _one_line(known_python(raised) or f"a Python function on an executor raised {raised}")
    links = [link for text in texts for link in _java_links(text) if link]
    return _one_line(known_java(links, told) or _telling(links) or type(error).__name__)


def said(error: BaseException) -> str:
    """An error's own words; nothing when it cannot be asked."""
    try:
        return str(error)
    except Exception:  # it asks Java, which may be gone
        return ""


def is_from_worker(error: BaseException) -> bool:
    """Did Python code on an executor raise it? Then its words are anybody's."""
    return _TRACEBACK in said(error)


def _texts(error: BaseException) -> list[str]:
    """All that an error says, and those below it, their stack traces included."""
    texts: list[str] = []
    below: BaseException | None = error
    while below is not None and _of_spark(below) and len(texts) < _DEEP:
        texts += [text for text in (said(below), _server_stack(below)) if text]
        below = below.__cause__ or below.__context__  # PySpark hides Java's error, which says more
    return texts


def _of_spark(error: BaseException) -> bool:
    return any(kind.__module__.split(".")[0] in _SPARKS for kind in type(error).__mro__)


def _server_stack(error: BaseException) -> str:
    """The stack trace of a Connect server, which an error keeps to itself unless it is asked."""
    ask = getattr(error, "getStackTrace", None)
    return str(ask() or "") if callable(ask) else ""


def _python_exception(text: str) -> str | None:
    """The exception at the end of a worker's traceback, of the last one if some were chained."""
    start = text.find(_TRACEBACK)
    if start < 0:
        return None
    before = text[text.rfind("\n", 0, start) + 1 : start]
    margin = "" if before.strip() else before  # Spark moves what a worker says at its start to the right
    raised: list[str] = []
    for whole in text[start:].splitlines():
        line = whole.removeprefix(margin)
        if line.startswith((_TRACEBACK, *_CHAINED)):
            raised = []
        elif raised and _JAVA_FOLLOWS.match(whole):
            break
        elif raised or (line.strip() and not line.startswith(" ")):
            raised.append(line.strip())
    return _SQLSTATE.sub("", "\n".join(raised)).strip() or None


def _java_links(text: str) -> Iterator[str]:
    """The messages of the exceptions, from the outermost down, without the names of classes."""
    for part in _JAVA_LINK.split(text):
        lines = []
        for line in part.splitlines():
            if _JAVA_FOLLOWS.match(line):
                break
            lines.append(line)
        yield _message("\n".join(lines))


def _message(text: str) -> str:
    """A message up to where a plan, a query or a second line of advice begins."""
    text = _JAVA_CLASS.sub("", _ABORTED.sub("", _JAVA_CLASS.sub("", text.strip())))
    if _SQLSTATE.search(text):
        return _SQLSTATE.sub("", text).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else ""


def _telling(links: list[str]) -> str | None:
    """The first message that is no mere wrapper, and the innermost if that says something else."""
    if not links:
        return None
    own = [link for link in links if not link.startswith(_WRAPPERS)]
    if not own:
        return links[-1]
    first, last = own[0], own[-1]
    return first if last in first or first in last or first.startswith("[USER_RAISED") else f"{first} ({last})"


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _AT_MOST else f"{line[:_AT_MOST]}…"
