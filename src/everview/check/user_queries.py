"""What a view's query is for DuckDB, from what is recorded of the view alone.

The recorded text is what is asked, and only where Everview means more than DuckDB does
(TUMBLE, WITH TIES, nondeterministic orderings, exact sums) is it asked as a checked tree in which that is written out.

| the query | is asked |
|---|---|
| says all there is to say | as it is recorded |
| has words or orders that are Everview's | checked, orders settled (:mod:`everview.check.settled`) |
| adds floating-point numbers | with exact sums (:mod:`everview.check.exact_sums`) |
| has rows whose expression failed | once more, with TRY (:mod:`everview.check.tried`) |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from everview.catalog import Definitions, Maintained, NamedQuery, ViewDefinition
from everview.catalog.catalog_names import CatalogNames
from everview.catalog.recorded_texts import as_recorded, is_one_query, refuse_tampered
from everview.change.schema import Column
from everview.check.compare import quoted
from everview.check.exact_sums import exactly_summed
from everview.check.settled import settled
from everview.check.tried import tried
from everview.sql.aggregates import called, is_aggregate
from everview.sql.check import Checked, check
from everview.sql.dialects import DEFAULT, reader, to_sql
from everview.sql.nondeterministic_orders import ORDERED, nondeterministic_orders
from everview.sql.own_parse import nodes, parse_tree
from everview.sql.refused_constructs import endless_join
from everview.sql.ties import has_ties
from everview.sql.time_windows import TIME_WINDOWS
from everview.store.contract import Table


@dataclass(frozen=True)
class Question:
    """A query to be asked of DuckDB."""

    sql: str
    doubts: tuple[str, ...] = ()
    """What it leaves open."""
    in_words: bool = False
    """Whether these are the user's own words, which see tables and named queries as the user does."""


@dataclass(frozen=True)
class QuerySource:
    """A name in a query, and what stands behind it."""

    name: str
    of: Table | ViewDefinition | NamedQuery
    columns: tuple[str, ...]
    """Those that the query sees of it, and the hidden key of a table."""


