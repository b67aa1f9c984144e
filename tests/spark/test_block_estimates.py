"""The size estimated from random blocks: how often the interval holds, whatever files have to do with each other."""

from __future__ import annotations

import numpy as np
import pytest

from earlyjoin.report.coverage.block_rounds import Answer, answers, lines, rows_of
from earlyjoin.report.coverage.layouts import FileJoin, FileLayout
from earlyjoin.spark.early.estimating import BlockEstimate, estimate_of
from earlyjoin.spark.early.key_evidence import SideEvidence

SEEDS = range(70_000, 70_100)
MOMENTS = (4, 12, 24, 28)
FEW, MANY = FileLayout((8, 16), (4, 16)), FileLayout((30, 30), (3, 13))
MIXED = (SideEvidence(30, mixed=True, rows=3000), SideEvidence(30, mixed=True, rows=3000))
SORTED = (SideEvidence(30, mixed=False, rows=3000), SideEvidence(30, mixed=False, rows=3000))


def told(join: str, order: str, layout: FileLayout) -> list[Answer]:
    shape = FileJoin(join, order, layout, rows_of(join) // 3)
    return [answer for answer in answers(shape, SEEDS, MOMENTS) if not answer.is_exact]


def uniform(blocks: int, mean: float, seed: int = 7) -> np.ndarray:
    """Matches that are dealt out at random."""
    return np.random.default_rng(seed).poisson(mean, (blocks, blocks)).astype(np.int64)


def diagonal(blocks: int, files: int, matches: int) -> np.ndarray:
    """Blocks of file i match blocks of file i alone; the order of blocks is random."""
    file = np.random.default_rng(5).permutation(np.arange(blocks) % files)
    return np.where(file[:, None] == file[None, :], matches, 0)


# How often the interval holds at the moments at which it can be read


@pytest.mark.parametrize(
    ("order", "layout"),
    [
        ("shuffled", FEW),
        ("sorted", FEW),
        ("shuffled", MANY),
        ("sorted", MANY),
        ("clustered", MANY),
        ("half sorted", MANY),
        ("by hash", MANY),
    ],
    ids=str,
)
def test_intervals_of_references_hold_at_every_moment(order: str, layout: FileLayout) -> None:
    found = lines(told("references", order, layout), lambda answer: str(answer.blocks))
    assert {line.name for line in found} == {str(moment) for moment in MOMENTS}
    given, held = sum(line.given for line in found), sum(line.held for line in found)
    assert held >= 0.93 * given
    for line in found:  # of a hundred, by chance some more may miss
        assert line.coverage >= 0.9 or line.given < 20, line
    if order == "shuffled":
        assert given >= 0.99 * len(SEEDS) * len(MOMENTS)
        assert all(line.width < width for line, width in zip(found, (4, 0.6, 0.25, 0.2), strict=True)), found
    else:  # few blocks cannot stand for files that differ, many can
        assert found[0].given <= 2
        assert found[-1].given >= 0.8 * len(SEEDS)


@pytest.mark.parametrize(
    ("join", "order"),
    [
        ("sparse", "shuffled"),
        ("skewed", "clustered"),
        ("skewed references", "shuffled"),
        ("hot reference", "shuffled"),
        ("hot key", "shuffled"),
    ],
)
def test_intervals_of_skewed_joins_hold(join: str, order: str) -> None:
    (line,) = lines(told(join, order, MANY), lambda answer: "all")
    assert line.coverage >= 0.93, line
    assert line.given >= 0.5 * line.answers or order == "clustered", line


def test_one_pair_of_files_among_few_blocks_is_no_interval() -> None:
    """What TPC-H in 30 sorted files gave: a thin border of two files, and an interval of a hundredth of the truth."""
    reasons = {answer.reason for answer in told("references", "sorted", MANY) if answer.blocks == 4}
    assert None not in reasons
    assert any("hold different keys" in str(reason) for reason in reasons)


# The rule


def test_few_blocks_are_enough_for_rows_in_random_order_only() -> None:
    cells = uniform(4, 170)
    assert estimate_of(cells, (90, 390), MIXED)[0] is not None
    for evidence in (SORTED, None):
        estimate, reason = estimate_of(cells, (90, 390), evidence)
        assert estimate is None
        assert "different keys" in str(reason)


def test_a_side_in_random_order_makes_files_of_the_other_comparable() -> None:
    cells = uniform(12, 170)
    assert estimate_of(cells, (90, 390), (SORTED[0], MIXED[1]))[0] is not None
    estimate, reason = estimate_of(cells, (90, 390), SORTED)
    assert estimate is None
    assert reason == (
        "rows are not in random order: the files of the left and right input hold different keys, "
        "and 12 x 12 random blocks are too few for 30 files"
    )


def test_files_that_match_each_other_alone_are_seen_without_an_order_of_keys() -> None:
    """Files by a hash of the key: keys look alike, matches do not."""
    estimate, reason = estimate_of(diagonal(12, 30, 40), (90, 390), MIXED)
    assert estimate is None
    assert str(reason).startswith("the files of one input match some files of the other far more than others")
    assert estimate_of(diagonal(60, 30, 40), (90, 390), MIXED)[0] is not None


def test_few_matches_everywhere_are_not_taken_for_files_that_match() -> None:
    cells = uniform(12, 0.2)
    assert 10 <= cells.sum() < 60
    assert estimate_of(cells, (90, 390), MIXED)[0] is not None


def test_many_blocks_that_all_match_are_not_widened_for_the_few_that_do_not() -> None:
    estimate, _ = estimate_of(uniform(28, 170), (90, 390), MIXED)
    assert estimate is not None
    assert (estimate.high - estimate.low) / estimate.rows < 0.02


def test_a_frequent_key_that_was_not_met_gives_the_upper_end_room() -> None:
    """A third of the lines are of one order, which was not drawn: it may exist."""
    cells = uniform(12, 170)
    plain, _ = estimate_of(cells, (90, 390), MIXED)
    evidence = (MIXED[0], SideEvidence(30, mixed=True, rows=3000, unmet=1000, most_unmet=1000))
    raised, _ = estimate_of(cells, (90, 390), evidence)
    assert plain is not None
    assert raised is not None
    assert (raised.rows, raised.low) == (plain.rows, plain.low)
    assert raised.high == pytest.approx(plain.high + 1000 * 390 / 12)


def test_a_frequent_key_that_was_not_met_in_sorted_files_is_no_interval() -> None:
    here = SideEvidence(30, mixed=False, rows=3000, unmet=150, most_unmet=150)
    there = SideEvidence(30, mixed=False, rows=3000, repeats=0.5)
    estimate, reason = estimate_of(uniform(28, 5), (90, 390), (here, there))
    assert estimate is None
    assert "5% of the rows on the left have one key, which was not met on the right yet" in str(reason)


# Ends


def test_estimate_is_exact_when_all_blocks_were_joined() -> None:
    cells = diagonal(60, 30, 3)
    estimate = BlockEstimate(cells.shape)
    assert estimate.get(0) is None
    estimate.update(cells)
    total = int(cells.sum())
    assert estimate.get(0) == {"rows": total, "low": total, "high": total, "confidence": 1.0}
    assert estimate.reason is None


def test_a_side_read_completely_adds_no_doubt() -> None:
    cells = uniform(60, 5)
    whole = cells.sum(axis=1, keepdims=True)
    both, _ = estimate_of(cells[:20, :20], cells.shape, MIXED)
    one, _ = estimate_of(whole[:20], (len(cells), 1), MIXED)
    assert both is not None
    assert one is not None
    assert one.high - one.low < both.high - both.low


def test_no_match_few_matches_and_too_few_blocks_give_a_reason() -> None:
    assert estimate_of(np.zeros((4, 4), dtype=np.int64), (240, 240))[1] == "no match was found in 4 x 4 random blocks"
    few = np.diag([1, 2, 0, 0])
    assert estimate_of(few, (240, 240), MIXED)[1] == ("only 3 matches in 4 x 4 random blocks; an interval needs 10")
    estimate, reason = estimate_of(np.array([[30, 40], [20, 10]]), (240, 240), MIXED)
    assert estimate is None
    assert reason is not None
    assert "3" in reason
