"""A standalone cluster on this machine: the package comes as an archive, and a worker dies in the middle of a join."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from earlyjoin.errors import InputError
from earlyjoin.spark.archive import make_archive

pytest.importorskip("pyspark")

TESTS = Path(__file__).parents[1]


def test_an_archive_has_the_package_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    first, second = make_archive(tmp_path / "a.zip"), make_archive(tmp_path / "b.zip")
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as archive:
        assert {"earlyjoin/__init__.py", "earlyjoin/spark/bulk/cells/packing.py"} <= set(archive.namelist())
    script = "import sys; sys.path.insert(0, sys.argv[1]); import earlyjoin.predicates as p; print(p.__file__)"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    found = subprocess.run(
        [sys.executable, "-c", script, str(first)], capture_output=True, text=True, env=environment, check=True
    )
    assert found.stdout.startswith(str(first))


@pytest.mark.parametrize("name", ["archive.tar", "missing/archive.zip"])
def test_an_archive_that_cannot_be(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"named \*\.zip|does not exist"):
        make_archive(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
def test_a_cluster_joins_and_outlives_a_worker(tmp_path: Path) -> None:
    from spark.cluster import Cluster

    archive = make_archive(tmp_path / "earlyjoin.zip")
    source = TESTS.parent / "src"
    environment = os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(source), str(TESTS)]),
        "SPARK_LOCAL_DIRS": str(tmp_path / "driver-local"),
    }
    with Cluster(tmp_path) as cluster:
        victim = cluster.workers[1]
        done = subprocess.run(
            [sys.executable, "-m", "spark.cluster_driver", cluster.url, str(archive), str(victim.pid)],
            capture_output=True,
            text=True,
            env=environment,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        assert victim.wait(10) != 0
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["from"].endswith("earlyjoin.zip/earlyjoin/__init__.py")
    assert all(told["cases"].values()), told["cases"]
    killed = told["killed"]
    assert "error" not in killed, killed["error"]
    assert "when" in killed, "the join was over before a worker could be killed"
    assert [killed["rows"], killed["hash"]] == killed["expected"]
    spilled = [path for path in tmp_path.rglob("earlyjoin-*") if path.is_dir()]
    assert spilled == []
