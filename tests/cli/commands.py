"""Running the command line in tests: in this process, or as a process of its own, with or without a terminal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from earlyjoin.cli.main import main

SOURCE = str(Path(__file__).parents[2] / "src")


def run(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def environment(**more: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": SOURCE, "TERM": "xterm", "COLUMNS": "120"} | more


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "earlyjoin", *map(str, arguments)]


def with_signals() -> None:
    """For a child before it becomes the command: whoever started the tests may have had signals ignored (``nohup``)."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def start(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(*arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        preexec_fn=with_signals,
    )


def on_terminal(*arguments: object, **more: str) -> tuple[int, str]:
    """Exit code and all that appeared on a terminal, control characters included."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, command(*arguments), environment(**more))
    shown = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # Linux says so when the other end is closed
            break
        if not piece:
            break
        shown += piece
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()


def wait_until(true: Callable[[], object], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)
