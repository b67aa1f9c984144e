"""First rows: how many, which, in how much memory, and never of a file that is not what it was."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import earlyjoin as ej
from earlyjoin.errors import SourceError
from earlyjoin.spark import execution
from earlyjoin.spark.early import aiming, looking
from earlyjoin.spark.early import phase as early
from earlyjoin.spark.inspecting import unchanged
from earlyjoin.spark.options import SparkOptions
from earlyjoin.spark.query import SparkQuery
from spark.tables import in_files, multiset, numbered

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

ROWS, KEYS, FILES = 3000, 800, 6
HOWS = ["inner", "left", "right", "full", "semi"]


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    directory = tmp_path_factory.mktemp("early")
    return tuple(  # type: ignore[return-value]
        in_files(numbered(ROWS, KEYS, name, seed), directory / name, FILES) for seed, name in enumerate("ab")
    )


def plain(left: Any, right: Any, how: str) -> pa.Table:
    """Spark's own answer."""
    spark_how = {"semi": "left_semi"}.get(how, how)
    return left.join(right, "k", spark_how).toArrow()


@contextmanager
def most_memory_mb(most: float) -> Iterator[None]:
    """This process must not grow by more."""

    def resident() -> float:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    gc.collect()
    pa.default_memory_pool().release_unused()
    base = peak = resident()
    over = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not over.wait(0.005):
            peak = max(peak, resident())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
    assert peak - base <= most, f"grew by {peak - base:.0f} MB"


# Which rows


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("where", [("true", "true"), ("a % 10 = 0", "true"), ("a % 97 = 0", "b % 3 = 0")])
def test_head_shows_rows_of_the_result_and_takes_none(
    spark: Any, paths: tuple[str, str], how: Any, where: tuple[str, str]
) -> None:
    left, right = (spark.read.parquet(path).where(some) for path, some in zip(paths, where, strict=True))
    whole = multiset(plain(left, right, how))
    query = ej.join(left, right, on="k", how=how)
    for rows in (1, 100, 1500, 10**6, 5):
        head = query.head(rows)
        assert len(head) == min(rows, sum(whole.values()))
        assert not multiset(head) - whole
    assert multiset(query.to_arrow()) == whole


def test_head_after_some_rows_were_taken(spark: Any, paths: tuple[str, str]) -> None:
    frames = [spark.read.parquet(path) for path in paths]
    whole = multiset(plain(*frames, "inner"))
    query = ej.join(*frames, on="k")
    first = next(iter(query))
    assert not multiset(query.head(2000)) - whole
    assert multiset(pa.concat_tables([pa.Table.from_batches([first]), query.to_arrow()])) == whole


@pytest.mark.parametrize("how", ["inner", "left", "anti"])
def test_a_limit_is_kept_to(spark: Any, paths: tuple[str, str], how: Any) -> None:
    frames = [spark.read.parquet(path).where("k > 400") for path in paths]
    frames[1] = frames[1].where("b % 5 = 0")
    whole = multiset(frames[0].join(frames[1], "k", {"anti": "left_anti"}.get(how, how)).toArrow())
    for rows in (1, 500, 10**6):
        query = ej.join(*frames, on="k", how=how)
        found = pa.Table.from_batches(list(query.limited(rows)), schema=query.schema)
        assert len(found) == min(rows, sum(whole.values()))
        assert not multiset(found) - whole


def test_spark_is_left_alone_where_it_needs_no_shuffle(spark: Any, paths: tuple[str, str]) -> None:
    left, right = (spark.read.parquet(path) for path in paths)
    query = ej.join(left, right.hint("broadcast"), on="k")
    assert len(query.head(10)) == 10
    assert "needs no shuffle" in query.explain()
    assert "needs no shuffle" in str(query.estimate_reason)
    assert multiset(query.to_arrow()) == multiset(plain(left, right, "inner"))
    assert "needs no shuffle" not in ej.join(left, right, on="k").explain()