class ViewQuery:
    """What is asked to recompute a view or an index."""

    def __init__(self, one: Maintained, definitions: Definitions) -> None:
        self.one = one
        self._definitions = definitions
        refuse_tampered(one, definitions, CatalogNames(definitions, self._seen))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Of the answer."""
        if isinstance(self.one, ViewDefinition):
            return self.one.columns
        on = self._definitions.by_id(self.one.on)
        assert isinstance(on, Table | ViewDefinition)
        shown = {column.name.lower(): column for column in (on.schema.shown if isinstance(on, Table) else on.columns)}
        key = on.key if isinstance(on, ViewDefinition) else () if on.schema.hidden_key else on.schema.key
        return tuple(shown[name] for name in dict.fromkeys(name.lower() for name in (*self.one.columns, *key)))

    @property
    def key(self) -> tuple[str, ...] | None:
        """What distinguishes the rows of the answer; None where that is not shown."""
        if isinstance(self.one, ViewDefinition):
            return None if self.one.bag else self.one.key
        return None

    @property
    def words(self) -> str:
        """The query to the letter; empty where it was not written in DuckDB's SQL."""
        return self.one.words if isinstance(self.one, ViewDefinition) else ""

    @property
    def is_words_only(self) -> bool:
        """Whether only the user's words define what the view is."""
        return isinstance(self.one, ViewDefinition) and bool(self.one.verbatim)

    @cached_property
    def _text(self) -> str:
        if isinstance(self.one, ViewDefinition):
            return self.one.sql
        names = ", ".join(quoted(column.name) for column in self.columns)
        return f"SELECT {names} FROM {quoted(self._definitions.by_id(self.one.on).name)}"

    @cached_property
    def _tree(self) -> exp.Expr:
        own = reader(DEFAULT)
        with as_recorded(self.one):
            return own.meaning(own.read(self._text), self._text)

    @property
    def _seen(self) -> dict[int, int]:
        return dict(self.one.seen) if isinstance(self.one, ViewDefinition) else {}

    @cached_property
    def checked(self) -> Checked:
        """The query with its names resolved."""
        with as_recorded(self.one):
            return check(self._tree, CatalogNames(self._definitions, self._seen), self._text)

    # -------------------------------------------------------------- what it reads

    @cached_property
    def sources(self) -> tuple[QuerySource, ...]:
        """Tables, views and plain views, each after what it is made of."""
        found: dict[int, QuerySource] = {}
        for id in self.one.depends_on:
            self._need(id, found)
        return tuple(found.values())

    def _need(self, id: int, found: dict[int, QuerySource]) -> None:
        if id in found:
            return
        read = self._definitions.by_id(id)
        if isinstance(read, Table):
            version = self._seen.get(id)
            shown = [c.name for c in read.schema.shown if version is None or c.since <= version]
            found[id] = QuerySource(read.name, read, tuple(shown))
        elif isinstance(read, ViewDefinition):
            found[id] = QuerySource(read.name, read, tuple(column.name for column in read.columns))
        elif isinstance(read, NamedQuery):
            refuse_tampered(read, self._definitions, CatalogNames(self._definitions))
            for below in read.depends_on:
                self._need(below, found)
            found[id] = QuerySource(read.name, read, tuple(column.name for column in read.columns))

    def _key_of(self, name: str) -> Sequence[str] | None:
        read = self._definitions.find(name)
        if isinstance(read, Table):
            return read.schema.key
        return None if not isinstance(read, ViewDefinition) or read.bag else read.key

    # -------------------------------------------------------------- questions

    @cached_property
    def aggregates(self) -> bool:
        """Whether numbers are computed from many rows."""
        if self.is_words_only:
            return True
        trees = [self._tree, *(reader(DEFAULT).read(s.of.sql) for s in self.sources if isinstance(s.of, NamedQuery))]
        return any(is_aggregate(node) or isinstance(node, exp.Window) for tree in trees for node in tree.walk())

    @cached_property
    def recursive(self) -> bool:
        if self.is_words_only:
            return "recursive" in self.words.lower()
        return any(with_.recursive for with_ in self._tree.find_all(exp.With))

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        """What is asked, one after another, until an answer is what the view shows: the user's own words, and
        then what Everview means by them where they leave something open."""
        doubts = ("the words of its text",) if self.is_words_only and _may_be_open(self.words) else ()
        words = (Question(self.words, doubts, in_words=True),) if is_one_query(self.words) else ()
        return words if self.is_words_only else (*words, self._settled)

    @cached_property
    def endless(self) -> bool:
        """Whether DuckDB may not return from it."""
        if self.is_words_only:
            return False
        trees = [self._tree, *(reader(DEFAULT).read(s.of.sql) for s in self.sources if isinstance(s.of, NamedQuery))]
        return any(endless_join(tree) for tree in trees)

    @property
    def _settled(self) -> Question:
        own_words = has_ties(self._tree) or any(called(node) in TIME_WINDOWS for node in self._tree.walk())
        named = any(isinstance(source.of, NamedQuery) for source in self.sources)
        positional = any(join.method.upper() == "POSITIONAL" for join in self._tree.find_all(exp.Join))
        if own_words or named or positional or nondeterministic_orders(self._tree, "") or self._sums:
            return self._said()
        if not is_one_query(self._text):
            return self._said()
        return Question(self._text)

    @property
    def recorded(self) -> Question:
        """The recorded text as it is, whatever it leaves open."""
        if self.is_words_only:
            return self.questions[0]
        if not is_one_query(self._text):
            return self._said()
        return Question(self._text, ("the words of its text",))

    @property
    def _sums(self) -> bool:
        return any(called(node) in ("sum", "avg", "mean") for node in self._tree.walk())

    @property
    def without_failures(self) -> Question:
        """What is asked where rows have no value."""
        return self._said(leave_out=True)

    def _said(self, *, leave_out: bool = False) -> Question:
        found = settled(self.checked.tree, self._key_of)
        inputs = {
            relation.name: [(column.name, column.type) for column in relation.columns] for relation in self.checked.uses
        }
        for source in self.sources:
            if isinstance(source.of, Table) and source.of.schema.hidden_key and source.name in inputs:
                hidden = source.of.schema.key_parts
                inputs[source.name] = [*inputs[source.name], *((part.name, part.type) for part in hidden)]
        tree = exactly_summed(found.tree, inputs)
        return Question(to_sql(tried(tree) if leave_out else tree), tuple(found.doubts))


def _may_be_open(words: str) -> bool:
    """Whether an answer may depend on the order in which rows come, as far as DuckDB's own parse shows."""
    return any(
        node.get("type") in ("LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER")
        or bool(node.get("distinct_on_targets"))
        or node.get("class") == "WINDOW"
        or str(node.get("function_name", "")).lower() in ORDERED
        for node in nodes(parse_tree(words))
    )
