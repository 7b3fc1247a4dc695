"""Names of tables, views and groups: which are valid, which are equal, and suggestions for unknown ones.

A name keeps the spelling it was created with, and two spellings that differ
in upper and lower case only are one name.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection

from everview.change.schema import RESERVED
from everview.errors import DefinitionError, UnknownObjectError

LONGEST = 200
"""The most bytes a name takes as UTF-8."""

_GROUP = re.compile(r"[A-Za-z0-9_.\-]{1,100}")


def fold(name: str) -> str:
    """The form in which equal names are identical."""
    return name.lower()


def checked_name(kind: str, name: str) -> str:
    """The name, if a table or view may have it."""
    why = None
    if not name or name != name.strip():
        why = "a name is not empty and neither begins nor ends with a space"
    elif not name.isprintable():
        why = "a name has no control characters"
    elif name.startswith(RESERVED):
        why = f"names that begin with {RESERVED} belong to Everview"
    elif len(name.encode()) > LONGEST:
        why = f"a name has at most {LONGEST} bytes"
    if why:
        raise DefinitionError(f"{name!r} is not a name for a {kind}", detail=why, hint="choose another name")
    return name


def checked_group_name(name: str) -> str:
    """The name, if a group may have it: it becomes part of keys of the store."""
    if not _GROUP.fullmatch(name):
        raise DefinitionError(
            f"{name!r} is not a name for a group", hint="use up to 100 letters, digits, underscores, dots and dashes"
        )
    return name


def unknown(kind: str, name: str, existing: Collection[str]) -> UnknownObjectError:
    """The error for an unknown name, with a suggestion."""
    spelling = {fold(other): other for other in existing}
    near = difflib.get_close_matches(fold(name), spelling, n=1)
    if near:
        hint = f"did you mean {spelling[near[0]]}?"
    elif existing:
        first = sorted(existing, key=fold)[:10]
        hint = f"the {kind}s are {', '.join(first)}" + (", …" if len(existing) > len(first) else "")
    else:
        hint = f"there are no {kind}s yet"
    return UnknownObjectError(f"there is no {kind} {name}", hint=hint)
