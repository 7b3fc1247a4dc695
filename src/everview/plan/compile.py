"""From the text of a view to what maintains it.

A view goes through the same few stages in the same order, each a function of
the one before, and nothing is touched but memory.

::

    text ──parse──▶ statement ──check──▶ tree, names and types ──build──▶ relations
         ──rewrite──▶ cheaper relations ──plan──▶ steps, state, zones

    >>> from everview.sql.namespace import Names, NamedRelation
    >>> columns = (Column("id", parse_type("BIGINT"), nullable=False), Column("amount", parse_type("DOUBLE")))
    >>> shop = Names([NamedRelation("orders", "table", columns, ("id",))])
    >>> big = compile_text("CREATE MATERIALIZED VIEW big AS SELECT * FROM orders WHERE amount > 5", shop)
    >>> print(outline(big.relation))
    project "orders.id" AS id, "orders.amount" AS amount  [id]
      filter "orders.amount" > 5  [orders.id]
        scan orders (id, amount)  [orders.id]
    >>> [zone.number for zone in plan_views([big]).zones]
    [1]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from sqlglot import exp

from everview.change.schema import Column
from everview.change.types import parse_type
from everview.errors import DefinitionError, EverviewError, SqlRefusedError, UnknownObjectError
from everview.plan.build import Built, Notice, build
from everview.plan.build.indexes import index_relation
from everview.plan.build.verbatim import verbatim
from everview.plan.expressions import Field, of_field
from everview.plan.maintenance import MaintenancePlan, ViewInput, plan_group
from everview.plan.notices import notices_of
from everview.plan.relations import Relation, Sort, outline, project
from everview.plan.rules import rewrite
from everview.sql import namespace
from everview.sql.check import Checked, check
from everview.sql.dialects import to_sql, too_deep
from everview.sql.namespace import Namespace, nearest
from everview.sql.options import ROUNDS
from everview.sql.own_parse import is_trusted
from everview.sql.parse import parse
from everview.sql.positions import offset_of, otherwise_at
from everview.sql.statements import CreateIndex, CreateMaterializedView, OwnWords
from everview.sql.typer import Columns, typer
from everview.sql.words import worded

__all__ = [
    "CompiledView",
    "Trace",
    "compile_index",
    "compile_text",
    "compile_view",
    "in_own_words",
    "outline",
    "parse_type",
    "plan_views",
]

OnReevaluation = Literal["notice", "refuse"]
Trace = Callable[[str, Relation], None]
"""Called with the relation after building it and after every rule that changed it."""


@dataclass(frozen=True)
class CompiledView:
    """A view, ready to be planned together with others."""

    name: str
    text: str
    relation: Relation
    columns: tuple[Field, ...]
    order: tuple[Sort, ...]
    notices: tuple[Notice, ...]
    uses: tuple[str, ...]
    """The tables and views it reads."""
    index: tuple[str, ...] = ()
    """For an index: the columns it is by."""
    sources: tuple[namespace.NamedRelation, ...] = ()
    """What it reads, as it sees it."""
    resolved: exp.Expr | None = field(default=None, compare=False, repr=False)
    """The query with every name resolved, where it has a plan."""
    verbatim: str = ""
    """Why it is maintained by evaluating the user's own words, if it is."""
    words: str = ""
    """These words."""

    @property
    def named(self) -> namespace.NamedRelation:
        """What a query over this view sees."""
        shown = {field.name for field in self.columns}
        columns = tuple(Column(field.name, field.type, field.nullable) for field in self.columns)
        visible = set(self.relation.key) <= shown
        key = self.relation.key if visible else ()
        return namespace.NamedRelation(self.name, "view", columns, key, bag=not visible)

    @cached_property
    def meaning(self) -> str:
        """The query with every name resolved, in DuckDB's SQL."""
        return "" if self.resolved is None else to_sql(self.resolved)

    @cached_property
    def input(self) -> ViewInput:
        return ViewInput(self.name, self.relation, self.order, self.index)


def compile_text(
    text: str,
    names: Namespace,
    dialect: str = "duckdb",
    trace: Trace | None = None,
    on_reevaluation: OnReevaluation = "notice",
) -> CompiledView:
    """Compile one CREATE MATERIALIZED VIEW or CREATE INDEX statement."""
    statements = parse(text, dialect)
    if len(statements) == 1 and isinstance(statements[0], CreateIndex):
        return compile_index(statements[0], names, trace)
    if len(statements) != 1 or not isinstance(statements[0], CreateMaterializedView):
        raise DefinitionError("one CREATE MATERIALIZED VIEW or CREATE INDEX statement is compiled at a time")
    return compile_view(statements[0], names, trace, on_reevaluation)


