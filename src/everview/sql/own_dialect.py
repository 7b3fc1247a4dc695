"""Everview's own dialect: DuckDB's SQL under the fixed settings, as sqlglot reads and writes it.

One sentence: where sqlglot reads DuckDB's words otherwise than DuckDB, or cannot read them, its parser
is put right here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError
from sqlglot.generators.duckdb import DuckDBGenerator
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import Token, TokenType

_VERBATIM = frozenset({
    "APPLY", "APPROX_TOP_K", "BOOL_AND", "BOOL_OR", "DATEDIFF", "DATETRUNC", "DATE_ADD", "DATE_DIFF", "DATE_TRUNC",
    "DECODE", "JARO_WINKLER_SIMILARITY", "LOG10", "LOG2", "LOGICAL_AND", "LOGICAL_OR", "REDUCE", "REGEXP_EXTRACT",
    "REGEXP_EXTRACT_ALL", "REGEXP_REPLACE", "TIME_BUCKET",
})  # fmt: skip
"""Functions that sqlglot would write back as others or with other arguments: log(2, x) for
log2(x) is not as exact, decode loses its second argument, reduce swaps two, bool_or casts what
DuckDB refuses, and a unit or a flag is taken for a literal even where it is a column."""


_AFTER_ROWS = (TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET, TokenType.FETCH)


class Everview(DuckDB):
    """DuckDB's SQL under Everview's fixed settings."""

    NULL_ORDERING = "nulls_are_large"
    TYPED_DIVISION = True
    SAFE_DIVISION = True

    class Tokenizer(DuckDB.Tokenizer):
        HEX_STRINGS: ClassVar[list[str | tuple[str, str]]] = [("x'", "'"), ("X'", "'")]

        def tokenize(self, sql: str) -> list[Token]:
            # sqlglot 30 looks for the end of $1 as if it began a $tag$, and then cannot read '' at the very end.
            return super().tokenize(f"{sql}\n")

    class Parser(DuckDBParser):
        FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
            name: build for name, build in DuckDBParser.FUNCTIONS.items() if name not in _VERBATIM
        }
        FUNC_TOKENS: ClassVar[set[TokenType]] = DuckDBParser.FUNC_TOKENS | {TokenType.APPLY}

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
        def distinct_sql(self, expression: exp.Distinct) -> str:
            # corr(DISTINCT a, b) has two arguments; count(DISTINCT a, b) of other dialects counts rows.
            several = len(expression.expressions) > 1 and not expression.args.get("on")
            if several and not isinstance(expression.parent, exp.Count):
                return f"DISTINCT {self.expressions(expression, flat=True)}"
            return super().distinct_sql(expression)

        def query_modifiers(self, expression: exp.Expr, *sqls: str) -> str:
            # FETCH is a LIMIT by another name. sqlglot would leave out what it says of ties and percents.
            fetch = expression.args.get("limit")
            if isinstance(fetch, exp.Fetch):
                said = fetch.args.get("limit_options") or exp.LimitOptions()
                kept = exp.LimitOptions(percent=said.args.get("percent"), with_ties=said.args.get("with_ties"))
                count = fetch.args.get("count") or exp.Literal.number(1)
                expression.set("limit", exp.Limit(expression=count.copy(), limit_options=kept))
            return super().query_modifiers(expression, *sqls)

    def to_json_path(self, path: exp.Expr | None) -> exp.Expr | None:
        """A path stays as written: to DuckDB ``'a.b'`` is a key, which sqlglot takes for ``'$.a.b'``."""
        return path