def test_plain_files_are_read_without_a_job(
    spark: Any, paths: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def collected(frame: Any) -> None:
        raise AssertionError("Spark was asked")

    left, right = (spark.read.parquet(path) for path in paths)
    whole = multiset(plain(left, right, "inner"))
    query = ej.join(left, right, on="k")
    with monkeypatch.context() as patch:
        patch.setattr(looking, "collected", collected)
        head = query.head(500)  # more than one step
        assert query._execution.joined_early.look.sides[0].taken > 1
    assert len(head) == 500
    assert multiset(head) <= whole
    assert multiset(query.to_arrow()) == whole


def test_rows_that_pass_a_filter_are_read_without_a_job(
    spark: Any, paths: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def collected(frame: Any) -> None:
        raise AssertionError("Spark was asked")

    left, right = (spark.read.parquet(path) for path in paths)
    left, right = left.where("a % 3 = 0"), right.where("b % 2 = 0 AND k > 3").select("b", "k")
    whole = multiset(plain(left, right, "inner"))
    query = ej.join(left, right, on="k")
    with monkeypatch.context() as patch:
        patch.setattr(looking, "collected", collected)
        head = query.head(5)
    assert len(head) == 5
    assert multiset(head.select(["k", "a", "b"])) <= whole
    assert sum(multiset(query.to_arrow()).values()) == sum(whole.values())


def test_a_file_that_changes_after_its_filter_was_asked(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows that pass are told by their numbers, which are those of other rows then."""
    left, right = (in_files(numbered(ROWS, KEYS, name, seed), tmp_path / name, 1) for seed, name in enumerate("ab"))
    frames = [spark.read.parquet(left).where("a % 3 = 0"), spark.read.parquet(right)]

    def probe(*args: Any, **options: Any) -> None:
        aiming.probe(*args, **options)
        (path,) = Path(left).iterdir()
        pq.write_table(numbered(ROWS, KEYS, "a", 7).slice(1), path)

    monkeypatch.setattr(looking, "probe", probe)
    with pytest.raises(SourceError, match=r"has changed since"):
        ej.join(*frames, on="k").head(5)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("grouped", [0, 1])
def test_groups_are_found_by_the_keys_of_the_other_side(
    spark: Any, paths: tuple[str, str], how: Any, grouped: int
) -> None:
    frames = [spark.read.parquet(path) for path in paths]
    frames[grouped] = frames[grouped].groupBy("k").count()
    whole = multiset(plain(*frames, how))
    for rows in (50, 10**6):
        query = ej.join(*frames, on="k", how=how)
        assert multiset(query.head(rows)) <= whole
        found = query._execution.joined_early
        # All groups would be sent to every task to find those that a semi join gave out early.
        assert (found is None) == (how == "semi" and grouped == 1)
        assert found is None or found.look.found >= rows or rows > sum(whole.values())
        assert multiset(query.to_arrow()) == whole


@pytest.mark.parametrize("how", ["inner", "full"])
def test_a_limit_on_groups_gives_no_row_twice(spark: Any, paths: tuple[str, str], how: Any) -> None:
    left, right = (spark.read.parquet(path) for path in paths)
    left = left.groupBy("k").count()
    whole = multiset(plain(left, right, how))
    for rows in (10, sum(whole.values()) - 1, 10**6):
        query = ej.join(left, right, on="k", how=how)
        found = pa.Table.from_batches(list(query.limited(rows)), schema=query.schema)
        assert len(found) == min(rows, sum(whole.values()))
        assert multiset(found) <= whole


@pytest.mark.parametrize("key", ["count", "most"])
def test_groups_that_have_no_key_in_common_with_the_join(spark: Any, paths: tuple[str, str], key: str) -> None:
    """Which groups have such a count shows when all were computed: nothing is looked for."""
    left, right = (spark.read.parquet(path) for path in paths)
    left = left.groupBy("k").agg({"*": "count", "a": "max"}).toDF("k", "count", "most")
    query = ej.join(left, right, on=[(key, "k")])
    whole = multiset(left.withColumnRenamed("k", "k0").join(right, left[key] == right["k"]).toArrow())
    assert len(query.head(50)) == min(50, sum(whole.values()))
    early = query._execution.joined_early
    assert early is not None
    assert "compute all groups" in str(early.look.over)
    assert sum(multiset(query.to_arrow()).values()) == sum(whole.values())


def test_no_size_is_told_from_groups(spark: Any, paths: tuple[str, str]) -> None:
    left, right = (spark.read.parquet(path) for path in paths)
    query = ej.join(left.groupBy("k").count(), right, on="k")
    assert query.estimate_now() is None
    assert "aggregation" in str(query.estimate_reason)


@pytest.mark.parametrize("how", ["inner", "left", "right", "semi", "anti"])
def test_a_side_that_is_small_behind_its_filter_is_sent(spark: Any, paths: tuple[str, str], how: Any) -> None:
    left, right = (spark.read.parquet(path) for path in paths)
    left, right = (left, right.where("b % 50 = 0")) if how != "right" else (left.where("a % 50 = 0"), right)
    whole = multiset(left.join(right, "k", {"semi": "left_semi", "anti": "left_anti"}.get(how, how)).toArrow())
    before = spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "1b")  # not switched off, and Spark itself sends nothing
    try:
        query = ej.join(left, right, on="k", how=how)
        head = query.head(10**5)
        sent = query._execution.joined_early.side_to_send() if how != "anti" else None
        assert sent == {"anti": None, "right": 0}.get(how, 1)
        assert multiset(head) == whole
        assert multiset(query.to_arrow()) == whole
    finally:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", before)


def test_rows_that_are_there_before_the_plan_is_read(
    spark: Any, paths: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "_SOON_S", 60.0)
    before = spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "10m")
    try:
        left, right = (spark.read.parquet(path) for path in paths)
        whole = multiset(plain(left, right, "left"))
        query = ej.join(left, right, on="k", how="left")
        with monkeypatch.context() as patch:
            patch.setattr(execution, "explained", None)  # nobody asks for it
            head = query.head(700)
        assert len(head) == 700
        assert not multiset(head) - whole
        assert len(query.head(900)) == 900
        assert query.head(20).equals(query.head(20))
        assert multiset(query.to_arrow()) == whole
        assert "needs no shuffle" in ej.join(left, right, on="k").explain()
    finally:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", before)


def test_a_few_rows_of_every_simple_type(spark: Any) -> None:
    """Collected as Python values where they have one meaning: the same as Spark gives as Arrow."""
    frame = spark.sql(
        "SELECT id AS k, cast(id AS tinyint) AS t, cast(id / 3 AS float) AS f, id / 7 AS d, id % 2 = 0 AS b, "
        "cast(id AS string) AS s, cast(id / 8 AS decimal(12, 3)) AS m, "
        "date_add(DATE'2020-02-28', cast(id AS int)) AS y, "
        "if(id % 3 = 0, NULL, id) AS n, timestamp_seconds(id) AS z, cast(cast(id AS string) AS binary) AS x "
        "FROM range(20)"
    )
    for some in (frame, frame.drop("z", "x")):
        query = ej.join(some, frame.select("k").hint("broadcast"), on="k")
        head, whole = query.head(50), query.to_arrow()
        assert head.schema == whole.schema
        assert head.sort_by("k").to_pylist() == whole.sort_by("k").to_pylist()


def test_the_size_can_be_asked_for_without_taking_rows(spark: Any, paths: tuple[str, str]) -> None:
    frames = [spark.read.parquet(path) for path in paths]
    truth = len(plain(*frames, "inner"))
    query = ej.join(*frames, on="k")
    estimate = query.estimate_now()
    assert estimate is not None
    assert estimate["low"] <= truth <= estimate["high"]
    assert query.estimate == estimate
    assert len(query.to_arrow()) == truth
    left = ej.join(*frames, on="k", how="left")
    assert left.estimate_now() is None
    assert "inner joins" in str(left.estimate_reason)


# Memory


def test_a_hot_key_does_not_fill_the_memory(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early, "LEAST_ROWS", 30_000)
    monkeypatch.setattr(early, "MOST_ROWS", 30_000)
    rng = np.random.default_rng(0)
    frames = []
    for side in "ab":
        keys = np.where(rng.random(100_000) < 0.5, 7, rng.integers(0, 10**6, 100_000))
        table = pa.table({"k": keys, side: np.arange(100_000)})
        frames.append(spark.read.parquet(in_files(table, tmp_path / side, 2)))
    spark.range(10).toArrow()  # what the first query of a process costs is not the join's
    with most_memory_mb(64 + 64), ej.join(*frames, on="k", memory="64MB") as query:
        assert len(query.head(1000)) == 1000
        rows = 0
        for batch in query:  # all pairs of the look alone are 225 million
            rows += batch.num_rows
            if rows > 2_000_000:
                break


def test_an_inequality_does_not_fill_the_memory(spark: Any, tmp_path: Path) -> None:
    frames = []
    for side, name in (("a", "v"), ("b", "w")):
        table = pa.table({name: np.random.default_rng(len(frames)).permutation(300_000), side: np.arange(300_000)})
        frames.append(spark.read.parquet(in_files(table, tmp_path / side, 2)))
    options = SparkOptions(memory="64MB", driver_nbytes=0)
    with most_memory_mb(64 + 64), SparkQuery(*frames, ej.less("v", "w"), options) as query:
        head = query.head(1000)
    assert len(head) == 1000
    assert all(left < right for left, right in zip(*(head.column(name).to_pylist() for name in "vw"), strict=True))


def test_small_result_of_small_inputs_that_is_not(spark: Any, tmp_path: Path) -> None:
    """Few bytes of input, many of output: nothing may be fetched in one piece, which is 216 MB.

    Neither by this process nor by Spark's: one partition of this size once ended a Java process of a gigabyte.
    """
    table = pa.table({"k": np.zeros(3000, np.int64), "a": np.arange(3000)})
    path = in_files(table, tmp_path / "hot", 1)
    query = SparkQuery(spark.read.parquet(path), spark.read.parquet(path), ej.equal("k"), SparkOptions(early=False))
    rows = 0
    with most_memory_mb(100), query:
        for batch in query:
            rows += batch.num_rows
    assert rows == 9_000_000


# Files


@pytest.mark.parametrize("how", ["inner", "left", "full"])
@pytest.mark.parametrize("part", [False, True])
def test_a_path_read_twice(spark: Any, paths: tuple[str, str], how: Any, part: bool) -> None:
    again = sorted(str(file) for file in Path(paths[0]).iterdir())[2] if part else paths[0]
    left, right = spark.read.parquet(paths[0], again), spark.read.parquet(paths[1])
    for seed in range(3):
        query = SparkQuery(left, right, ej.equal("k"), SparkOptions(how=how, seed=seed))
        on_one_column = left.join(right, left.k == right.k, how).count()
        assert len(query.to_arrow()) == on_one_column


def test_a_file_read_twice_beside_an_empty_one(spark: Any, tmp_path: Path) -> None:
    """The file without rows has no beginning, which must not make up for the second beginning of the other."""
    twice = in_files(numbered(4000, KEYS, "a", 0), tmp_path / "m", 1)
    empty = in_files(numbered(0, KEYS, "a", 0), tmp_path / "e", 1)
    right = spark.read.parquet(in_files(numbered(ROWS, KEYS, "b", 1), tmp_path / "b", 4))
    left = spark.read.parquet(twice, twice, empty)
    for seed in range(3):
        query = SparkQuery(left, right, ej.equal("k"), SparkOptions(seed=seed, early_share=0))
        query.head(3000)
        assert len(query.to_arrow()) == left.join(right, left.k == right.k).count()


@pytest.mark.parametrize("where", ["true", "k % 1000 >= 0"])
def test_long_texts_do_not_fill_a_small_memory(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setattr(early, "LEAST_ROWS", 30_000)
    monkeypatch.setattr(early, "MOST_ROWS", 30_000)
    table = pa.table({"k": np.arange(20_000), "text": ["x" * 5000] * 20_000})
    frame = spark.read.parquet(in_files(table, tmp_path / "long", 1)).where(where)
    spark.range(10).toArrow()
    with most_memory_mb(16 + 64), ej.join(frame, frame, on="k", memory="16MB") as query:
        assert len(query.head(10)) == 10


@pytest.mark.parametrize("how", ["inner", "full"])
def test_a_memory_of_a_megabyte(spark: Any, paths: tuple[str, str], how: Any) -> None:
    frames = [spark.read.parquet(path) for path in paths]
    query = ej.join(*frames, on="k", how=how, memory="1MB")
    assert len(query.head(10)) == 10
    assert multiset(query.to_arrow()) == multiset(plain(*frames, how))


def test_a_limit_that_is_left_early_ends_the_query(spark: Any, paths: tuple[str, str]) -> None:
    query = ej.join(*(spark.read.parquet(path) for path in paths), on="k")
    some = query.limited(10)
    next(some)
    some.close()
    with pytest.raises(ej.InputError, match="was stopped"):  # the batch was cut off: the rest would not be the rest
        query.to_arrow()


def test_the_size_is_asked_for_in_the_middle(spark: Any, paths: tuple[str, str]) -> None:
    frames = [spark.read.parquet(path) for path in paths]
    query = SparkQuery(*frames, ej.equal("k"), SparkOptions(early_share=float("inf")))
    rows = 0
    for batch in query:
        rows += batch.num_rows
        query.estimate_now()
        query.explain()
    assert rows == len(plain(*frames, "inner"))


def rewritten(path: Path, table: pa.Table) -> None:
    """Another file of the same name and about the same size."""
    pq.write_table(table, path.with_suffix(".new"))
    path.with_suffix(".new").replace(path)


def test_an_input_that_is_rewritten_before_the_bulk(spark: Any, tmp_path: Path) -> None:
    left, right = (in_files(numbered(ROWS, KEYS, name, seed), tmp_path / name, 1) for seed, name in enumerate("ab"))
    query = ej.join(spark.read.parquet(left), spark.read.parquet(right), on="k")
    next(iter(query))
    changed = Path(left) / "part-000.parquet"
    rewritten(changed, numbered(ROWS, KEYS, "a", 9))
    with pytest.raises(ej.SourceError, match=r"part-000.parquet.* has changed"):
        query.to_arrow()
    assert query.state == "failed"


def test_a_file_that_nobody_has_read_early_may_change(spark: Any, tmp_path: Path) -> None:
    left, right = (in_files(numbered(ROWS, KEYS, name, seed), tmp_path / name, FILES) for seed, name in enumerate("ab"))
    frames = [spark.read.parquet(left), spark.read.parquet(right)]
    query = SparkQuery(*frames, ej.equal("k"), SparkOptions(early=False))
    head = query.head(10)
    os.utime(Path(left) / "part-003.parquet")
    assert multiset(query.to_arrow()) == multiset(plain(*frames, "inner"))
    assert len(head) == 10


@pytest.mark.parametrize("name", ["a b", "a%20b", "p[1]", "{x,y}", "back\\s", "st*r", "q?x", "h#x", "ün+ï"])
def test_files_of_odd_names_are_listed(spark: Any, tmp_path: Path, name: str) -> None:
    """As it is done where files are not on this machine: what has no stamp would change unnoticed."""
    (tmp_path / "one").mkdir()
    file = tmp_path / "one" / f"{name}.parquet"
    pq.write_table(numbered(10, 5, "a", 0), file)
    listed = unchanged._listed(spark, spark.read.parquet(str(tmp_path / "one")).inputFiles())
    assert [stamp and stamp[0] for stamp in listed.values()] == [file.stat().st_size]


def test_a_file_that_changes_before_the_rest_is_written(spark: Any, tmp_path: Path) -> None:
    left, right = (in_files(numbered(ROWS, KEYS, name, seed), tmp_path / name, FILES) for seed, name in enumerate("ab"))
    query = ej.join(spark.read.parquet(left), spark.read.parquet(right), on="k")
    next(iter(query))
    for path in Path(left).glob("*.parquet"):
        rewritten(path, numbered(ROWS // FILES, KEYS, "a", 9))
    with pytest.raises(ej.SourceError, match=r"part-00\d.parquet.* has changed"):
        query.write(tmp_path / "rest.parquet")
    assert not (tmp_path / "rest.parquet").exists()


def test_a_side_that_is_too_large_to_be_sent(spark: Any, paths: tuple[str, str]) -> None:
    left, right = (spark.read.parquet(path) for path in paths)
    right = right.where("b % 50 = 0")
    whole = multiset(plain(left, right, "inner"))
    names = ("spark.sql.autoBroadcastJoinThreshold", "spark.sql.maxBroadcastTableSize")
    before = [spark.conf.get(name) for name in names]
    try:
        for name, value in zip(names, ("1b", "10b"), strict=True):
            spark.conf.set(name, value)
        query = ej.join(left, right, on="k")
        assert multiset(query.head(10**5)) == whole
        assert query._execution.joined_early.side_to_send() == 1
    finally:
        for name, value in zip(names, before, strict=True):
            spark.conf.set(name, value)


# Endings


def test_a_stop_during_head(spark: Any, paths: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found so far is shown, and the query is over."""
    query = ej.join(*(spark.read.parquet(path) for path in paths), on="k")
    fetch = query._execution.bulk_batches

    def stopped(most: int | None) -> Iterator[pa.RecordBatch]:
        stopper = threading.Thread(target=query.stop)
        stopper.start()
        stopper.join(1)
        return fetch(most)

    monkeypatch.setattr(query._execution, "bulk_batches", stopped)
    head = query.head(10**5)
    assert 0 < len(head) < 10**5
    assert query.state == "stopped"
    with pytest.raises(ej.InputError, match="was stopped"):
        query.to_arrow()


def test_a_finished_query_does_not_pretend(spark: Any, paths: tuple[str, str], tmp_path: Path) -> None:
    frames = [spark.read.parquet(path) for path in paths]
    query = ej.join(*frames, on="k")
    rows = len(query.to_arrow())
    for again in (query.to_arrow, lambda: query.head(5), lambda: list(query), lambda: list(query.limited(5))):
        with pytest.raises(ej.InputError, match="given out already"):
            again()
    target = tmp_path / "kept.parquet"
    assert ej.join(*frames, on="k").write(target) == rows
    with pytest.raises(ej.InputError, match="given out"):
        query.write(target, overwrite=True)
    assert spark.read.parquet(str(target)).count() == rows


def test_a_stopped_query_does_not_pretend(spark: Any, paths: tuple[str, str]) -> None:
    with ej.join(*(spark.read.parquet(path) for path in paths), on="k") as query:
        query.head(5)
    for again in (query.to_arrow, lambda: query.head(5), lambda: list(query)):
        with pytest.raises(ej.InputError, match="was stopped"):
            again()
