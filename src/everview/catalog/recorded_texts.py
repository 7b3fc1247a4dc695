"""Recorded queries, checked again before they are used.

The recorded query of a view is used only if CREATE would accept it: one SELECT, over tables and
views of this store, and nothing that reads files or is nondeterministic.

A store may come from an untrusted source, and a recorded text is SQL that DuckDB evaluates. DuckDB itself can reach
nothing outside (:mod:`everview.sql.settings`); here such a text is an error that names the view, not a different
answer.

A definition is checked when it is first used, not when the catalog is read, which may contain ten thousand of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlglot import exp

from everview.catalog.definitions import Definitions
from everview.catalog.objects import Derived, IndexDefinition, NamedQuery, ViewDefinition
from everview.errors import DamagedEntryError, DefinitionError, SqlRefusedError
from everview.sql.namespace import Namespace
from everview.sql.own_parse import parse_tree
from everview.sql.parse import parse
from everview.sql.statements import Select
from everview.sql.words import refuse_foreign


def refuse_tampered(one: Derived, definitions: Definitions, names: Namespace) -> None:
    """Raise if DuckDB must not evaluate the recorded text of a view or a named query, which reads these names."""
    if isinstance(one, IndexDefinition):
        return
    words = "" if isinstance(one, NamedQuery) else one.words
    known = (one.id, one.sql, words)
    if known in definitions.accepted:
        return
    definitions.accepted.add(known)  # before the check: the text may have been changed to read itself
    try:
        with as_recorded(one):
            verbatim = isinstance(one, ViewDefinition) and one.verbatim
            for text in filter(is_one_query, (one.sql, words)):
                refuse_foreign(text, names, allow_volatile=isinstance(one, NamedQuery))
            if verbatim and not is_one_query(words):
                raise SqlRefusedError("DuckDB does not parse its text as a query")
            if not verbatim and not is_one_query(one.sql):
                recorded_query(one.sql)
    except BaseException:
        definitions.accepted.discard(known)
        raise


def is_one_query(text: str) -> bool:
    """Whether DuckDB parses a text as exactly one SELECT. Any other text may contain Everview's own syntax, or
    end the statement that it is put into: DuckDB must not evaluate it unchanged."""
    return bool(text) and parse_tree(text) is not None


def recorded_query(sql: str) -> exp.Expr:
    """The tree of a recorded query."""
    statements = parse(sql)
    if len(statements) != 1 or not isinstance(statements[0], Select):
        raise SqlRefusedError("a recorded query is one SELECT")
    return statements[0].query


@contextmanager
def as_recorded(one: Derived) -> Iterator[None]:
    """An error in a recorded definition is damage, whatever it would be in a statement."""
    try:
        yield
    except DefinitionError as error:
        raise DamagedEntryError(
            f"the recorded definition of {one.kind} {one.name} cannot be used",
            detail=f"CREATE would not accept it: {error.message}",
            hint=f"drop {one.name} and create it again, or restore the store from a backup",
        ) from error