def compile_view(
    view: CreateMaterializedView,
    names: Namespace,
    trace: Trace | None = None,
    on_reevaluation: OnReevaluation = "notice",
) -> CompiledView:
    """Take a view through all stages but the last. What has no operator is noticed or refused as the
    view's own option is, or else as the session's (``on_reevaluation``)."""
    with otherwise_at(view.source, offset_of(view.query)):
        try:
            return _compiled(view, names, trace, on_reevaluation)
        except RecursionError:
            raise too_deep() from None


def _compiled(
    view: CreateMaterializedView, names: Namespace, trace: Trace | None, on_reevaluation: OnReevaluation
) -> CompiledView:
    """By our own reading, if it can be trusted; otherwise, or where that fails, in the user's own words."""
    words = view.words
    if words is None:
        return _planned(view, names, trace, on_reevaluation)
    if not words.is_read or not is_trusted(words.text, view.sql):
        why = UNREAD if not words.is_read else READ_OTHERWISE
        return in_own_words(view, names, why, on_reevaluation)
    try:
        return _planned(view, names, trace, on_reevaluation)
    except (UnknownObjectError, RecursionError):
        raise
    except EverviewError as refused:
        return _instead(view, names, refused, on_reevaluation)
    except Exception as error:  # whatever a builder or a rule did not expect, the words are still DuckDB's
        unplanned = SqlRefusedError("the query has no plan", detail=f"{type(error).__name__}: {error}")
        return _instead(view, names, unplanned, on_reevaluation)


UNREAD = "a query that only DuckDB reads"
READ_OTHERWISE = "a query that DuckDB reads otherwise than Everview"
SUBQUERY_ORDER = "a query that depends on the order of a subquery's rows behind a join, a group or a window"
DIFFERS = "a query whose plan differs from DuckDB's answer"


def _instead(
    view: CreateMaterializedView, names: Namespace, refused: EverviewError, on_reevaluation: OnReevaluation
) -> CompiledView:
    """What was refused may still be a view in its own words; if not, the first reason is the one to report."""
    try:
        return in_own_words(view, names, "a query without a plan of its own", on_reevaluation)
    except EverviewError:
        raise refused from None


def in_own_words(
    view: CreateMaterializedView, names: Namespace, reason: str, on_reevaluation: OnReevaluation = "notice"
) -> CompiledView:
    """The view as one re-evaluation of the user's words."""
    words = view.words
    assert words is not None
    query = worded(words.text, names, view.source, words.start)
    view = _with_own_names(view, query.columns)
    limit = int(view.options.get("recursion_limit", ROUNDS))
    built = verbatim(query.bounded(limit), typer(), view.source, words.start, reason)
    relation, order = _renamed(view, built)
    _refuse_notices(view, built.notices, on_reevaluation)
    return CompiledView(
        view.name,
        view.text,
        relation,
        relation.shown,
        order,
        built.notices,
        tuple(source.name for source in query.uses),
        sources=query.uses,
        verbatim=reason,
        words=words.text,
    )


def _planned(
    view: CreateMaterializedView, names: Namespace, trace: Trace | None, on_reevaluation: OnReevaluation
) -> CompiledView:
    view, checked = _checked(view, names)
    if checked.has_unwritten_order:
        words = view.words or OwnWords(to_sql(checked.tree))
        return in_own_words(replace(view, words=words), names, SUBQUERY_ORDER, on_reevaluation)
    built = build(checked, typer(), view.source, int(view.options.get("recursion_limit", ROUNDS)))
    relation, order = _renamed(view, built)
    if trace is not None:
        trace("build", relation)
    relation = _rewritten(relation, order, trace)
    notices = notices_of(relation, built.notices)
    _refuse_notices(view, notices, on_reevaluation)
    found = CompiledView(
        view.name,
        view.text,
        relation,
        relation.shown,
        order,
        notices,
        tuple(source.name for source in checked.uses),
        sources=checked.uses,
        resolved=checked.tree,
    )
    _ = found.input  # refuses what cannot be planned while the words can still be kept instead
    return found


