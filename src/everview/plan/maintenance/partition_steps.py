"""What is evaluated again for the partitions that change: windows, top-k, re-evaluation."""

from __future__ import annotations

from dataclasses import replace

from everview.change.types import BLOB, BOOLEAN, Kind, Type
from everview.plan.expressions import Expr, Field, fields_of, of_field, quoted, replaced
from everview.plan.maintenance.column_names import above, computed_name, pretty
from everview.plan.maintenance.failing import calls_that_can_fail, computed_first
from everview.plan.maintenance.join_steps import bag_key, by_text, rows_by
from everview.plan.maintenance.model import Role, Shape
from everview.plan.maintenance.operator_definitions import (
    PartitionOperator,
    ReevaluationOperator,
    TopKOperator,
    WindowOperator,
)
from everview.plan.maintenance.operator_parts import BagOrder, EvaluatedCall, QueryColumn, QueryInput
from everview.plan.maintenance.sketch import CompileContext, StateDraft, Stream, place_for
from everview.plan.relations import Reevaluate, Relation, Sort, TopK, Window
from everview.sql.result_values import replaced_leaves


def window(relation: Window, needed: frozenset[str], context: CompileContext) -> Stream:
    """All window functions over one partition of one input are evaluated together, those that can fail with none of
    another view."""
    calls = [call for call in relation.calls if call.field.name in needed]
    own = {call.field.name for call in relation.calls}
    read = frozenset().union(
        needed - own,
        relation.input.key,
        *(one.fields for one in relation.partition),
        *(fields_of(call.sql) for call in calls),
        *(one.fields for call in calls for one in call.reads),
    )
    below = context.stream(relation.input, read)
    key = [below.over(one) for one in relation.partition]
    rows = rows_by(context, below, key, sorted(read))
    by = tuple(one.sql for one in key)
    columns = {name: found.sql for name, found in rows.names.items()}
    asked = [(call.field, replaced(call.sql, columns)) for call in calls]
    kinds = {name: column.type for name, column in rows.draft.columns.items()}
    operator = WindowOperator(partition=by, failing=calls_that_can_fail((sql for _, sql in asked), kinds))
    draft, slots = context.sketch.step(operator, [(rows, None)], rows.draft.subject)
    result = rows.carried_by(draft, sorted(needed - own), slots)
    names = dict(result.names)
    for column, sql in asked:
        name = computed_name(rows.labels, sql)
        draft.gain(EvaluatedCall(name, sql))
        draft.carry([Field(name, column.type, column.nullable)])
        names[column.name] = Expr(quoted(name), column.type)
    return replace(result, names=names, labels=above("windowed", rows.labels))


def top_k(relation: TopK, needed: frozenset[str], context: CompileContext) -> Stream:
    """The bag is in the order of the query, so only its first rows are read. The row key decides
    between ties."""
    asked = {sort.by.field for sort in relation.order}
    settled = [Sort(of_field(relation.input.field(name))) for name in relation.input.key if name not in asked]
    order = [*relation.order, *settled]
    read = frozenset().union(needed, *(sort.by.fields for sort in order), *(one.fields for one in relation.partition))
    below = context.stream(relation.input, read)
    below = computed_first(context, below, below.names.values())
    key = [below.over(one) for one in relation.partition]
    by = tuple(one.sql for one in key)
    sorts: list[tuple[Expr, bool]] = []
    for sort in order:
        found = below.over(sort.by)
        if not found.type.is_scalar:
            sorts.append((_sort_key(found, sort), False))
            continue
        if sort.nulls_first != sort.descending and _can_be_null(relation, sort):
            sorts.append((Expr(f"{found.sql} IS NULL", BOOLEAN), sort.nulls_first))
        sorts.append((found, sort.descending))
    ordered = PartitionOperator(key=by, order=tuple(BagOrder(found.sql, descending) for found, descending in sorts))
    bag, slots = context.sketch.step(ordered, [(below, place_for(below.draft, by))], below.draft.subject)
    if bag.state is None:
        parts = below.key_parts([found for found, _ in sorts], [descending for _, descending in sorts])
        subject = f"{by_text(below.draft, by)}, ordered by {', '.join(pretty(found.sql) for found, _ in sorts)}"
        bag.state = StateDraft(Role.PARTITION, Shape.BAG, subject, bag_key(below, key), parts)
    bag.carry(below.columns_of(*(found for found, _ in sorts)))  # the step that cuts the bag orders its changes
    keyed = replace(below, names={one.sql: one for one in key})
    keyed.carried_by(bag, keyed.names, slots)
    rows = below.carried_by(bag, sorted(needed | set(relation.input.key)), slots)
    operator = TopKOperator(
        partition=by,
        limit=relation.limit,
        offset=relation.offset,
        ties=len(sorts) - len(settled) if relation.ties else None,
    )
    draft, slots = context.sketch.step(operator, [(rows, None)], f"first {below.draft.subject}")
    return rows.carried_by(draft, sorted(needed), slots)


