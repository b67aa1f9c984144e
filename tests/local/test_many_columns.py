"""Inputs with very many columns: checks of their names take time in proportion."""

from __future__ import annotations

import pytest

from earlyjoin.algorithms import output
from earlyjoin.errors import InputError
from earlyjoin.local.sources.text.csv_records import header_of


class Counted(str):
    """A name that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_names_are_not_compared_with_each_other() -> None:
    names: list[str] = [Counted(f"c{number}") for number in range(2000)]
    Counted.compared = 0
    output._check_names(names, "rename them")
    assert Counted.compared < 10 * len(names)
    with pytest.raises(InputError, match="two columns named 'c7'; rename them"):
        output._check_names([*names, "c7"], "rename them")
    with pytest.raises(InputError, match="columns 'c7', 'C7', which differ in case only"):
        output._check_names([*names, "C7"], "rename them", ignore_case=True)


def test_the_first_name_that_a_header_has_twice() -> None:
    assert header_of(["a,b,c\n"], "left", ",") is not None
    with pytest.raises(InputError, match="left: the header names column 'b' twice"):
        header_of(["a,b,c,c,b\n"], "left", ",")