def _with_own_names(view: CreateMaterializedView, columns: Columns) -> CreateMaterializedView:
    """The view with names for its columns, if it gives none and two of the query's are equal."""
    given = tuple(name for name, _ in columns)
    chosen = namespace.distinct_names(given)
    return view if view.columns or chosen == given else replace(view, columns=chosen)


def _checked(view: CreateMaterializedView, names: Namespace) -> tuple[CreateMaterializedView, Checked]:
    """The query, checked. Where two of its columns have one name they get those of the view before anything is
    made of them."""
    checked = check(view.query, names, view.source, words=view.words)
    view = _with_own_names(view, checked.columns)
    folded = [namespace.fold(name) for name, _ in checked.columns]
    if len(set(folded)) == len(folded) or len(folded) != len(view.columns):
        return view, checked
    named = [exp.to_identifier(name, quoted=True) for name in view.columns]
    rows = exp.Subquery(this=view.query.copy(), alias=exp.TableAlias(this=exp.to_identifier("named"), columns=named))
    return view, check(exp.select(*(exp.column(name.copy()) for name in named)).from_(rows), names, view.source)


def _refuse_notices(view: CreateMaterializedView, notices: Sequence[Notice], on_reevaluation: OnReevaluation) -> None:
    if notices and view.options.get("on_reevaluation", on_reevaluation) == "refuse":
        first = notices[0]
        raise SqlRefusedError(
            f"view {view.name}: {first.construct} at line {first.line}, column {first.column} has no operator",
            detail=first.cost,
            hint="write it otherwise, or create the view WITH (on_reevaluation = 'notice')",
            line=first.line,
            column=first.column,
        )


def compile_index(index: CreateIndex, names: Namespace, trace: Trace | None = None) -> CompiledView:
    """An index on a table or a materialized view, as what is planned. It needs no rules: it reads
    the columns it holds and computes nothing."""
    on = names.find(index.on)
    if on is None:
        near = nearest(index.on, names.names())
        raise UnknownObjectError(
            f"there is no table or view {index.on} for index {index.name}",
            hint=f"did you mean {near}?" if near else None,
        )
    if on.kind == "named query":
        raise DefinitionError(
            f"index {index.name} cannot be on {on.name}",
            detail="a plain view is a name for a query and holds no rows",
            hint="index the tables it reads, or make it a MATERIALIZED VIEW",
        )
    relation = index_relation(on, index.columns)
    if trace is not None:
        trace("build", relation)
    by = tuple(field.name for field in relation.shown[: len(index.columns)])
    return CompiledView(index.name, index.text, relation, relation.shown, (), (), (on.name,), by)


def _rewritten(relation: Relation, order: Sequence[Sort], trace: Trace | None) -> Relation:
    """Rules keep what is shown. What the view is only read in the order of is shown to them, and
    hidden again."""
    ordering = {name for sort in order for name in sort.by.fields}
    unseen = [field for field in relation.fields if field.hidden and field.name in ordering]
    if not unseen:
        return rewrite(relation, trace)
    outputs = [(replace(field, hidden=False), of_field(field)) for field in (*relation.shown, *unseen)]
    found = rewrite(project(relation, outputs), trace)
    hidden = {field.name for field in unseen}
    fields = [replace(field, hidden=field.hidden or field.name in hidden) for field in found.fields]
    return project(found, [(field, of_field(field)) for field in fields])


def _renamed(view: CreateMaterializedView, built: Built) -> tuple[Relation, tuple[Sort, ...]]:
    """The relation and its order under the names that the view gives its columns."""
    if not view.columns:
        return built.relation, built.order
    if len(view.columns) != len(built.columns):
        raise DefinitionError(
            f"view {view.name} names {len(view.columns)} columns, and its query has {len(built.columns)}",
            hint="name all columns or none",
        )
    names = {field.name: name for name, field in zip(view.columns, built.columns, strict=True)}
    ordering = {name for sort in built.order for name in sort.by.fields} - names.keys()
    for name in sorted(ordering):
        names[name] = name if name not in names.values() else f"{name} of {view.name}"
    fields = [*built.columns, *(field for field in built.relation.fields if field.name in ordering)]
    outputs = [(replace(field, name=names[field.name]), of_field(field)) for field in fields]
    order = tuple(replace(sort, by=sort.by.renamed(names)) for sort in built.order)
    return project(built.relation, outputs), order


def plan_views(views: Sequence[CompiledView], before_images: bool = True) -> MaintenancePlan:
    """The last stage: all views of a group together."""
    return plan_group([view.input for view in views], before_images)
