"""Spill files and saved states that are damaged behind our back: the right result or a clear error, nothing else."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import earlyjoin as ej
from earlyjoin.algorithms import registry
from earlyjoin.cli.main import main
from earlyjoin.errors import DamagedFile, DamagedState, SnapshotError
from earlyjoin.local.query import LocalQuery
from earlyjoin.query.life import State
from earlyjoin.state.disk.spill import SpillDirectory
from earlyjoin.state.snapshot import Snapshot

ROWS = 500
SPILLING = [name for name in registry.names() if registry.get(name).description.spills]
RUNS = 4


def table(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, 200, ROWS)
    texts = [f"row {n} of {seed} " + "x" * (n % 40) for n in range(ROWS)]
    return pa.table(
        {"k": keys, "v": rng.random(ROWS), "s": texts, "o": pa.array([f"{n}" for n in keys]).dictionary_encode()}
    )


LEFT, RIGHT = table(1), table(2)


def join(algorithm: str, how: str, directory: Path) -> LocalQuery:
    memory = "150rows" if algorithm in ("nested",) else "120KB"
    return ej.join(
        LEFT, RIGHT, on="k", how=how, algorithm=algorithm, memory=memory, batch_rows=150, spill_directory=directory
    )  # type: ignore[call-overload, unused-ignore]


def rows(batches: list[pa.RecordBatch]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for batch in batches for row in batch.to_pylist())


@pytest.fixture(scope="module")
def expected() -> dict[str, Counter[tuple[Any, ...]]]:
    """The right results, by join type."""
    return {how: rows(list(ej.join(LEFT, RIGHT, on="k", how=how, algorithm="shj"))) for how in ("inner", "full")}


def spilled(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("run-*") if path.is_file() and path.stat().st_size > 16)


def overwrite(path: Path, rng: np.random.Generator) -> None:
    """16 bytes somewhere, or all that is behind some place."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        if rng.random() < 0.2:
            file.truncate(int(rng.integers(0, size)))
        else:
            file.seek(int(rng.integers(0, size - 15)))
            file.write(rng.bytes(16))


def run_with_damage(query: LocalQuery, directory: Path, rng: np.random.Generator) -> list[pa.RecordBatch]:
    """Files are damaged between two batches: some of them, at a moment drawn at random, and again later."""
    batches, chance, damages = [], rng.choice([0.02, 0.1, 0.5]), 0
    for batch in query:
        batches.append(batch)
        files = spilled(directory)
        if files and damages < 3 and rng.random() < chance:
            damages += 1
            for path in rng.choice(
                np.array(files, dtype=object), min(len(files), int(rng.integers(1, 20))), replace=False
            ):
                overwrite(path, rng)
    return batches


@pytest.mark.parametrize("how", ["inner", "full"])
@pytest.mark.parametrize("algorithm", SPILLING)
def test_damaged_spill_files_are_noticed(
    algorithm: str, how: str, tmp_path: Path, expected: dict[str, Counter[tuple[Any, ...]]]
) -> None:
    errors: list[str] = []
    for seed in range(RUNS):
        rng = np.random.default_rng([SPILLING.index(algorithm), how == "full", seed])
        with join(algorithm, how, tmp_path) as query:
            try:
                assert rows(run_with_damage(query, tmp_path, rng)) == expected[how]
            except DamagedFile as error:
                errors.append(str(error))
    assert errors, "no damage hit anything: the test tests nothing"
    for message in errors:
        assert message.startswith(f"spill file '{tmp_path}")
        assert "is damaged" in message
        assert "start the join again" in message


@pytest.mark.parametrize("algorithm", SPILLING)
def test_missing_spill_files_are_noticed(algorithm: str, tmp_path: Path) -> None:
    def losing_files() -> None:
        for _ in query:
            for path in spilled(tmp_path):
                path.unlink()

    missing = r"spill file .*run-.* is damaged: it cannot be read \(No such file"
    with join(algorithm, "full", tmp_path) as query, pytest.raises(DamagedFile, match=missing):
        losing_files()
    assert query.state is State.FAILED


@pytest.mark.parametrize(("algorithm", "memory", "first"), [("ehj", "100KB", 20), ("dhj", "300rows", 5)])
def test_nothing_is_left_behind_when_flags_are_damaged(algorithm: str, memory: str, first: int, tmp_path: Path) -> None:
    """Also while rows wait in page buffers, which have a place in the damaged file when they are written."""

    def damaging_flags() -> None:
        for number, _ in enumerate(query):
            for path in tmp_path.rglob("*.flags") if number >= first else ():
                path.write_bytes(bytes(byte ^ 1 for byte in path.read_bytes()))

    big = pa.concat_tables([LEFT] * 4)
    query = ej.join(
        big, big, on="k", how="full", algorithm=algorithm, memory=memory, batch_rows=64, spill_directory=tmp_path
    )  # type: ignore[call-overload, unused-ignore]
    with pytest.raises(DamagedFile, match=r"\.flags' is damaged"):
        damaging_flags()
    assert query.state is State.FAILED
    assert not list(tmp_path.iterdir())


