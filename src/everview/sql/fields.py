"""Taking over sqlglot's trees field by field.

Who reads a node names the fields it understands, and any other field that is set
is refused, so that nothing a user wrote is silently ignored.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from everview.sql.split import Piece

_WORDS = {"cluster": "ON", "order": "ORDER BY", "group": "GROUP BY", "exists": "IF EXISTS"}
"""How fields are written whose names say something else."""


def only(piece: Piece, node: exp.Expr, understood: Collection[str], what: str) -> None:
    """Refuse the node if a field is set that is not understood."""
    for name, value in node.args.items():
        if name in understood or value is None or value is False or value == []:
            continue
        word = _WORDS.get(name) or name.strip("_").replace("_", " ").upper()
        first = value[0] if isinstance(value, list) else value
        token = piece.find(word.split(" ")[0])
        place = token or (first if isinstance(first, exp.Expr) else node)
        raise piece.refuse(place, f"{what} cannot have {word}", hint="leave it out")


def plain_name(piece: Piece, node: object, what: str) -> str:
    """The name of a table, view or index, which stands alone: no schema, no alias."""
    if isinstance(node, exp.Identifier):
        return node.name
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        place = node if isinstance(node, exp.Expr) else None
        raise piece.refuse(place, f"{what} needs a name", hint="write a plain name")
    if node.args.get("db") or node.args.get("catalog"):
        raise piece.refuse(
            node, f"{node.name} stands without a schema before it", hint=f"there is one schema; write {node.name}"
        )
    only(piece, node, ("this",), what)
    return node.name


def aliased_name(piece: Piece, node: object, what: str) -> tuple[str, str | None]:
    """The name of a table, and the alias behind it."""
    alias = node.args.get("alias") if isinstance(node, exp.Table) else None
    if not isinstance(node, exp.Table) or alias is None:
        return plain_name(piece, node, what), None
    only(piece, alias, ("this",), what)
    bare = node.copy()
    bare.set("alias", None)
    return plain_name(piece, bare, what), alias.name


def names(piece: Piece, nodes: Collection[object], what: str) -> tuple[str, ...]:
    """A list of names of columns."""
    found = []
    for node in nodes:
        if isinstance(node, exp.Column) and not node.args.get("table"):
            node = node.this
        if not isinstance(node, exp.Identifier):
            place = node if isinstance(node, exp.Expr) else None
            raise piece.refuse(place, f"{what} takes names of columns", hint="list plain names")
        found.append(node.name)
    return tuple(found)
