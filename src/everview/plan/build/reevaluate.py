"""Re-evaluation: a query that no operator maintains, as one node over the tables it reads.

The query's own text is kept, with each table replaced by an input, and since
nothing is known of its rows, all columns together with the number of the copy are their key.
"""

from __future__ import annotations

from sqlglot import exp

from everview.change.types import BIGINT, Type
from everview.errors import SqlTypeError
from everview.plan.build import from_clause
from everview.plan.build.context import BuildContext, NoOperator, text_of
from everview.plan.build.links import QueryPiece
from everview.plan.expressions import Field, parsed, quoted
from everview.plan.relations import QueryRows, Reevaluate, Scan
from everview.sql.refused_constructs import refuse_endless_join
from everview.sql.typer import Failure


def whole(context: BuildContext, query: exp.Expr, alias: str | None, why: NoOperator) -> QueryPiece:
    """The query as one re-evaluation."""
    refuse_endless_join(query, context.text)
    text, inputs = over_inputs(context, query)
    columns = {f"in{n}": _columns(scan) for n, scan in enumerate(inputs)}
    refused = context.typer.attempt(text, columns)
    if isinstance(refused, Failure):
        raise SqlTypeError("the query cannot be evaluated over its tables", detail=f"{refused.message}\n{text}")
    described = context.described(text, columns)
    prefix = None if alias is None else context.names.source(alias or "subquery")
    fields = tuple(
        Field(name if prefix is None else context.names.fresh(f"{prefix}.{name}"), kind) for name, kind in described
    )
    names = tuple(name for name, _ in described)
    shown = tuple(field.name for field in fields)
    recursive = any(with_.args.get("recursive") for with_ in parsed(text).find_all(exp.With))
    rounds = context.rounds if recursive else 0
    if not inputs:
        number = Field(context.names.fresh("row"), BIGINT, nullable=False, hidden=True)
        return QueryPiece(QueryRows(text, fields, number, rounds), shown, names)
    copy = Field(context.names.fresh("copy"), BIGINT, nullable=False, hidden=True)
    context.noticed(why, "every change re-evaluates the query as a whole")
    numbered = _numbered(text, fields, copy)
    relation = Reevaluate(
        tuple(inputs), numbered, (*fields, copy), (*shown, copy.name), reason=why.construct, rounds=rounds
    )
    return QueryPiece(relation, shown, names)


def _numbered(text: str, fields: tuple[Field, ...], copy: Field) -> str:
    """The query with the columns' names, and equal rows numbered."""
    places = [f"c{n}" for n in range(len(fields))]
    shown = ", ".join(f"{place} AS {quoted(field.name)}" for place, field in zip(places, fields, strict=True))
    number = f"row_number() OVER (PARTITION BY {', '.join(places)}) AS {quoted(copy.name)}"
    return f"SELECT {shown}, {number} FROM ({text}) AS q({', '.join(places)})"


def _columns(scan: Scan) -> list[tuple[str, Type]]:
    return [(field.name, field.type) for field in scan.fields]


def over_inputs(context: BuildContext, query: exp.Expr) -> tuple[str, list[Scan]]:
    """The text of a query over in0, in1, …, and what those are: one for each table it reads."""
    inputs: dict[str, Scan] = {}

    def change(node: exp.Expr, own: frozenset[str]) -> exp.Expr:
        own = own | {cte.alias.lower() for with_ in node.find_all(exp.With) for cte in with_.expressions}
        for table in list(node.find_all(exp.Table)):
            name = table.name.lower()
            if not isinstance(table.this, exp.Identifier) or name in own:
                continue
            if name in context.named:
                inner: exp.Expr = change(context.named[name].copy(), own)
            else:
                if name not in inputs:
                    inputs[name] = from_clause.scan(context, exp.to_table(table.name))
                inner = _renamed(inputs[name], list(inputs).index(name))
            alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name, quoted=True))
            replacement = exp.Subquery(this=inner, alias=alias.copy())
            for kept in ("pivots", "joins"):
                if table.args.get(kept):
                    replacement.set(kept, table.args[kept])
            if table is node:
                return replacement
            table.replace(replacement)
        return node

    changed = change(query.copy(), frozenset())
    return text_of(changed), list(inputs.values())


def _renamed(scan: Scan, number: int) -> exp.Expr:
    columns = [
        exp.alias_(exp.column(exp.to_identifier(field.name, quoted=True)), column.name, quoted=True)
        for column, field in zip(scan.columns, scan.fields, strict=True)
        if not column.hidden
    ]
    return exp.select(*columns).from_(exp.to_identifier(f"in{number}"))