def paused(algorithm: str, tmp_path: Path, batches: int) -> tuple[list[pa.RecordBatch], Path]:
    query = join(algorithm, "full", tmp_path)
    taken = [batch for _, batch in zip(range(batches), query, strict=False)]
    query.pause(tmp_path / "saved")
    return taken, tmp_path / "saved"


@pytest.mark.parametrize("algorithm", ["shj", "nested", "pmj", "ehj", "rpj"])
def test_a_flipped_bit_in_any_file_of_a_saved_state(
    algorithm: str, tmp_path: Path, expected: dict[str, Counter[tuple[Any, ...]]]
) -> None:
    if algorithm == "shj":
        query = ej.join(LEFT, RIGHT, on="k", how="full", algorithm="shj", batch_rows=150)
        taken = [batch for _, batch in zip(range(3), query, strict=False)]
        query.pause(tmp_path / "saved")
        saved = tmp_path / "saved"
    else:
        taken, saved = paused(algorithm, tmp_path, 12)
    rng = np.random.default_rng(5)
    files = sorted(path for path in saved.iterdir() if path.suffix != ".json")
    assert ".arrow" in {path.suffix for path in files}
    for path in files:
        original = path.read_bytes()
        for place in {0, len(original) - 1, *rng.integers(0, len(original), 6).tolist()}:
            damaged = bytearray(original)
            damaged[place] ^= 1 << int(rng.integers(8))
            path.write_bytes(damaged)
            with pytest.raises(DamagedState, match=rf"{path.name}' of a saved state is damaged: its checksum does not"):
                ej.resume(saved, left=LEFT, right=RIGHT, spill_directory=tmp_path)
        path.write_bytes(original)
    with ej.resume(saved, left=LEFT, right=RIGHT, spill_directory=tmp_path) as query:
        assert rows(taken + list(query)) == expected["full"]


def test_a_flipped_bit_in_the_manifest(tmp_path: Path) -> None:
    _, saved = paused("ehj", tmp_path, 12)
    path, whole = saved / "snapshot.json", Snapshot.load(saved)
    original = path.read_bytes()
    accepted = 0
    for place in np.linspace(0, len(original) - 1, 400).astype(int).tolist():
        damaged = bytearray(original)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            assert Snapshot.load(saved).values == whole.values
            accepted += 1
        except SnapshotError as error:
            if str(saved) not in str(error):
                raise
    assert accepted < 100, "only the layout of the text means nothing"


def test_files_of_a_saved_state_that_are_missing_or_short(tmp_path: Path) -> None:
    _, saved = paused("pmj", tmp_path, 12)
    for path in sorted(saved.iterdir()):
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2])
        with pytest.raises(DamagedState, match=path.name):
            ej.resume(saved, left=LEFT, right=RIGHT)
        path.unlink()
        with pytest.raises(SnapshotError, match=path.name):
            ej.resume(saved, left=LEFT, right=RIGHT)
        path.write_bytes(content)
    ej.resume(saved, left=LEFT, right=RIGHT).close()


@pytest.mark.parametrize("algorithm", ["nested", "pmj", "ehj"])
def test_damage_from_before_a_pause_is_noticed_after_it(
    algorithm: str, tmp_path: Path, expected: dict[str, Counter[tuple[Any, ...]]]
) -> None:
    noticed = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        query = join(algorithm, "full", tmp_path)
        taken, batches = [], iter(query)
        while len(taken) < 12 or not spilled(tmp_path):
            taken.append(next(batches))
        for path in spilled(tmp_path):
            overwrite(path, rng)
        saved = tmp_path / f"saved-{seed}"
        try:
            query.pause(saved)
            with ej.resume(saved, left=LEFT, right=RIGHT, spill_directory=tmp_path) as resumed:
                assert rows(taken + list(resumed)) == expected["full"]
        except DamagedFile:
            noticed += 1
        finally:
            query.close()
            shutil.rmtree(saved, ignore_errors=True)
    assert noticed


def test_the_command_line_says_which_file_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet as pq

    for name, data in (("left", LEFT), ("right", RIGHT)):
        pq.write_table(data, tmp_path / f"{name}.parquet")
    spill = tmp_path / "spill"
    spill.mkdir()
    made: list[Path] = []
    new_path = SpillDirectory.new_path

    def damaging(self: SpillDirectory, suffix: str) -> Path:
        """Damages what was written before, whenever another file is made."""
        for path in spilled(spill):
            overwrite(path, np.random.default_rng(len(made)))
        made.append(new_path(self, suffix))
        return made[-1]

    monkeypatch.setattr(SpillDirectory, "new_path", damaging)
    arguments = [
        "join",
        str(tmp_path / "left.parquet"),
        str(tmp_path / "right.parquet"),
        "--on",
        "k",
        "--algorithm",
        "pmj",
    ]
    more = ["--memory", "120KB", "--spill-dir", str(spill), "-o", str(tmp_path / "out.parquet")]
    assert main(arguments + more) == 1
    message = capsys.readouterr().err
    assert "spill file" in message
    assert "is damaged" in message
    assert "out.parquet" not in message
    assert "internal" not in message
    assert not (tmp_path / "out.parquet").exists()
