"""``earlyjoin algorithms``."""

from __future__ import annotations

import argparse

from earlyjoin.algorithms import registry
from earlyjoin.algorithms.matching.join_types import JoinType
from earlyjoin.algorithms.options import OperatorOptions
from earlyjoin.algorithms.protocol import Description
from earlyjoin.cli.arguments import EXIT_DONE
from earlyjoin.cli.speaking import say
from earlyjoin.cli.tables import aligned
from earlyjoin.predicates import Capability

_CONDITIONS = {
    Capability.NONE: "any",
    Capability.HASHABLE: "equality",
    Capability.SORTABLE: "equality, band, inequality, interval, rectangle",
    Capability.BANDED: "band",
    Capability.SWEEPABLE: "all but filters",
}


def run(options: argparse.Namespace) -> int:
    """Print every registered algorithm and what it can do."""
    descriptions = [registry.get(name).description for name in registry.names()]
    headings = ["name", "title", "inputs", "conditions", "more than memory", "join types"]
    say(aligned(headings, [_row(description) for description in descriptions]))
    choices = [[names, *line] for names, lines in _options() for line in lines]
    if choices:
        say("")
        say(aligned(["algorithms", "--option", "default", "what it is"], choices))
    say("\nMore than two inputs: an inner join on columns that are equal in all of them.")
    say("auto, the default, picks by condition, size of the inputs and memory; --explain says what and why.")
    return EXIT_DONE


def _options() -> list[tuple[str, list[tuple[str, str, str]]]]:
    """The options of every family, and the algorithms that have them."""
    families: dict[type[OperatorOptions], list[str]] = {}
    for name in registry.names():
        families.setdefault(registry.get(name).options_type, []).append(name)
    return [(", ".join(names), family.table()) for family, names in families.items()]


def _row(description: Description) -> list[str]:
    types = [how.value for how in JoinType if how in description.join_types]
    return [
        description.name,
        description.title,
        _inputs(description.name),
        _CONDITIONS.get(description.needs, str(description.needs)),
        "spills to disk" if description.spills else "stops with an error",
        "all" if len(types) == len(JoinType) else ", ".join(types),
    ]


def _inputs(name: str) -> str:
    """Two, or as many as its form for many inputs takes (which then is an inner join on equal columns)."""
    most = registry.get(name, sides=3).description.most_sides
    return "2" if most == 2 else f"2 to {most}"
