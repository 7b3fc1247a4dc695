"""Columns of a table: names, types, NOT NULL, and which are its key.

A type is translated to DuckDB's spelling and read by
:func:`everview.change.types.parse_type`, and of all constraints only NOT NULL and PRIMARY KEY
are kept, because only those a store of keyed rows upholds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from everview.change.schema import Column
from everview.change.types import Type, parse_type
from everview.errors import DefinitionError
from everview.sql.dialects import DEFAULT, to_sql
from everview.sql.options import nearest
from everview.sql.pieces import Piece
from everview.sql.positions import offset_of

_WRITTEN = (
    "a stored row holds what was written",
    "compute it in a view; to number the rows, leave the primary key out",
)

# Class of sqlglot → the word it begins with, why it is refused, and what to do instead.
_REFUSED: dict[type[exp.Expr], tuple[str, str, str]] = {
    exp.DefaultColumnConstraint: (
        "DEFAULT", "a column that is not written keeps its value, or is null", "write the value with INSERT"),
    exp.CheckColumnConstraint: (
        "CHECK", "rows are not checked against conditions when they are written", "check before writing"),
    exp.UniqueColumnConstraint: (
        "UNIQUE", "only the primary key keeps rows apart", "make it the primary key"),
    exp.Reference: (
        "REFERENCES", "rows are not checked against other tables when they are written", "leave it out"),
    exp.ForeignKey: (
        "FOREIGN", "rows are not checked against other tables when they are written", "leave it out"),
    exp.ComputedColumnConstraint: ("GENERATED", *_WRITTEN),
    exp.GeneratedAsRowColumnConstraint: ("GENERATED", *_WRITTEN),
    exp.GeneratedAsIdentityColumnConstraint: ("GENERATED", *_WRITTEN),
    exp.AutoIncrementColumnConstraint: ("AUTO_INCREMENT", *_WRITTEN),
    exp.CollateColumnConstraint: (
        "COLLATE", "text is compared by its UTF-8 bytes", "leave it out"),
}  # fmt: skip


def read_columns(piece: Piece, nodes: Sequence[exp.Expr]) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """The columns of CREATE TABLE, and the names of the key in their spelling; no names where
    there is no primary key."""
    columns: dict[str, Column] = {}
    key: list[exp.Expr] = []
    keys = 0
    before = piece.tokens[0].start
    for node in nodes:
        if isinstance(node, exp.ColumnDef):
            column, is_key = read_column(piece, node)
            if column.name.lower() in columns:
                raise piece.refuse(node, f"column {column.name} is defined twice", hint="give it another name")
            columns[column.name.lower()] = column
            parts = [node.this] if is_key else []
        else:
            parts = _table_constraint(piece, node, before)
        before = offset_of(node) or before
        keys += bool(parts)
        key += parts
        if keys > 1:
            raise piece.refuse(node, "there are two primary keys", hint="write PRIMARY KEY (a, b) once")
    names = tuple(_key_column(piece, part, columns) for part in key)
    for name in names:
        columns[name.lower()] = replace(columns[name.lower()], nullable=False)
    return tuple(columns.values()), names


def read_column(piece: Piece, node: exp.ColumnDef) -> tuple[Column, bool]:
    """A column, and whether it is defined as the primary key."""
    name = node.name
    if node.args.get("default") or node.args.get("output"):
        raise _refusal(piece, node, exp.DefaultColumnConstraint, offset_of(node) or 0)
    nullable, is_key = True, False
    for constraint in node.constraints:
        kind = constraint.args.get("kind")
        if isinstance(kind, exp.NotNullColumnConstraint):
            nullable = bool(kind.args.get("allow_null"))
        elif isinstance(kind, exp.PrimaryKeyColumnConstraint):
            is_key = True
        else:
            raise _refusal(piece, node, type(kind), offset_of(node) or 0)
    found = read_type(piece, node)
    with piece.placed(node.this):
        return Column(name, found, nullable=nullable and not is_key), is_key


def read_type(piece: Piece, node: exp.ColumnDef) -> Type:
    kind = node.args.get("kind")
    start = offset_of(node.this)
    token = None if start is None else piece.following(start)
    if not isinstance(kind, exp.Expr):
        raise piece.refuse(
            node.this, f"column {node.name} needs a type", hint=f"write {node.name} VARCHAR, for example"
        )
    if isinstance(kind, exp.DataType) and kind.this in exp.DataType.INTEGER_TYPES and piece.reader.name != DEFAULT:
        kind.set("expressions", None)  # INT(11) is MySQL's padding
    with piece.placed(token or node.this):
        try:
            return parse_type(to_sql(kind))
        except DefinitionError as error:
            what = f"column {node.name} cannot have the type {to_sql(kind)}"
            raise DefinitionError(what, detail=error.detail or error.message, hint=error.hint) from None


def _table_constraint(piece: Piece, node: exp.Expr, before: int) -> list[exp.Expr]:
    """The columns of PRIMARY KEY (…); any other constraint is refused. It stands somewhere
    behind ``before``."""
    if isinstance(node, exp.Identifier):
        raise piece.refuse(node, f"column {node.name} needs a type", hint=f"write {node.name} VARCHAR, say")
    if isinstance(node, exp.Constraint) and len(node.expressions) == 1:
        node = node.expressions[0]
    if isinstance(node, exp.PrimaryKey):
        if not node.expressions:
            raise piece.refuse(
                piece.find("PRIMARY"), "the primary key names no column", hint="write PRIMARY KEY (a, b)"
            )
        return list(node.expressions)
    raise _refusal(piece, node, type(node), before)


def _key_column(piece: Piece, node: exp.Expr, columns: dict[str, Column]) -> str:
    if isinstance(node, exp.Ordered) and not node.args.get("desc"):
        node = node.this
    name = node.name
    if not isinstance(node, (exp.Identifier, exp.Column)) or not name:
        raise piece.refuse(node, "the primary key takes names of columns", hint="write PRIMARY KEY (a, b)")
    found = columns.get(name.lower())
    if found is None:
        hint = nearest(name.lower(), columns, "the columns are")
        raise piece.refuse(node, f"the primary key names column {name}, which is not there", hint=hint)
    return found.name


def _refusal(piece: Piece, node: exp.Expr, kind: type[object], after: int) -> Exception:
    """The error for a constraint of a column, or for what else stands between the columns."""
    for refused, (word, why, hint) in _REFUSED.items():
        if issubclass(kind, refused):
            token = piece.find(word, after=after)
            return piece.refuse(token or node, f"a table cannot have {word}", why=why, hint=hint)
    word = kind.__name__.removesuffix("ColumnConstraint").removesuffix("Property").upper()
    place = piece.find(word, after=after) or node
    return piece.refuse(place, f"a table cannot have {word}", hint="leave it out")
