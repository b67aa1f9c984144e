"""One ``earlyjoin join … -o FILE`` in a process of its own: how large the process gets at its largest."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass

from earlyjoin.errors import EarlyJoinError
from earlyjoin.report.bench.one_join import JoinToMeasure

_LAUNCHER = """
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""Starts the command and prints its largest size. A process inherits the size of its parent, and this one is tiny."""


@dataclass(frozen=True, slots=True)
class CommandSize:
    """What came of it."""

    rows: int
    seconds: float
    resident_bytes: int


def measure_command(task: JoinToMeasure) -> CommandSize:
    """Run the command line in a new process."""
    assert task.sink is not None
    join = ["join", task.left, task.right, "--on", "=".join(task.on), "--how", task.how]
    ways = ["--algorithm", task.algorithm, "--memory", task.memory, "--engine", "local"]
    command = [sys.executable, "-m", "earlyjoin", *join, *ways, "-o", task.sink, "--overwrite", "--json"]
    done = subprocess.run([sys.executable, "-c", _LAUNCHER, *command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EarlyJoinError(f"{task.algorithm} with {task.memory} failed: {done.stderr.strip()[-2000:]}")
    *_, summary, kilobytes = done.stdout.splitlines()
    summary_values = json.loads(summary)
    return CommandSize(summary_values["rows"], summary_values["seconds"]["total"], int(kilobytes) * 1024)
