"""Predictions for explain(): the paper's examples, and limits."""

from __future__ import annotations

import pytest

import earlyjoin as ej
from earlyjoin.algorithms.hash_join.prediction.curves import Situation, predict
from earlyjoin.algorithms.protocol import Formulas


def test_hash_merge_join_of_the_example_in_section_3() -> None:
    found = predict(Situation(formulas=Formulas.EMPTYING, r=500_000, s=500_000, memory_rows=300_000))
    assert found is not None
    assert [m.share for m in found.milestones] == pytest.approx([0.09, 0.51])
    assert found.tuple_ios == 2_000_000


def test_early_hash_join_of_figure_2() -> None:
    given = Situation(formulas=Formulas.FREEZING, r=800_000, s=800_000, memory_rows=300_000, q1=0.5, q2=5 / 6)
    found = predict(given)
    assert found is not None
    assert found.tuple_ios == pytest.approx(2_210_000)
    assert found.milestones[0].share * 3_200_000 == pytest.approx(112_500)
    assert "112,500 rows, when memory is full (300,000 rows read)" in found.text(3_200_000)
    assert found.text().endswith("about 2,210,000 rows to disk and back, counting both ways")


def test_one_to_many_and_dynamic() -> None:
    given = Situation(
        formulas=Formulas.FREEZING, r=150_000, s=1_500_000, memory_rows=75_000, q1=1, q2=1, one_to_many=True
    )
    found = predict(given)
    assert found is not None
    assert found.tuple_ios == pytest.approx(1_650_000)
    assert [m.share for m in found.milestones] == pytest.approx([0, 0, 0.5])


@pytest.mark.parametrize("formulas", Formulas)
def test_shares_grow_and_stay_below_one(formulas: Formulas) -> None:
    for memory in (10, 1000, 5000, 19_999, 20_000):
        for q1, q2 in ((0.5, 0.5), (0.5, 5 / 6), (1.0, 1.0)):
            found = predict(Situation(formulas=formulas, r=5000, s=15_000, memory_rows=memory, q1=q1, q2=q2))
            assert found is not None
            shares = [m.share for m in found.milestones]
            assert shares == sorted(shares)
            assert 0 <= shares[0] <= shares[-1] <= 1
            assert (shares[-1] == 1) >= (memory == 20_000)


def test_nothing_to_say_about_other_algorithms_or_empty_inputs() -> None:
    assert predict(Situation(formulas=None, r=10, s=10, memory_rows=5)) is None
    assert predict(Situation(formulas=Formulas.FREEZING, r=0, s=10, memory_rows=5)) is None


def test_explain_tells(tmp_path: object) -> None:
    import pyarrow as pa

    table = pa.table({"k": list(range(1000))})
    query = ej.join(table, table, on="k", algorithm="ehj", memory="500rows")
    text = query.explain()
    query.stop()
    assert "expected" in text
    assert "of the result when memory is full" in text
    other = ej.join(table, table, on="k", algorithm="nested", memory="500rows")
    assert "when memory is full (" not in other.explain()
    other.stop()
