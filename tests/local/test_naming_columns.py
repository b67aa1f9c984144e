"""How columns are named in a join: on, left_on and right_on, and what is said when a name is wrong."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import earlyjoin as ej
from earlyjoin.algorithms.matching.join_types import JoinType

LEFT = pa.table({"id": [1, 2, 3], "day": [1, 1, 2], "Price": [5, 6, 7]})
RIGHT = pa.table({"order_id": [2, 3, 3], "date": [1, 2, 9], "price": [1, 2, 3]})


def test_left_on_and_right_on() -> None:
    one = ej.join(LEFT, RIGHT, left_on="id", right_on="order_id").to_arrow()
    assert one.column_names == ["id", "day", "Price", "order_id", "date", "price"]
    assert len(one) == 3
    two = ej.join(LEFT, RIGHT, left_on=["id", "day"], right_on=("order_id", "date"))
    assert len(two.to_arrow()) == 2
    more = ej.join(LEFT, RIGHT, left_on="id", right_on="order_id", where="price > 1", how="left").to_arrow()
    assert len(more) == 4
    same = ej.join(LEFT, LEFT, left_on="id", right_on="id").to_arrow()
    assert same.column_names == ["id", "day", "Price", "id_right", "day_right", "Price_right"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"on": "id", "left_on": "id", "right_on": "order_id"}, "two ways to say it: give either on, or both"),
        ({"left_on": "id"}, r"left_on='id' needs right_on as well; .*write on='id'"),
        ({"right_on": ["id"]}, r"right_on=\['id'\] needs left_on as well"),
        ({"left_on": ["id", "day"], "right_on": "date"}, r"equally many names, got 2 \(id, day\) and 1 \(date\)"),
        ({"left_on": 3, "right_on": "date"}, "left_on: expected a column name or a list"),
        ({"left_on": [], "right_on": []}, "left_on: expected a column name or a list"),
        ({"left_on": "id", "right_on": "orderid"}, "'orderid' is not in the right input: did you mean 'order_id'?"),
    ],
)
def test_what_does_not_go_together(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ej.InputError, match=message):
        ej.join(LEFT, RIGHT, **arguments)


def test_a_tuple_means_two_names_and_the_message_says_how_to_write_the_pair() -> None:
    both = ej.join(LEFT, LEFT, on=("id", "day")).to_arrow()
    assert both.column_names == ["id", "day", "Price", "Price_right"]
    with pytest.raises(ej.InputError) as raised:
        ej.join(LEFT, RIGHT, on=("id", "order_id"))
    assert "write the pair on=[('id', 'order_id')], or left_on='id', right_on='order_id'" in str(raised.value)
    assert "write --on id=order_id" in (raised.value.command or "")
    assert len(ej.join(LEFT, RIGHT, on=[("id", "order_id")]).to_arrow()) == 3


def test_a_name_that_one_input_lacks() -> None:
    with pytest.raises(ej.InputError, match=r"'id' is not in the right input.*left_on='id', right_on='…'"):
        ej.join(LEFT, RIGHT, on="id")
    with pytest.raises(ej.InputError, match=r"'order_id' is not in the left input.*left_on='…', right_on='order_id'"):
        ej.join(LEFT, RIGHT, on="order_id")


def test_names_that_were_probably_meant() -> None:
    for on, meant in (("PRICE", "Price"), ("dya", "day"), ("Id", "id")):
        with pytest.raises(ej.InputError, match=f"{on!r} is not in the left input: did you mean {meant!r}"):
            ej.join(LEFT, RIGHT, on=on)
    wide = pa.table({f"column {n}": [n] for n in range(300)})
    with pytest.raises(ej.InputError, match="and 270 more") as raised:
        ej.join(wide, wide, on="nowhere")
    assert len(str(raised.value)) < 1000


@pytest.mark.parametrize(
    ("spelling", "kind"),
    [
        ("outer", JoinType.FULL),
        ("full_outer", JoinType.FULL),
        ("fullouter", JoinType.FULL),
        ("full outer", JoinType.FULL),
        ("FULL-OUTER", JoinType.FULL),
        ("left_outer", JoinType.LEFT),
        ("left outer", JoinType.LEFT),
        ("right_outer", JoinType.RIGHT),
        ("leftsemi", JoinType.SEMI),
        ("left_semi", JoinType.SEMI),
        ("left semi", JoinType.SEMI),
        ("left_anti", JoinType.ANTI),
        ("leftanti", JoinType.ANTI),
        ("left-anti", JoinType.ANTI),
    ],
)
def test_join_types_in_other_spellings(spelling: str, kind: JoinType) -> None:
    query = ej.join(LEFT, RIGHT, left_on="id", right_on="order_id", how=spelling)
    assert query.plan.how is kind
    expected = ej.join(LEFT, RIGHT, left_on="id", right_on="order_id", how=kind.value).to_arrow()
    assert query.to_arrow().sort_by("id").equals(expected.sort_by("id"))


def test_join_types_that_give_rows_of_the_right_input() -> None:
    with pytest.raises(ej.InputError, match="the other way round, and how='anti'"):
        ej.join(LEFT, RIGHT, left_on="id", right_on="order_id", how="right anti")
    with pytest.raises(ej.InputError, match=r"unknown join type 'asof'; .*cross"):
        ej.join(LEFT, RIGHT, left_on="id", right_on="order_id", how="asof")
