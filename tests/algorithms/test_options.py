"""Options of algorithms: checks, texts, pause and resume."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import earlyjoin as ej
from earlyjoin.algorithms import registry
from earlyjoin.algorithms.merge_join.settings import SortOptions
from earlyjoin.algorithms.options import OperatorOptions, option, parse_options

TABLE = pa.table({"k": range(100)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample(OperatorOptions):
    """One option of each type."""

    count: int = option(3, "how many", least=1, most=9)
    share: float | None = option(None, "how much", least=0.0, most=1.0)
    careful: bool = option(False, "with care")
    policy: str = option("all", "which", of=("all", "some"))

    def check(self) -> None:
        if self.careful and self.policy == "some":
            raise ej.InputError("careful goes with policy=all alone")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, Sample()),
        (None, Sample()),
        ({"count": "4", "share": "0.5", "careful": "yes", "policy": "all"}, Sample(count=4, share=0.5, careful=True)),
        ({"share": 1}, Sample(share=1.0)),
        ({"share": "auto", "careful": "off"}, Sample()),
        (Sample(count=2), Sample(count=2)),
    ],
)
def test_made_from_values_texts_or_an_instance(given: Any, expected: Sample) -> None:
    made = Sample.make(given)
    assert made == expected
    assert Sample.make(made.values()) == made, "what a snapshot keeps makes the same options"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"count": 0}, "option count must be a whole number between 1 and 9, got 0"),
        ({"count": 2.0}, "option count must be a whole number between 1 and 9, got 2.0"),
        ({"count": True}, "option count must be a whole number between 1 and 9, got True"),
        ({"count": None}, "option count must be a whole number between 1 and 9, got None"),
        ({"share": "nan"}, "option share must be a number between 0 and 1, or auto, got 'nan'"),
        ({"careful": 1}, "option careful must be yes or no, got 1"),
        ({"policy": "none"}, "option policy must be one of all, some, got 'none'"),
        ({"size": 1}, "sample has no option 'size'; choose from: count, share, careful, policy"),
        ({"careful": True, "policy": "some"}, "careful goes with policy=all alone"),
        (SortOptions(), "sample takes options as Sample, got SortOptions"),
    ],
)
def test_what_is_refused_and_how(given: Any, message: str) -> None:
    with pytest.raises(ej.InputError) as error:
        Sample.make(given, owner="sample")
    assert str(error.value) == message


def test_they_cannot_be_changed_and_say_what_differs() -> None:
    with pytest.raises(FrozenInstanceError):
        Sample().count = 5  # type: ignore[misc]
    assert (str(Sample()), str(Sample(careful=True, share=0.5))) == ("", "share=0.5, careful=yes")
    assert Sample.table()[1] == ("share", "auto", "how much")


def test_every_family_explains_each_of_its_options() -> None:
    for name in registry.names():
        assert all(purpose for _, _, purpose in registry.get(name).options_type.table())


@pytest.mark.parametrize("text", ["fan-in", "=3", "fan-in=2 fan_in=3"])
def test_texts_of_the_command_line(text: str) -> None:
    assert parse_options(["fan-in=2", "a = b"]) == {"fan_in": "2", "a": "b"}
    with pytest.raises(ej.InputError, match="--option"):
        parse_options(text.split())


def test_a_query_takes_explains_and_keeps_them(tmp_path: Path) -> None:
    with ej.join(TABLE, TABLE, "k", algorithm="pmj", options={"fan_in": 3}, memory="16rows") as query:
        assert "options      fan-in=3\n" in query.explain()
        taken = query.head(5).num_rows
        query.pause(tmp_path / "paused")
    with ej.resume(tmp_path / "paused", left=TABLE, right=TABLE) as query:
        assert "fan-in=3" in query.explain()
        assert query.options.operator == SortOptions(fan_in=3)
        assert (taken, query.to_arrow().num_rows) == (5, 100)


def test_they_belong_to_an_algorithm() -> None:
    with pytest.raises(ej.InputError, match="options belong to one algorithm"):
        ej.join(TABLE, TABLE, "k", options={"fan_in": 3})
    with pytest.raises(ej.InputError, match="shj has no option 'fan_in'; it has no options"):
        ej.join(TABLE, TABLE, "k", algorithm="shj", options={"fan_in": 3})
