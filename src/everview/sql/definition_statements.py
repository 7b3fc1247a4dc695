"""CREATE, ALTER and DROP out of sqlglot's trees.

A definition is taken over field by field; what a store of keyed rows cannot
promise (defaults, checks, foreign keys, …) is refused with its place and the reason.
"""

from __future__ import annotations

from sqlglot import exp

from everview.errors import DefinitionError
from everview.sql.column_definitions import read_column, read_columns
from everview.sql.options import VIEW_OPTIONS, Option, checked_option
from everview.sql.pieces import Piece, names, only, plain_name
from everview.sql.statements import (
    AddColumn,
    CreateIndex,
    CreateMaterializedView,
    CreateTable,
    CreateView,
    DropIndex,
    DropTable,
    DropView,
    Statement,
)
from everview.sql.write_statements import query


def read_create(piece: Piece, tree: exp.Expr) -> Statement:
    kind = str(tree.args.get("kind", "")).upper()
    if kind == "TABLE":
        return _create_table(piece, tree)
    if kind == "VIEW":
        return _create_view(piece, tree)
    if kind == "INDEX":
        return _create_index(piece, tree)
    raise piece.refuse(
        piece.find(kind), f"there is no CREATE {kind}", hint="create a TABLE, a [MATERIALIZED] VIEW or an INDEX"
    )


# ------------------------------------------------------------------ tables


def _create_table(piece: Piece, tree: exp.Expr) -> CreateTable:
    if tree.args.get("expression"):
        hint = "create the table with its columns, then INSERT INTO table SELECT …"
        raise piece.refuse(tree.args["expression"], "a table cannot be created from a query", hint=hint)
    if tree.args.get("replace"):
        hint = "DROP TABLE first, or CREATE TABLE IF NOT EXISTS"
        raise piece.refuse(piece.find("REPLACE"), "a table is not replaced", why="its rows would be lost", hint=hint)
    if tree.args.get("properties"):
        raise _property(piece, tree.args["properties"].expressions[0], "a table")
    only(piece, tree, ("this", "kind", "exists"), "CREATE TABLE")
    schema = tree.this
    if not isinstance(schema, exp.Schema):
        raise piece.refuse(schema, "a table needs columns", hint="write CREATE TABLE name (a INTEGER PRIMARY KEY, …)")
    name = plain_name(piece, schema.this, "a table")
    columns, key = read_columns(piece, schema.expressions)
    with piece.placed(schema.this):
        return CreateTable(name, columns, key, if_not_exists=bool(tree.args.get("exists")))


def read_alter(piece: Piece, tree: exp.Expr) -> AddColumn:
    actions = tree.args.get("actions") or []
    added = [action for action in actions if isinstance(action, exp.ColumnDef)]
    if str(tree.args.get("kind")).upper() != "TABLE" or len(added) != len(actions) or not added:
        other = next((action for action in actions if not isinstance(action, exp.ColumnDef)), None)
        raise piece.refuse(
            (other and piece.following(piece.tokens[2].start)) or piece.tokens[0],
            "ALTER does nothing but add a column to a table",
            hint="write ALTER TABLE name ADD COLUMN column TYPE; else create a new table and INSERT … SELECT",
        )
    only(piece, tree, ("this", "kind", "actions", "exists"), "ALTER TABLE")
    if len(added) > 1:
        raise piece.refuse(added[1], "ALTER TABLE adds one column", hint="write one statement for each column")
    table = plain_name(piece, tree.this, "a table")
    if added[0].args.get("position"):
        raise piece.refuse(piece.find("FIRST", "AFTER"), "a column is added at the end", hint="leave the place out")
    column, key = read_column(piece, added[0])
    if key:
        raise piece.refuse(
            piece.find("PRIMARY"), f"column {column.name} cannot be added to the key", hint="create a new table"
        )
    with piece.placed(added[0]):
        if_not_exists = bool(added[0].args.get("exists"))
        return AddColumn(table, column, if_exists=bool(tree.args.get("exists")), if_not_exists=if_not_exists)


# ------------------------------------------------------------------ views


def _create_view(piece: Piece, tree: exp.Expr) -> CreateMaterializedView | CreateView:
    properties = tree.args["properties"].expressions if tree.args.get("properties") else []
    materialized = any(isinstance(node, exp.MaterializedProperty) for node in properties)
    what = "a materialized view" if materialized else "a view"
    only(piece, tree, ("this", "kind", "exists", "replace", "expression", "properties"), what)
    target = tree.this
    columns: tuple[str, ...] = ()
    if isinstance(target, exp.Schema):
        columns = names(piece, target.expressions, what)
        target = target.this
    name = plain_name(piece, target, what)
    options: dict[str, Option] = {}
    after = 0
    for node in properties:
        if type(node) is exp.Property and materialized:
            after = _read_option(piece, node, options, after)
        elif not isinstance(node, exp.MaterializedProperty):
            raise _property(piece, node, what)
    if tree.args.get("expression") is None:
        raise piece.ends_early("AS and a query")
    asked = query(piece, tree.args["expression"])
    replaces, keeps = bool(tree.args.get("replace")), bool(tree.args.get("exists"))
    with piece.placed(target):
        if materialized:
            return CreateMaterializedView(name, asked, columns, options, or_replace=replaces, if_not_exists=keeps)
        return CreateView(name, asked, columns, or_replace=replaces, if_not_exists=keeps)


