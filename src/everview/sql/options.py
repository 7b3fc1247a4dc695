"""Options of views, settings of sessions and of stores: their names, and the values they take.

An option is a name with a check of its value; a name that is none is answered
with the nearest that is one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from datetime import timedelta

from everview.errors import DefinitionError

Option = str | int | float | bool

Values = tuple[str, ...] | type[int] | type[timedelta] | None
"""The values that an option takes; int for whole numbers from 1, timedelta for a time such as
'1 hour', None for any name."""

VIEW_OPTIONS: Mapping[str, Values] = {
    "refresh": ("continuous", "lazy"),
    "group": None,
    "on_reevaluation": ("notice", "refuse"),
    "recursion_limit": int,
}
"""What may stand in ``WITH (…)``."""

ROUNDS = 100_000
"""The recursion limit where a view has none of its own."""

SETTINGS: Mapping[str, Values] = {
    "dialect": None,
    "on_reevaluation": VIEW_OPTIONS["on_reevaluation"],
}
"""What ``SET`` sets, for one session."""

STORE_SETTINGS: Mapping[str, Values] = {
    "log_retention_operations": int,
    "log_retention_age": timedelta,
}
"""What ``SET GLOBAL`` sets, for the store and all who use it."""

_UNITS = {"second": 1, "sec": 1, "s": 1, "minute": 60, "min": 60, "hour": 3600, "h": 3600, "day": 86_400, "d": 86_400}
_DURATION = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*([a-z]+?)s?\s*", re.IGNORECASE)


def checked_option(kind: str, known: Mapping[str, Values], name: str, value: Option) -> tuple[str, str]:
    """The option's name and value as they are written everywhere, or an error."""
    folded = name.lower()
    if folded not in known:
        raise DefinitionError(f"there is no {kind} {name}", hint=nearest(folded, known, f"the {kind}s are"))
    allowed = known[folded]
    if allowed is None:
        if not isinstance(value, str) or not value.strip():
            raise DefinitionError(f"{kind} {folded} cannot be {value!r}", hint=f"write {folded} = 'name'")
        return folded, value
    if allowed is timedelta:
        return folded, str(_seconds(kind, folded, value))
    if isinstance(allowed, type):
        number = str(value)
        if isinstance(value, bool) or not number.isdecimal() or not 0 < int(number) < 2**63:
            raise DefinitionError(f"{kind} {folded} cannot be {value!r}", hint=f"write {folded} = 1000, say")
        return folded, str(int(number))
    spelled = value.lower() if isinstance(value, str) else value
    if spelled not in allowed:
        choice = " or ".join(f"'{text}'" for text in allowed)
        raise DefinitionError(f"{kind} {folded} cannot be {value!r}", hint=f"write {folded} = {choice}")
    return folded, str(spelled)


def _seconds(kind: str, name: str, value: Option) -> float:
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    unit = None if found is None else _UNITS.get(found[2].lower())
    if found is None or unit is None:
        hint = f"write {name} = '1 hour', with seconds, minutes, hours or days"
        raise DefinitionError(f"{kind} {name} cannot be {value!r}", hint=hint)
    return float(found[1]) * unit


def nearest(name: str, known: Collection[str], otherwise: str) -> str:
    """A hint at the name that was probably meant, or at all of them."""
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}?" if near else f"{otherwise} {', '.join(known)}"