def _can_be_null(relation: TopK, sort: Sort) -> bool:
    name = sort.by.field
    return name is None or relation.input.field(name).nullable


def _sort_key(value: Expr, sort: Sort) -> Expr:
    """Bytes in the order of lists and structs, which have none as parts of keys. DuckDB's are not in its own
    order of the types in ``_ORDERED_BY``, so what stands for their values is."""
    nulls = "FIRST" if sort.nulls_first else "LAST"
    way = f"{'DESC' if sort.descending else 'ASC'} NULLS {nulls}"
    return Expr(f"CREATE_SORT_KEY({replaced_leaves(value.sql, value.type, _ORDERED_BY)}, '{way}')", BLOB)


def _length(sql: str) -> str:
    """An INTERVAL in microseconds, as it is compared: a month is 30 days."""
    months = f"(extract('year' FROM {sql}) * 12 + extract('month' FROM {sql}))"
    days = f"CAST({months} * 30 + extract('day' FROM {sql}) AS HUGEINT)"
    minutes = f"(extract('hour' FROM {sql}) * 60 + extract('minute' FROM {sql}))"
    return f"({days} * 86400000000 + CAST({minutes} AS HUGEINT) * 60000000 + extract('microsecond' FROM {sql}))"


_ORDERED_BY = {
    Kind.INTERVAL: _length,
    Kind.TIMETZ: "timetz_byte_comparable({})".format,
    Kind.BIT: "CAST({} AS VARCHAR)".format,
}
"""What values are ordered by whose sort keys in DuckDB are not in their order."""


def reevaluation(relation: Reevaluate, needed: frozenset[str], context: CompileContext) -> Stream:
    """A query over bags of its inputs. What it calls their columns is part of the query's text,
    so here, and only here, aliases are part of the meaning."""
    inputs: list[Stream] = []
    read: list[QueryInput] = []
    for number, source in enumerate(relation.sources):
        fields = [column.name for column in source.fields]
        below = _as_declared(context.stream(source, frozenset(fields)), source)
        key = [below.over(one) for one in relation.partition[number]] if relation.partition else []
        rows = rows_by(context, below, key, fields)
        inputs.append(rows)
        called = tuple(QueryColumn(rows.name_of(rows.names[name]), name) for name in fields)
        read.append(QueryInput(called, tuple(one.sql for one in key)))
    columns = [f"evaluated.{n + 1}" for n, _ in enumerate(relation.columns)]
    operator = ReevaluationOperator(
        query=relation.query,
        inputs=tuple(read),
        columns=tuple(columns),
        rounds=relation.rounds,
        reason=relation.reason,
    )
    subject = "a query over " + ", ".join(rows.draft.subject for rows in inputs)
    draft, slots = context.sketch.step(operator, [(rows, None) for rows in inputs], subject)
    names: dict[str, Expr] = {}
    for stored, column in zip(columns, relation.columns, strict=True):
        draft.carry([Field(stored, column.type, column.nullable)])
        names[column.name] = Expr(quoted(stored), column.type)
    whole = not any(one.key for one in read)
    draft.located = tuple(frozenset({names[name].sql}) for name in relation.shown_as) or (() if whole else None)
    draft.zone_key = () if whole else read[0].key
    return Stream(draft, ("evaluated",), names, slots)


def _as_declared(stream: Stream, source: Relation) -> Stream:
    """The stream with values of the types that a text over it was written for. Of a view that does not show its
    key the row id is a text there, whatever the key is."""
    names = {
        name: found if found.type == source.field(name).type else _cast(found, source.field(name).type)
        for name, found in stream.names.items()
    }
    return replace(stream, names=names)


def _cast(value: Expr, kind: Type) -> Expr:
    return Expr(f"CAST({value.sql} AS {kind})", kind)
