"""Everview's own dialect: DuckDB's SQL, as sqlglot reads and writes it.

Where sqlglot reads DuckDB's words otherwise than DuckDB, or cannot read them, its parser
is put right here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp, parser
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError
from sqlglot.generators.duckdb import DuckDBGenerator
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import Token, TokenType

if not str(parser.__file__).endswith(".py"):
    raise ImportError(
        "Everview extends sqlglot's parsers, which the compiled sqlglot does not allow; "
        "leave out the package sqlglotc (the extra of sqlglot[c]): pip uninstall sqlglotc"
    )

_READ = frozenset({
    "ANY_VALUE", "ARRAY", "ARRAY_AGG", "AVG", "CASE", "COALESCE", "COLUMNS", "COUNT", "EXPLODE", "FIRST",
    "FIRST_VALUE", "GENERATE_SERIES", "GROUPING", "GROUPING_ID", "IF", "LAG", "LAST", "LAST_VALUE", "LEAD",
    "LENGTH", "LIST", "LOWER", "MAX", "MEDIAN", "MIN", "MODE", "NTH_VALUE", "NULLIF", "PERCENTILE_CONT",
    "PERCENTILE_DISC", "RANGE", "RANK", "ROW_NUMBER", "SUM", "UNNEST", "UPPER",
})  # fmt: skip
"""Functions that sqlglot reads as what they are. All others keep their names and arguments as they are
written: sqlglot writes many of them back as others (``log2(x)`` as ``log(2, x)``, which is not as exact), with
arguments cast, swapped, added or lost, for what they mean in the dialects it translates between."""


_WORDED = frozenset({"CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTRING", "TRIM", "TRY_CAST"})
"""Functions whose arguments may have words between them."""


_UNIT = re.compile(
    "(year|month|day|hour|minute|second|millisecond|microsecond|week|quarter|decade|centur(?:y|ie)|millennium)s?",
    re.IGNORECASE,
)
"""What may stand behind the number of an interval."""


_AFTER_ROWS = (TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET, TokenType.FETCH)


class Everview(DuckDB):
    """DuckDB's SQL, as DuckDB reads it."""

    class Tokenizer(DuckDB.Tokenizer):
        HEX_STRINGS: ClassVar[list[str | tuple[str, str]]] = [("x'", "'"), ("X'", "'")]

        def tokenize(self, sql: str) -> list[Token]:
            # sqlglot 30 looks for the end of $1 as if it began a $tag$, and then cannot read '' at the very end.
            return super().tokenize(f"{sql}\n")

    class Parser(DuckDBParser):
        FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
            name: build for name, build in DuckDBParser.FUNCTIONS.items() if name in _READ
        }
        FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr | None]]] = {
            **{name: read for name, read in DuckDBParser.FUNCTION_PARSERS.items() if name in _WORDED},
            "EXTRACT": lambda self: self._parse_extract(),
        }
        FUNC_TOKENS: ClassVar[set[TokenType]] = DuckDBParser.FUNC_TOKENS | {TokenType.APPLY}

        def _parse_extract(self) -> exp.Anonymous:
            # The unit is a word or a text, and DuckDB knows more of them than sqlglot.
            unit = self._parse_string() or self._parse_var_or_string(upper=True)
            if not self._match(TokenType.FROM):
                self.raise_error("Expected FROM after EXTRACT", self._prev)
            name = exp.Literal.string(unit.name.lower() if unit is not None else "")
            return self.expression(exp.Anonymous(this="date_part", expressions=[name, self._parse_bitwise()]))

        def _parse_interval(
            self, require_interval: bool = True, parse_function_unit: bool = True
        ) -> exp.Add | exp.Interval | None:
            # INTERVAL '3 sec' is a text that DuckDB reads; sqlglot would cut it into a number and a unit.
            literal, unit = self._next, self._tokens[self._index + 2 : self._index + 3]
            is_text = self._curr.token_type == TokenType.INTERVAL and literal.token_type == TokenType.STRING
            if not is_text or (unit and _UNIT.fullmatch(unit[0].text)):
                return super()._parse_interval(require_interval, parse_function_unit)
            self._advance(2)
            text = self.expression(exp.Literal.string(literal.text), literal)
            return self.expression(exp.Cast(this=text, to=exp.DataType(this=exp.DType.INTERVAL)))  # type: ignore[return-value]

        def _parse_in(self, this: exp.Expr | None, alias: bool = False) -> exp.In:
            # To DuckDB a IN [1, NULL] asks whether a list contains a: never NULL, unlike a IN (1, NULL).
            if self._curr.token_type == TokenType.L_BRACKET:
                return self.expression(exp.In(this=this, field=self._parse_column()))
            found = super()._parse_in(this, alias)
            if self._curr.token_type == TokenType.DCOLON:  # (a IN (1, 2))::VARCHAR
                return self._parse_column_ops(found)  # type: ignore[return-value]
            return found

        def _negate_range(self, this: exp.Expr | None = None) -> exp.Expr | None:
            if isinstance(this, exp.Cast) and isinstance(this.this, exp.In):  # (a NOT IN (1, 2))::VARCHAR
                this.set("this", super()._negate_range(this.this))
                return this
            return super()._negate_range(this)

        def _parse_is(self, this: exp.Expr | None) -> exp.Expr | None:
            found: exp.Expr | None
            if self._match_text_seq("UNKNOWN"):  # of a truth value: IS NULL
                found = self.expression(exp.Is(this=this, expression=exp.Null()))
            elif self._match_text_seq("NOT", "UNKNOWN"):
                found = self.expression(exp.Not(this=exp.Is(this=this, expression=exp.Null())))
            else:
                found = super()._parse_is(this)
            while found is not None and self._match(TokenType.DPIPE):  # (a IS NULL) || 'x'
                found = self.expression(exp.DPipe(this=exp.Paren(this=found), expression=self._parse_term(), safe=True))
            return found

        def _parse_lateral(self) -> exp.Lateral | None:
            # A function of FROM may read what stands before it, with the word or without.
            found = super()._parse_lateral()
            if found is None or found.args.get("ordinality"):
                return found
            call, alias = found.this, found.args.get("alias")
            if isinstance(call, exp.Unnest):
                call.set("alias", alias)
                return call  # type: ignore[return-value]
            return exp.Table(this=call, alias=alias) if isinstance(call, exp.Func) else found  # type: ignore[return-value]

        def _parse_function_call(self, *args: Any, **named: Any) -> exp.Expr | None:
            # corr(DISTINCT a, b): to sqlglot that is one argument, which some of its classes do not take.
            start = self._index
            try:
                return super()._parse_function_call(*args, **named)
            except ParseError:
                ahead = [token.token_type for token in self._tokens[start + 1 : start + 3]]
                if ahead != [TokenType.L_PAREN, TokenType.DISTINCT] or named.get("anonymous"):
                    raise
                self._retreat(start)
                return super()._parse_function_call(*args, **{**named, "anonymous": True})

        def _parse_wrapped_id_vars(self, optional: bool = False) -> list[exp.Expr]:
            # WITH RECURSIVE q(k, v) USING KEY (k, max(v)): aggregates may stand among the names.
            before = [token.text.upper() for token in self._tokens[max(0, self._index - 2) : self._index]]
            if before != ["USING", "KEY"]:
                return super()._parse_wrapped_id_vars(optional)
            keys = self._parse_wrapped_csv(self._parse_assignment)
            return [key.this if isinstance(key, exp.Column) and not key.table else key for key in keys]

        _is_named = False
        """Whether the VALUES that follow have names of a WITH in sight."""

        def _parse_with(self, skip_with_token: bool = False) -> exp.With | None:
            found = super()._parse_with(skip_with_token)
            if found is not None:
                self._is_named = self._curr.token_type == TokenType.VALUES
            return found

        def _parse_derived_table_values(self, allow_value_synonym: bool = False) -> exp.Values | None:
            # sqlglot knows no WITH before VALUES and no ORDER BY behind them, and DuckDB does: there they are
            # rows of a SELECT.
            named, self._is_named = self._is_named, False
            start, in_parentheses = self._index, self._curr.token_type == TokenType.L_PAREN
            try:
                found = super()._parse_derived_table_values(allow_value_synonym)
            except ParseError:
                if not in_parentheses:
                    raise
                self._retreat(start)  # a subquery that begins with VALUES
                return None
            if found is None or not (named or (not in_parentheses and self._curr.token_type in _AFTER_ROWS)):
                return found
            return self._parse_query_modifiers(exp.select("*").from_(found, copy=False))  # type: ignore[return-value]

        def _normalize_collate(self, collate: exp.Collate) -> None:
            # NOCASE.NOACCENT is one collation, not a column of a table.
            found = collate.expression
            if isinstance(found, exp.Column | exp.Dot):
                collate.set("expression", exp.var(".".join(part.name for part in found.parts)))

    class Generator(DuckDBGenerator):
        TRANSFORMS: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
            **DuckDBGenerator.TRANSFORMS,
            exp.ToMap: lambda self, node: f"MAP {self.sql(node, 'this')}" if node.this.expressions else "MAP {}",
        }
        """The empty map has no text of its own where it is cast to a MAP."""

        def distinct_sql(self, expression: exp.Distinct) -> str:
            # corr(DISTINCT a, b) has two arguments; count(DISTINCT a, b) of other dialects counts rows.
            several = len(expression.expressions) > 1 and not expression.args.get("on")
            if several and not isinstance(expression.parent, exp.Count):
                return f"DISTINCT {self.expressions(expression, flat=True)}"
            return super().distinct_sql(expression)

        def query_modifiers(self, expression: exp.Expr, *sqls: str) -> str:
            # FETCH is a LIMIT by another name. sqlglot would leave out its ties and percents.
            fetch = expression.args.get("limit")
            if isinstance(fetch, exp.Fetch):
                options = fetch.args.get("limit_options") or exp.LimitOptions()
                kept = exp.LimitOptions(percent=options.args.get("percent"), with_ties=options.args.get("with_ties"))
                count = fetch.args.get("count") or exp.Literal.number(1)
                expression.set("limit", exp.Limit(expression=count.copy(), limit_options=kept))
            return super().query_modifiers(expression, *sqls)

    def to_json_path(self, path: exp.Expr | None) -> exp.Expr | None:
        """A path stays as written: to DuckDB ``'a.b'`` is a key, which sqlglot takes for ``'$.a.b'``."""
        return path
