"""The values that generated rows are made of: usual ones and extremes of every type, and the constants of a query.

Values are few and come in a fixed order, so rows meet in joins and groups, and are the same every time.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import duckdb
import pyarrow as pa

from everview.change.types import INTEGERS, SIGNED, Kind, Type
from everview.check.trial_queries import asking, whole
from everview.store.encoding.fitting import fit

MILD, PLAIN = 1, 2
"""Levels of a sample: 0 has extremes, 1 has none, 2 has only texts that look like numbers or dates."""
LEVELS = (0, MILD, PLAIN)

_BY_KIND: dict[Kind, tuple[Sequence[str], Sequence[str]]] = {
    Kind.BOOLEAN: (("true", "false"), ()),
    Kind.REAL: (("1", "0", "2.5", "-1", "0.5", "3"), ("'nan'", "'inf'", "'-inf'", "-0.0")),
    Kind.DOUBLE: (("1", "0", "2.5", "-1", "0.5", "3"), ("'nan'", "'inf'", "'-inf'", "-0.0")),
    Kind.DECIMAL: (("1", "0", "2", "-1", "0.5", "3"), ()),
    Kind.BLOB: (("'a'", "''", "'b'", r"'\x00'"), (r"'\xFF\x00a'",)),
    Kind.DATE: (
        ("'2024-01-01'", "'2024-01-02'", "'2023-12-31'", "'2024-02-29'"),
        ("'0001-01-01'", "'9999-12-31'", "'1969-12-31'"),
    ),
    Kind.TIME: (("'12:00:00'", "'00:00:00'", "'12:00:01'"), ("'23:59:59.999999'",)),
    Kind.TIMESTAMP: (
        ("'2024-01-01'", "'2024-01-01 12:00:00'", "'2024-01-02'", "'2023-12-31 23:59:59'"),
        ("'0001-01-01'", "'9999-12-31 23:59:59.999999'"),
    ),
    Kind.TIMESTAMPTZ: (
        (
            "'2024-01-01 00:00:00+00'",
            "'2024-01-01 12:00:00+00'",
            "'2024-01-02 00:00:00+00'",
            "'2023-12-31 23:59:59+00'",
        ),
        ("'0001-01-01 00:00:00+00'",),
    ),
    Kind.TIMETZ: (("'12:00:00+00'", "'00:00:00+00'", "'12:00:01+00'"), ("'13:00:00+01'", "'23:59:59-15:59'")),
    Kind.BIT: (("'1'", "'0'", "'101'"), ("'0001'", "'1010101010101'")),
    Kind.BIGNUM: (("1", "0", "2", "3", "-1", "7", "10"), (f"'{'9' * 60}'", f"'-{'9' * 60}'", "'256'", "'-256'")),
    Kind.INTERVAL: (("'1 day'", "'0 days'", "'1 month'", "'24 hours'"), ("'30 days'", "'-1 day'", "'100 years'")),
    Kind.UUID: (
        (
            "'00000000-0000-0000-0000-000000000001'",
            "'00000000-0000-0000-0000-000000000002'",
            "'80000000-0000-0000-0000-000000000000'",
        ),
        (),
    ),
    Kind.JSON: (
        ("""'{"a": 1}'""", "'[1, 2]'", "'1'", """'{"a": null}'"""),
        ("'null'", """'"x"'""", """'{"z": 1, "a": [2], "m": null, "b": "x"}'"""),
    ),
}
"""Values of a kind: those that are always there, and extremes."""

_LIKE = dict.fromkeys((Kind.TIMESTAMP_S, Kind.TIMESTAMP_MS, Kind.TIMESTAMP_NS), Kind.TIMESTAMP)

_TEXTS = (("'a'", "'b'", "''", "'A'", "'ab'", "'1'", "'2'"), ("'é'", "' a'", "'%'", "'a_b'", "'2024-01-01'"))
_PLAIN_TEXTS = ("'1'", "'2'", "'10'", "'3'")


@functools.lru_cache(maxsize=1000)
def pool_of(kind: Type, level: int) -> pa.Array:
    """Values of a type, without null."""
    if kind.kind is Kind.ARRAY:
        made = f"SELECT unnest([list_resize([x], {kind.length}, x), list_resize([x], {kind.length})]) FROM given"
        return _asked(f"{made} LIMIT 12", kind, pool_of(kind.item, level))
    if kind.kind is Kind.LIST:
        inner = "SELECT unnest([[], [x], [x, x], [NULL, x]]) FROM given"
        return _asked(f"{inner} LIMIT 12", kind, pool_of(kind.item, level))
    if kind.kind is Kind.MAP:
        (_, key), (_, value) = kind.children
        given = {"k": pa.table({"x": pool_of(key, level)}), "v": pa.table({"x": pool_of(value, level)})}
        sides = "(SELECT list(x) FROM k) AS k, (SELECT list(x) FROM v) AS v"
        made = "[map([], []), map([k[1]], [v[1]]), map([k[1]], [NULL]), map([k[2], k[1]], [v[1], v[2]])]"
        return _answer(f"SELECT CAST(unnest({made}) AS {kind}) AS x FROM (SELECT {sides})", kind, given)
    if kind.kind in (Kind.STRUCT, Kind.TUPLE):
        return _structs(kind, level)
    return _values(_texts_of(kind, level), kind)


@functools.lru_cache(maxsize=1000)
def more_keys(kind: Type) -> pa.Array:
    """Further values for a key of one column, which would have few rows otherwise."""
    if kind.kind in INTEGERS:
        return _values([str(number) for number in range(21, 41)], kind)
    if kind.kind is Kind.VARCHAR:
        return _values([f"'k{number}'" for number in range(20)], kind)
    if kind.kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        return _values([f"'2024-03-{number:02} 00:00:00+00'" for number in range(1, 21)], kind)
    return pa.nulls(0, kind.arrow)


def _texts_of(kind: Type, level: int) -> list[str]:
    if kind.kind is Kind.VARCHAR:
        return list(_PLAIN_TEXTS) if level == PLAIN else [*_TEXTS[0], *(_TEXTS[1] if level == 0 else ())]
    if kind.kind in INTEGERS:
        bits = INTEGERS[kind.kind]
        signed = kind.kind in SIGNED
        least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        plain = ["1", "0", "2", "3", "7", *(["-1"] if signed else []), "4", "5", "10", "20"]
        return [*plain, *([f"'{least}'", f"'{most}'"] if level == 0 else [])]
    if kind.kind is Kind.ENUM:
        return [_literal(name) for name in kind.members]
    usual, extreme = _BY_KIND.get(_LIKE.get(kind.kind, kind.kind), ((), ()))
    return [*usual, *(extreme if level == 0 else ())]


def _structs(kind: Type, level: int) -> pa.Array:
    """Structs whose fields go through the values of their types, nulls among them."""
    fields = [(name, child, pool_of(child, level)) for name, child in kind.children]
    texts = []
    for number in range(8):
        parts = []
        for place, (name, child, pool) in enumerate(fields):
            at = (number * (place + 1)) % (len(pool) + 1)
            value = "NULL" if at == len(pool) else f"(SELECT list(x) FROM pool{place})[{at + 1}]"
            named = "" if kind.kind is Kind.TUPLE else f"{_literal(name)}: "
            parts.append(f"{named}CAST({value} AS {child})")
        made = f"row({', '.join(parts)})" if kind.kind is Kind.TUPLE else f"{{{', '.join(parts)}}}"
        texts.append(f"SELECT CAST({made} AS {kind}) AS x")
    given = {f"pool{place}": pa.table({"x": pool}) for place, (_, _, pool) in enumerate(fields)}
    return _answer(" UNION ALL ".join(texts), kind, given)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def values_of_literals(literals: tuple[str, ...], kind: Type) -> pa.Array:
    """The constants of a query that can be values of a type."""
    if not literals or not kind.is_scalar:
        return pa.nulls(0, kind.arrow)
    return _casts(literals, kind)


@functools.lru_cache(maxsize=1000)
def _casts(literals: tuple[str, ...], kind: Type) -> pa.Array:
    return _answer(f"SELECT DISTINCT TRY_CAST(x AS {kind}) AS x FROM given ORDER BY x", kind, {
        "given": pa.table({"x": pa.array(literals, pa.string())})
    })  # fmt: skip


def _values(texts: Sequence[str], kind: Type) -> pa.Array:
    if not texts:
        return pa.nulls(0, kind.arrow)
    return _answer(" UNION ALL ".join(f"SELECT TRY_CAST({text} AS {kind}) AS x" for text in texts), kind, {})


def _asked(sql: str, kind: Type, given: pa.Array) -> pa.Array:
    return _answer(f"SELECT CAST(x AS {kind}) AS x FROM ({sql}) AS made(x)", kind, {"given": pa.table({"x": given})})


def _answer(sql: str, kind: Type, given: Mapping[str, pa.Table]) -> pa.Array:
    """The values of a column that DuckDB makes; none where it cannot."""
    try:
        found = asking().answer(sql, given)
    except duckdb.Error:
        return pa.nulls(0, kind.arrow)
    values = whole(found.column(0)).drop_null()
    return values if values.type == kind.arrow else fit(values, kind)
