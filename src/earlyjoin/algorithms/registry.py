"""Every algorithm by name: the command line, ``auto``, messages and the conformance suite read it.

Modules are imported when one of their algorithms is looked for: a join of a few rows would wait longer for all of them
than for its rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from earlyjoin.algorithms.options import GivenOptions, OperatorOptions
from earlyjoin.algorithms.protocol import Context, Description, Operator, Plan
from earlyjoin.errors import InputError, UnsupportedError
from earlyjoin.predicates.base import BoundPredicate, Capability

_MODULES = (
    "symmetric_hash.operator",
    "nested_loop.operator",
    "merge_join.pmj",
    "merge_join.pmj_many",
    "merge_join.sort_merge",
    "hash_join.dhj",
    "hash_join.ehj",
    "hash_join.hmj",
    "hash_join.rpj.operator",
    "hash_join.xjoin",
)
"""Where they are, in the order in which they are looked at."""

_registered: dict[str, type[Operator]] = {}
_for_many: dict[str, type[Operator]] = {}
"""Operators that take over from the registered one of the same name when there are more than two inputs."""


def register(operator: type[Operator]) -> type[Operator]:
    """Class decorator that makes an algorithm known under its description's name."""
    name = operator.description.name
    if name in _registered:
        raise ValueError(f"two algorithms are named {name!r}")
    _registered[name] = operator
    return operator


def register_for_many(operator: type[Operator]) -> type[Operator]:
    """Class decorator for the form of a registered algorithm that joins more than two inputs."""
    name = operator.description.name
    if name not in _registered or name in _for_many:
        raise ValueError(f"{name!r} must be registered for two inputs first, and for many only once")
    _for_many[name] = operator
    return operator


def names() -> list[str]:
    """All names."""
    return list(_imported_names())


def get(name: str, sides: int = 2) -> type[Operator]:
    """The algorithm of that name for so many inputs, or InputError listing those that exist."""
    if name not in _imported_names():
        raise InputError(f"unknown algorithm {name!r}; choose one of: {', '.join(['auto', *names()])}")
    if sides > 2:
        names()  # those for many inputs may come later
    return _for_many.get(name, _registered[name]) if sides > 2 else _registered[name]


def _imported_names() -> Iterator[str]:
    """All names in the order of the modules, of which no more are imported than are asked for; others come last."""
    homes = [f"earlyjoin.algorithms.{module}" for module in _MODULES]
    for home in homes:
        import_module(home)
        yield from [name for name, operator in _registered.items() if operator.__module__ == home]
    yield from [name for name, operator in _registered.items() if operator.__module__ not in homes]


def refusal(plan: Plan, description: Description) -> str | None:
    """Why the algorithm cannot run the plan, or None when it can."""
    if plan.sides > description.most_sides:
        return f"it joins at most {description.most_sides} inputs, not {plan.sides}"
    if plan.how not in description.join_types:
        return f"it has no {plan.how} join"
    if description.needs is not Capability.NONE and plan.condition.driver(description.needs) is None:
        return f"it needs {_wording(description.needs)} condition, and {plan.condition.text} has none"
    return None


def able(plan: Plan) -> Iterator[Description]:
    """The algorithms that can run the plan, one after the other."""
    descriptions = (get(name, plan.sides).description for name in _imported_names())
    return (description for description in descriptions if refusal(plan, description) is None)


def names_that_can(plan: Plan, *, spills: bool | None = None) -> list[str]:
    """The same by name; ``spills=True`` keeps those that can join more than fits in memory."""
    return [one.name for one in able(plan) if spills is None or one.spills == spills]


def create(name: str, plan: Plan, context: Context) -> Operator:
    """A new operator, or UnsupportedError that names the algorithms that can."""
    operator = get(name, plan.sides)
    reason = refusal(plan, operator.description)
    if reason is not None:
        raise UnsupportedError(
            f"{name} ({operator.description.title}) cannot do this join: {reason}; "
            f"choose one of: {', '.join(['auto', *names_that_can(plan)])}"
        )
    return operator(plan, context)


def options_of(name: str, given: GivenOptions) -> OperatorOptions:
    """The options of an algorithm from what the user gave, or InputError that says what there is."""
    return get(name).options_type.make(given, owner=name)


def driver(plan: Plan, description: Description) -> tuple[BoundPredicate, tuple[BoundPredicate, ...]]:
    """The part of the condition that drives this algorithm, and the rest that filters."""
    found = plan.condition.driver(description.needs)
    if found is None:
        raise UnsupportedError(f"{description.name} cannot do this join: {refusal(plan, description)}")
    return found


def _wording(capability: Capability) -> str:
    words = {
        Capability.HASHABLE: "an equality",
        Capability.SORTABLE: "a sortable (equality, band, inequality, interval or rectangle)",
        Capability.BANDED: "a band",
        Capability.SWEEPABLE: "a sweepable",
    }
    return words.get(capability, f"a {capability}")
