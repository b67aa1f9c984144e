"""A standalone cluster on this machine: one master and some workers, each a process of its own."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

import pyspark

WAIT_S = 60.0
_STARTED = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = re.compile(r"Successfully registered with master")


class Cluster:
    """A master and workers of one core each, ready when entered, gone with everything they started when left."""

    def __init__(self, directory: Path, workers: int = 2) -> None:
        self.directory, self.url = directory, ""
        self.workers: list[subprocess.Popen[bytes]] = []
        self._count, self._processes = workers, list[subprocess.Popen[bytes]]()

    def __enter__(self) -> Cluster:
        try:
            master = [
                "org.apache.spark.deploy.master.Master",
                "--host",
                "127.0.0.1",
                "--port",
                "0",
                "--webui-port",
                "0",
            ]
            self._start("master", master)
            self.url = self._told("master", _STARTED)
            for number in range(self._count):
                name = f"worker-{number}"
                options = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g"]
                options += ["--work-dir", str(self.directory / name)]
                self.workers.append(self._start(name, ["org.apache.spark.deploy.worker.Worker", *options, self.url]))
            for number in range(self._count):
                self._told(f"worker-{number}", _REGISTERED)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        for process in reversed(self._processes):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _start(self, name: str, arguments: list[str]) -> subprocess.Popen[bytes]:
        home = Path(pyspark.__file__).parent
        environment = os.environ | {
            "SPARK_HOME": str(home),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_DIRS": str(self.directory / f"{name}-local"),
            "SPARK_LOG_DIR": str(self.directory),
            "SPARK_NO_DAEMONIZE": "1",
            "SPARK_DAEMON_MEMORY": "256m",
            "NUMBA_CACHE_DIR": str(self.directory / "numba"),
        }
        environment.pop("PYTHONPATH", None)  # executors get the package from the archive alone
        with open(self.directory / f"{name}.log", "wb") as log:
            process = subprocess.Popen(
                [str(home / "bin" / "spark-class"), *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,  # executors die with their worker
            )
        self._processes.append(process)
        return process

    def _told(self, name: str, pattern: re.Pattern[str]) -> str:
        """Wait until a process has said something."""
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            found = pattern.search((self.directory / f"{name}.log").read_text(errors="replace"))
            if found is not None:
                return found.group(found.lastindex or 0)
            time.sleep(0.1)
        raise TimeoutError(f"{name} did not start: {(self.directory / f'{name}.log').read_text(errors='replace')}")