def _read_option(piece: Piece, node: exp.Property, options: dict[str, Option], after: int) -> int:
    """Take over one option that stands behind an offset; gives the offset behind its name."""
    name = node.this.name if isinstance(node.this, exp.Expr) else str(node.this)
    opening = piece.find("WITH", "TBLPROPERTIES", "OPTIONS", after=after)
    token = piece.find(name.upper(), after=after or (opening.start if opening else 0))
    with piece.placed(token or node):
        name, value = checked_option("option", VIEW_OPTIONS, name, _value(node.args.get("value")))
        if name in options:
            raise DefinitionError(f"option {name} is given twice", hint="give it once")
    options[name] = value
    return token.end if token else after


def _value(node: object) -> Option:
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Literal) and not node.is_string and node.is_int:
        return int(node.this)
    return node.name if isinstance(node, exp.Expr) else str(node)


def _property(piece: Piece, node: exp.Expr, what: str) -> Exception:
    if type(node) is exp.Property:
        hint = "only materialized views have options"
        return piece.refuse(piece.find("WITH") or node, f"{what} has no options", hint=hint)
    word = type(node).__name__.removesuffix("Property").upper()
    return piece.refuse(piece.find(word, word[:4]) or node, f"{what} cannot be {word}", hint="leave it out")


# ------------------------------------------------------------------ indexes


def _create_index(piece: Piece, tree: exp.Expr) -> CreateIndex:
    if tree.args.get("unique"):
        why = "an index finds rows, it does not keep them apart"
        raise piece.refuse(piece.find("UNIQUE"), "an index is not UNIQUE", why=why, hint="leave UNIQUE out")
    only(piece, tree, ("this", "kind", "exists"), "CREATE INDEX")
    index = tree.this
    if not isinstance(index, exp.Index) or not isinstance(index.this, exp.Identifier):
        raise piece.refuse(
            piece.find("INDEX"), "an index needs a name", hint="write CREATE INDEX name ON table (column)"
        )
    only(piece, index, ("this", "table", "params"), "CREATE INDEX")
    params = index.args.get("params")
    ordered = params.args.get("columns") if isinstance(params, exp.Expr) else None
    if not isinstance(params, exp.Expr) or not ordered:
        raise piece.refuse(index, "an index needs columns", hint="write CREATE INDEX name ON table (column)")
    only(piece, params, ("columns",), "CREATE INDEX")
    on = plain_name(piece, index.args.get("table"), "an index")
    columns = names(piece, [_indexed(piece, node) for node in ordered], "CREATE INDEX")
    with piece.placed(index.this):
        return CreateIndex(index.this.name, on, columns, if_not_exists=bool(tree.args.get("exists")))


def _indexed(piece: Piece, node: exp.Expr) -> exp.Expr:
    if not isinstance(node, exp.Ordered):
        return node
    if node.args.get("desc"):
        raise piece.refuse(node, "an index is in ascending order", hint="leave DESC out; it can be read backwards")
    return node.this if isinstance(node.this, exp.Expr) else node


# ------------------------------------------------------------------ drops


def read_drop(piece: Piece, tree: exp.Expr) -> DropTable | DropView | DropIndex:
    kind = str(tree.args.get("kind", "")).upper()
    if kind not in ("TABLE", "VIEW", "INDEX"):
        hint = "drop a TABLE, a [MATERIALIZED] VIEW or an INDEX"
        raise piece.refuse(piece.find(kind), f"there is no DROP {kind}", hint=hint)
    only(piece, tree, ("tables", "kind", "exists", "cascade", "restrict", "materialized"), f"DROP {kind}")
    tables = tree.args.get("tables") or []
    if len(tables) != 1:
        raise piece.refuse(tables[1] if tables else None, f"DROP {kind} takes one name", hint="write one DROP for each")
    name = plain_name(piece, tables[0], f"DROP {kind}")
    cascade, if_exists = bool(tree.args.get("cascade")), bool(tree.args.get("exists"))
    materialized = bool(tree.args.get("materialized"))
    if kind == "VIEW":
        return DropView(name, materialized, cascade=cascade, if_exists=if_exists)
    if materialized:
        raise piece.refuse(piece.find("MATERIALIZED"), f"there is no MATERIALIZED {kind}", hint=f"write DROP {kind}")
    if kind == "INDEX":
        return DropIndex(name, cascade=cascade, if_exists=if_exists)
    return DropTable(name, cascade=cascade, if_exists=if_exists)
