"""Aggregates.

An aggregate is put together from parts that are each kept for one (input, group
key) and shared, and the step that puts them together keeps nothing.

    SELECT customer, count(*), avg(amount), max(amount), list(item), count(DISTINCT item)

    pre-aggregation   count(*), sum(amount), count(amount)        a record per group
    extreme           amount                                      a bag of values per group
    group re-evaluation  list(item)                               over the bag of rows by customer
    distinct          (customer, item)                            a count per row
      pre-aggregation   count(item)                               a record per group
    aggregate         all of these, for the groups that any of them saw a change of

The bag of values is apart from the bag of rows: it is ordered by the value, so that the least
and the greatest are read at its ends, where the rows of a join key or of a group that is
evaluated again are in no order and are read whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from everview.change.types import BIGINT, Type
from everview.plan.expressions import Expr, Field, fields_of, quoted, replaced
from everview.plan.maintenance.column_names import above, computed_name
from everview.plan.maintenance.counting_steps import distinct_rows
from everview.plan.maintenance.failing import calls_that_can_fail, computed_first, settled
from everview.plan.maintenance.join_steps import by_text, rows_by
from everview.plan.maintenance.model import Role, Shape
from everview.plan.maintenance.operator_definitions import (
    AggregateOperator,
    ExpandOperator,
    ExtremeOperator,
    FilterProjectOperator,
    GroupKey,
    GroupReevaluationOperator,
    PreAggregationOperator,
)
from everview.plan.maintenance.operator_parts import (
    AccumulatedColumn,
    AssembledCall,
    EndColumn,
    EvaluatedCall,
    PartColumn,
)
from everview.plan.maintenance.sketch import CompileContext, Place, StateDraft, Stream, place_for
from everview.plan.relations import Aggregate, Call, Way
from everview.plan.relations.groups import kept_as


def aggregate(relation: Aggregate, needed: frozenset[str], context: CompileContext) -> Stream:
    calls = [call for call in relation.calls if call.field.name in needed]
    read = frozenset().union(
        *(expression.fields for _, expression in relation.groups),
        *(expression.fields for call in calls for expression in call.reads),
        *(fields_of(call.sql) for call in calls if call.way is Way.GENERAL),
    )
    below = context.stream(relation.input, read)
    key = [below.over(expression) for _, expression in relation.groups]
    asked = [one for call in calls if call.way is not Way.GENERAL for one in call.reads]
    first = computed_first(context, below, [*key, *map(below.over, asked)])
    texts = {one.sql: settled(first, below.over(one)) for one in asked}
    key = [settled(first, one) for one in key]
    below = first
    fields = [column for column, _ in relation.groups]
    if relation.sets:
        below, key = _expanded(relation, below, key, context)
        fields += [relation.set_number] if relation.set_number else []
    order = [one for _, one in sorted({one.sql: one for one in key}.items())]
    always = [{one.sql: value for one, value in zip(key, values, strict=True)} for values in _always(relation)]
    there = tuple(tuple(values[one.sql] for one in order) for values in always)
    parts = _Parts(context, below, order, texts, there)
    result = parts.together(calls, [parts.call(call) for call in calls])
    names = {column.name: Expr(quoted(below.name_of(one)), one.type) for column, one in zip(fields, key, strict=True)}
    return replace(result, names=names | result.names)


def _always(relation: Aggregate) -> list[list[str]]:
    """The groups that are there even over nothing: the one of a query without group columns, and
    of every grouping set without any."""
    if not relation.groups and not relation.sets:
        return [[]]
    return [
        ["NULL"] * len(relation.groups) + ([str(number)] if relation.set_number else [])
        for number, columns in enumerate(relation.sets)
        if not columns
    ]


Held = tuple[tuple[str, str], ...]
"""Columns of parts, each with the fingerprint of its part."""


class _Parts:
    """The parts of one aggregate: each is found or made when the first call needs it."""

    def __init__(
        self,
        context: CompileContext,
        below: Stream,
        key: Sequence[Expr],
        texts: Mapping[str, Expr],
        always: tuple[GroupKey, ...],
    ) -> None:
        self.context = context
        self.below = below
        self.texts = texts
        """What arguments and filters are in columns of what is below."""
        self.key = tuple(key)
        self.by = tuple(one.sql for one in key)
        self.key_names = tuple(below.name_of(one) for one in key)
        self.always = always
        """The groups that are there even over nothing: the values of the key."""
        self.subject = by_text(below.draft, self.by)
        self.used: dict[str, Stream] = {}
        self.counted = self._use(self._sums(below))
        """The part that knows which groups there are."""

    def call(self, call: Call) -> tuple[str, Held]:
        """The canonical text of a call, and what it is made of."""
        if call.way is Way.GENERAL:
            sql = replaced(call.sql, {name: found.sql for name, found in self.below.names.items()})
            return sql, self._evaluated(sql, call.field)
        arguments = [self.texts[one.sql].sql for one in call.arguments]
        filtered = self.texts[call.filter.sql].sql if call.filter else None
        distinct = call.distinct and call.way is Way.SUM
        sql = _text(call.function, arguments, distinct, filtered)
        if call.way is Way.EXTREME:
            return sql, self._end(call.function, sql, Expr(arguments[0], call.arguments[0].type), filtered)
        if not distinct:
            return sql, self._accumulated(self._sums(self.below), call, arguments, filtered)
        different, by, columns = self._different(call, arguments, filtered)
        return sql, self._accumulated(self._use(self._sums(different, by)), call, columns, None)

    def _use(self, part: Stream) -> Stream:
        self.used.setdefault(part.draft.fingerprint, part)
        return part

    def _columns(self) -> list[Field]:
        return [replace(self.below.field_of(one)) for one in self.key]

    def _sums(self, below: Stream, by: tuple[str, ...] = ()) -> Stream:
        """The record of counts and sums; ``by`` is the key in columns of what is below."""
        by = by or self.by
        place = place_for(below.draft, by)
        subject = by_text(below.draft, by)
        operator = PreAggregationOperator(key=by, key_names=self.key_names)
        draft, slots = self.context.sketch.step(operator, [(below, place)], subject)
        if draft.state is None:
            kept: dict[str, Field] = {}
            key = self.below.key_parts(self.key)
            draft.state = StateDraft(Role.PRE_AGGREGATION, Shape.RECORD, subject, key, fields=kept)
            draft.carry(self._columns())
        stream = Stream(draft, below.labels, {}, slots)
        self._accumulate(stream, "count", None, None, BIGINT)
        return stream

    def _accumulated(self, sums: Stream, call: Call, arguments: Sequence[str], filtered: str | None) -> Held:
        argument = arguments[0] if arguments else None
        count = self._accumulate(sums, "count", argument, filtered, BIGINT)
        if call.function == "count":
            return ((sums.draft.fingerprint, count),)
        kind = call.arguments[0].type
        total = self._accumulate(sums, "sum", argument, filtered, kept_as(kind) or kind, kind)
        return ((sums.draft.fingerprint, total), (sums.draft.fingerprint, count))

    def _accumulate(
        self,
        sums: Stream,
        function: str,
        argument: str | None,
        filtered: str | None,
        kind: Type,
        argument_type: Type | None = None,
    ) -> str:
        sql = _text(function, [argument] if argument else [], False, filtered)
        name = computed_name(sums.labels, sql)
        column = Field(name, kind, nullable=False)
        sums.draft.gain(AccumulatedColumn(name, function, argument, filtered, argument_type))
        sums.draft.carry([column])
        assert sums.draft.state is not None and sums.draft.state.fields is not None
        sums.draft.state.fields[name] = column
        return name

    def _end(self, function: str, sql: str, value: Expr, filtered: str | None) -> Held:
        """An end of the bag of values."""
        operator = ExtremeOperator(key=self.by, value=value.sql, filter=filtered, key_names=self.key_names)
        place = place_for(self.below.draft, self.by)
        draft, slots = self.context.sketch.step(operator, [(self.below, place)], self.subject)
        if draft.state is None:
            (part,) = self.below.key_parts([value])
            part = replace(part, name=f"value {part.name}")
            draft.state = StateDraft(
                Role.EXTREME,
                Shape.BAG,
                f"{part.name.removeprefix('value ')} of {self.subject}",
                self.below.key_parts(self.key),
                (part,),
                {part.name: Field(part.name, part.type, part.nullable)},
            )
            draft.carry(self._columns())
        name = computed_name(self.below.labels, sql)
        draft.gain(EndColumn(name, function))
        draft.carry([Field(name, value.type)])
        self._use(Stream(draft, self.below.labels, {}, slots))
        return ((draft.fingerprint, name),)

    def _evaluated(self, sql: str, column: Field) -> Held:
        """A call that is evaluated over the rows of its group again."""
        names = {name: Expr(quoted(name), self.below.draft.columns[name].type) for name in fields_of(sql)}
        rows = rows_by(self.context, replace(self.below, names=names), self.key, sorted(names))
        kinds = {name: one.type for name, one in self.below.draft.columns.items()}
        operator = GroupReevaluationOperator(
            key=self.by,
            failing=calls_that_can_fail([sql], kinds),
            key_names=self.key_names,
            always=self.always,
        )
        draft, slots = self.context.sketch.step(operator, [(rows, None)], self.subject)
        name = computed_name(self.below.labels, sql)
        draft.gain(EvaluatedCall(name, sql))
        draft.carry([*self._columns(), Field(name, column.type, column.nullable)])
        self._use(Stream(draft, self.below.labels, {}, slots))
        return ((draft.fingerprint, name),)

    def _different(
        self, call: Call, arguments: Sequence[str], filtered: str | None
    ) -> tuple[Stream, tuple[str, ...], list[str]]:
        """The different values of each group, as rows whose changes are crossings of zero; and
        the columns of these that hold the key and the values."""
        below = self.below
        row = [*self.key, *(Expr(sql, one.type) for sql, one in zip(arguments, call.arguments, strict=True))]
        if filtered is not None:
            draft, slots = self.context.sketch.step(
                FilterProjectOperator(condition=filtered),
                [(below, None)],
                f"filtered {below.draft.subject.removeprefix('filtered ')}",
            )
            draft.carry(below.columns_of(*row))
            below = Stream(draft, below.labels, {}, slots)
        fields = {one.sql: one for one in row}
        result = distinct_rows(self.context, replace(below, names=fields), row, place_for(below.draft, self.by))
        held = [result.names[one.sql].sql for one in row]
        return result, tuple(held[: len(self.key)]), held[len(self.key) :]

    def together(self, calls: Sequence[Call], made: Sequence[tuple[str, Held]]) -> Stream:
        """The step that puts the parts together."""
        order = sorted(self.used)
        parts = [self.used[named] for named in order]
        level = max(part.draft.level for part in parts)
        by = tuple(quoted(self.below.name_of(one)) for one in self.key)
        moved = Place(level, tuple(frozenset({one}) for one in by), by)
        inputs = [(part, None if part.draft.level == level else moved) for part in parts]
        columns = [
            Field(computed_name(self.below.labels, sql), call.field.type, call.field.nullable)
            for (sql, _), call in zip(made, calls, strict=True)
        ]
        assembled = {
            column.name: AssembledCall(
                column.name, call.function, tuple(PartColumn(order.index(part), one) for part, one in held)
            )
            for column, call, (_, held) in zip(columns, calls, made, strict=True)
        }
        operator = AggregateOperator(
            key=self.key_names,
            calls=tuple(assembled[name] for name in sorted(assembled)),
            groups=order.index(self.counted.draft.fingerprint),
            always=self.always,
        )
        draft, slots = self.context.sketch.step(operator, inputs, self.subject)
        for one in self.key:
            draft.call(one.sql, self.below.name_of(one))
        draft.carry([*self._columns(), *columns])
        names = {c.field.name: Expr(quoted(f.name), f.type) for f, c in zip(columns, calls, strict=True)}
        return Stream(draft, above("grouped", self.below.labels), names, slots)


def _expanded(
    relation: Aggregate, below: Stream, key: Sequence[Expr], context: CompileContext
) -> tuple[Stream, list[Expr]]:
    """Each row once for each grouping set, with nulls for the columns outside the set."""
    texts = tuple(one.sql for one in key)
    stored = [computed_name(below.labels, f"grouped({sql})") for sql in texts]
    number = computed_name(below.labels, f"grouping_set({', '.join(texts)})")
    operator = ExpandOperator(groups=texts, sets=relation.sets, columns=tuple(stored), number=number)
    draft, slots = context.sketch.step(operator, [(below, None)], below.draft.subject)
    draft.carry(below.columns_of(*below.names.values()))
    draft.carry(Field(name, one.type) for name, one in zip(stored, key, strict=True))
    found = [Expr(quoted(name), one.type) for name, one in zip(stored, key, strict=True)]
    if relation.set_number:
        draft.carry([Field(number, relation.set_number.type, nullable=False)])
        found.append(Expr(quoted(number), relation.set_number.type))
    return Stream(draft, below.labels, below.names, slots), found


def _text(function: str, arguments: Sequence[str], distinct: bool, filtered: str | None) -> str:
    inside = ", ".join(arguments) or "*"
    text = f"{function}({'DISTINCT ' if distinct else ''}{inside})"
    return f"{text} FILTER (WHERE {filtered})" if filtered else text
