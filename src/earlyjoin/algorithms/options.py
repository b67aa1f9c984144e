"""Options of an algorithm: a frozen dataclass for each family, from Python, from text, and into a snapshot and back.

A family declares a subclass of :class:`OperatorOptions` whose fields are made with :func:`option`, and names it in its
operators' ``options_type``. Everything else (checks, the command line, ``explain``, pause and resume) reads the fields.
Values are plain: bool, int, float, str or, for "decide by yourself", None, which is written ``auto``.

>>> @dataclass(frozen=True, slots=True, kw_only=True)
... class Sizes(OperatorOptions):
...     pages: int = option(4, "pages to read at once", least=1)
>>> Sizes.make({"pages": "8"})
Sizes(pages=8)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from types import NoneType
from typing import Any, Self, TypeAlias, TypeVar, get_args, get_type_hints

from earlyjoin.errors import InputError

T = TypeVar("T")
Value = bool | int | float | str | None
GivenOptions: TypeAlias = "Mapping[str, Any] | OperatorOptions | None"
"""What users give: values by name, or an instance of the family's class."""

_AUTO = "auto"
_TRUTH = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_KINDS = {bool: "yes or no", int: "a whole number", float: "a number", str: "a text"}


def option(
    default: T, purpose: str, *, least: float | None = None, most: float | None = None, of: tuple[str, ...] = ()
) -> T:
    """A field of options: what it is for in a few words, its smallest and largest value or the texts to choose from."""
    limits = {"purpose": purpose, "least": least, "most": most, "of": of}
    return field(default=default, metadata=limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorOptions:
    """The base of all options; by itself it has none."""

    def __post_init__(self) -> None:
        types = _types(type(self))
        for one in fields(self):
            object.__setattr__(self, one.name, _checked(one, types[one.name], getattr(self, one.name)))
        self.check()

    def check(self) -> None:
        """Refuse values that do not go together (InputError)."""

    def notes(self) -> tuple[str, ...]:
        """What the chosen values mean and cost, for ``explain``; one short sentence each."""
        return ()

    @classmethod
    def make(cls, given: GivenOptions, owner: str = "this algorithm") -> Self:
        """Options from values by name, which may be texts, or from an instance; unknown names are refused."""
        if isinstance(given, OperatorOptions):
            if not isinstance(given, cls):
                raise InputError(f"{owner} takes options as {cls.__name__}, got {type(given).__name__}")
            return given
        known = {one.name for one in fields(cls)}
        values = {}
        for name, value in (given or {}).items():
            plain = name.replace("-", "_")
            if plain not in known:
                raise InputError(f"{owner} has no option {name!r}; {cls.choices()}")
            values[plain] = value
        return cls(**values)

    @classmethod
    def choices(cls) -> str:
        """The options there are, in words."""
        names = [one.name.replace("_", "-") for one in fields(cls)]
        return f"choose from: {', '.join(names)}" if names else "it has no options"

    @classmethod
    def table(cls) -> list[tuple[str, str, str]]:
        """Name, default and purpose of every option, as the command line writes them."""
        default = cls().values()
        return [(one.name.replace("_", "-"), _text(default[one.name]), one.metadata["purpose"]) for one in fields(cls)]

    def values(self) -> dict[str, Value]:
        """All values by name, for a snapshot; ``make`` takes them again."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def __str__(self) -> str:
        """The values that are not the default."""
        changed = [one for one in fields(self) if getattr(self, one.name) != one.default]
        return ", ".join(f"{one.name.replace('_', '-')}={_text(getattr(self, one.name))}" for one in changed)


def parse_options(texts: list[str]) -> dict[str, str]:
    """Options as the command line has them: ``["fan-in=10"]``."""
    values: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not separator or not name:
            raise InputError(f"--option {text!r}: write NAME=VALUE, for example fan-in=10")
        if name in values:
            raise InputError(f"--option {text!r}: {name.replace('_', '-')} is given twice")
        values[name] = value.strip()
    return values


def _types(cls: type[OperatorOptions]) -> dict[str, tuple[type, ...]]:
    hints = get_type_hints(cls)
    return {one.name: get_args(hints[one.name]) or (hints[one.name],) for one in fields(cls)}


def _checked(one: Field[Any], types: tuple[type, ...], given: Any) -> Value:
    value, found = _converted(types, given)
    limits = one.metadata
    least, most, of = limits["least"], limits["most"], limits["of"]
    if found and isinstance(value, int | float) and not isinstance(value, bool):
        found = (least is None or value >= least) and (most is None or value <= most)
    elif found and isinstance(value, str) and of:
        found = value in of
    if not found:
        raise InputError(f"option {one.name.replace('_', '-')} must be {_allowed(types, limits)}, got {given!r}")
    return value


def _converted(types: tuple[type, ...], given: Any) -> tuple[Value, bool]:
    """The value as one of the types, and whether it is one."""
    if NoneType in types and (given is None or given == _AUTO):
        return None, True
    kind = next(type_ for type_ in types if type_ is not NoneType)
    if isinstance(given, str) and kind is not str:
        if kind is bool:
            return _TRUTH.get(given.lower()), given.lower() in _TRUTH
        try:
            return kind(given), True
        except ValueError:
            return None, False
    if kind is float and isinstance(given, int) and not isinstance(given, bool):
        return float(given), True
    return given, isinstance(given, kind) and isinstance(given, bool) == (kind is bool)


def _allowed(types: tuple[type, ...], limits: Mapping[str, Any]) -> str:
    kind = next(type_ for type_ in types if type_ is not NoneType)
    text = f"one of {', '.join(limits['of'])}" if limits["of"] else _KINDS[kind]
    least, most = limits["least"], limits["most"]
    if least is not None and most is not None:
        text += f" between {least:g} and {most:g}"
    elif least is not None:
        text += f" from {least:g} on"
    elif most is not None:
        text += f" up to {most:g}"
    return f"{text}, or {_AUTO}" if NoneType in types else text


def _text(value: Value) -> str:
    if value is None:
        return _AUTO
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
