"""INSERT, UPDATE, DELETE and SELECT out of sqlglot's trees.

A write has a table and what changes there; whatever else a dialect lets it have
(RETURNING, ON CONFLICT, FROM, …) is refused with what to write instead.
"""

from __future__ import annotations

from sqlglot import exp

from everview.sql.dialects import reserved_words
from everview.sql.pieces import Piece, aliased_name, names, only, plain_name
from everview.sql.statements import Delete, Insert, Select, Update


def read_select(piece: Piece, tree: exp.Expr) -> Select:
    return Select(query(piece, tree))


def query(piece: Piece, tree: object) -> exp.Expr:
    """A query in Everview's dialect."""
    if tree is None:
        raise piece.ends_early("a query")
    if not isinstance(tree, (exp.Query, exp.Values)) or isinstance(tree, exp.Table):
        raise piece.refuse(tree if isinstance(tree, exp.Expr) else None, "a query is missing", hint="write SELECT …")
    for select in tree.find_all(exp.Select):
        if select.args.get("into"):
            raise piece.refuse(piece.find("INTO"), "SELECT cannot have INTO", hint="write INSERT INTO table SELECT …")
        if select.args.get("locks"):
            raise piece.refuse(piece.find("FOR"), "SELECT locks nothing", hint="leave the locking clause out")
        if not select.expressions:
            raise piece.refuse(select, "a SELECT names no columns", hint="write SELECT * or the columns")
    for alias in tree.find_all(exp.TableAlias):
        if isinstance(alias.this, exp.Identifier) and not alias.this.quoted and alias.name.lower() in reserved_words():
            raise piece.refuse(
                alias.this,
                f"{alias.name.upper()} is a reserved word, or something is missing behind it",
                hint=f'as a name, write "{alias.name}"',
            )
    return piece.meaning(tree)


def read_insert(piece: Piece, tree: exp.Expr) -> Insert:
    if tree.args.get("conflict") or tree.args.get("ignore") or tree.args.get("alternative") not in (None, "REPLACE"):
        raise piece.refuse(
            piece.find("CONFLICT", "DUPLICATE", "IGNORE", "ABORT", "FAIL", "ROLLBACK"),
            "INSERT has one way with a row whose key exists",
            why="it is replaced",
            hint="write INSERT without ON CONFLICT; to keep such rows, select those that are not there yet",
        )
    if tree.args.get("default"):
        raise _no_defaults(piece)
    if tree.args.get("by_name"):
        raise piece.refuse(piece.find("NAME"), "INSERT goes by position", hint="name the columns behind the table")
    only(piece, tree, ("this", "expression", "alternative", "with_"), "INSERT")
    target = tree.this
    columns: tuple[str, ...] = ()
    if isinstance(target, exp.Schema):
        columns = names(piece, target.expressions, "INSERT")
        target = target.this
    table = plain_name(piece, target, "INSERT")
    source = tree.args.get("expression")
    if tree.args.get("with_") and isinstance(source, exp.Query):
        if source.args.get("with_"):
            raise piece.refuse(piece.find("WITH"), "INSERT cannot have two WITH", hint="put all of them in the query")
        source.set("with_", tree.args["with_"].pop())
    inserted = query(piece, source)
    if isinstance(inserted, exp.Values):
        _check_rows(piece, inserted, columns)
    with piece.placed(target):
        return Insert(table, columns, inserted)


def _check_rows(piece: Piece, values: exp.Values, columns: tuple[str, ...]) -> None:
    only(piece, values, ("expressions",), "VALUES")
    width = len(columns)
    for row in values.expressions:
        if not isinstance(row, exp.Tuple) or not row.expressions:
            raise piece.refuse(row, "a row of VALUES stands in parentheses", hint="write VALUES (1, 2), (3, 4)")
        if any(isinstance(value, exp.Var) and value.name.upper() == "DEFAULT" for value in row.expressions):
            raise _no_defaults(piece)
        width = width or len(row.expressions)
        if len(row.expressions) != width:
            named = f"{len(columns)} columns are named" if columns else f"the first row has {width}"
            raise piece.refuse(row, f"a row of VALUES has {len(row.expressions)} values", why=named)


def read_update(piece: Piece, tree: exp.Expr) -> Update:
    if tree.args.get("from_"):
        raise piece.refuse(
            piece.find("FROM"), "UPDATE changes one table and reads no other beside it",
            hint="take values from other tables with a subquery: SET a = (SELECT …) WHERE key IN (SELECT …)",
        )  # fmt: skip
    only(piece, tree, ("this", "expressions", "where"), "UPDATE")
    table, alias = aliased_name(piece, tree.this, "UPDATE")
    assignments = tuple(
        _assignment(piece, node, {table.lower(), (alias or table).lower()}) for node in tree.expressions
    )
    if not assignments:
        raise piece.refuse(tree, "UPDATE sets nothing", hint="write SET column = value")
    with piece.placed(tree.this):
        return Update(table, assignments, _where(piece, tree), alias)


def _assignment(piece: Piece, node: exp.Expr, tables: set[str]) -> tuple[str, exp.Expr]:
    target = node.this if isinstance(node, exp.EQ) else None
    named = target.table.lower() if isinstance(target, exp.Column) else ""
    if not isinstance(target, exp.Column) or not isinstance(target.this, exp.Identifier) or named not in {"", *tables}:
        raise piece.refuse(node, "SET takes a column and a value", hint="write SET a = 1, b = 2")
    value = node.expression
    if isinstance(value, exp.Column) and not value.this.args.get("quoted") and value.name.upper() == "DEFAULT":
        raise _no_defaults(piece)
    return target.name, piece.meaning(value)


def _no_defaults(piece: Piece) -> Exception:
    hint = "write the value, or NULL; a column that INSERT does not name keeps its value, or is null"
    return piece.refuse(piece.find("DEFAULT"), "there are no default values", hint=hint)


def read_delete(piece: Piece, tree: exp.Expr) -> Delete:
    if tree.args.get("tables") and not tree.args.get("using"):
        raise piece.refuse(piece.tokens[0], "DELETE names one table", hint="write DELETE FROM table WHERE …")
    if tree.args.get("using"):
        raise piece.refuse(
            piece.find("USING"), "DELETE changes one table and reads no other beside it",
            hint="look into other tables with a subquery: WHERE key IN (SELECT …)",
        )  # fmt: skip
    only(piece, tree, ("this", "where"), "DELETE")
    table, alias = aliased_name(piece, tree.this, "DELETE")
    return Delete(table, _where(piece, tree), alias)


def _where(piece: Piece, tree: exp.Expr) -> exp.Expr | None:
    where = tree.args.get("where")
    return None if where is None else piece.meaning(where.this)
