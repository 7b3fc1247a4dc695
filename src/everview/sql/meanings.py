"""What each dialect means where DuckDB means something else: a table.

Everything that depends on the dialect and not on a word of its own is a column of
:class:`Meaning`, and :data:`MEANINGS` has a line for each dialect.

| column | the question |
|---|---|
| division | is ``7 / 2`` exact (3.5) or by the types of both sides (3)? |
| zero | does a division by zero fail for the row, or is it null, or infinite as floats have it? |
| to_integer | is a fraction that is cast to an integer cut, rounded as DuckDB does, or away from zero? |
| text_to_integer | is ``'3.7'`` an integer: never, rounded as DuckDB does, or the digits it begins with? |
| collation | how text is compared: by its bytes, or under a collation of DuckDB |
| like_case, like_escape | does LIKE mind upper and lower case; is a backslash its escape |
| substring | what a start before 1 means: from the end, at the first, before the first, nothing at all |
| cuts_text | does a cast to VARCHAR(n) leave n characters |
| strict_casts | does CAST fail where sqlglot takes it for TRY_CAST |
| strict_items | does an index outside of a list fail |

A dialect without a line has sqlglot's idea of division and DuckDB's of the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum


class Division(Enum):
    """What a quotient of integers is."""

    EXACT = "exact"
    BY_TYPE = "by type"


class Zero(Enum):
    """What a division by zero gives."""

    FAILS = "fails"
    NULL = "null"
    INFINITE = "infinite"
    INFINITE_FLOATS = "fails for integers, infinite for floats"


class ToInteger(Enum):
    """What a fraction becomes when it is cast to an integer."""

    AS_DUCKDB = "rounded, a half of a float to even"
    AWAY = "rounded, a half away from zero"
    CUT = "cut"


class TextToInteger(Enum):
    """What a text that is not a whole number becomes when it is cast to an integer."""

    AS_DUCKDB = "rounded"
    FAILS = "fails"
    DIGITS = "the digits that it begins with, else 0"


class Substring(Enum):
    """What a start below 1 means."""

    FROM_END = "negative ones count from the end; 0 is before the first character"
    ZERO_IS_ONE = "negative ones count from the end; 0 is 1"
    ZERO_IS_NOTHING = "negative ones count from the end; from 0 there is nothing"
    BEFORE_FIRST = "characters before the first that are not there"


@dataclass(frozen=True)
class Meaning:
    """What a dialect means."""

    division: Division
    zero: Zero
    to_integer: ToInteger = ToInteger.AS_DUCKDB
    text_to_integer: TextToInteger = TextToInteger.AS_DUCKDB
    collation: str | None = None
    like_case: bool = True
    like_escape: bool = False
    substring: Substring = Substring.FROM_END
    cuts_text: bool = False
    strict_casts: bool = False
    strict_items: bool = False


_POSTGRES = Meaning(
    Division.BY_TYPE,
    Zero.FAILS,
    text_to_integer=TextToInteger.FAILS,
    like_escape=True,
    substring=Substring.BEFORE_FIRST,
    cuts_text=True,
)
_MYSQL = Meaning(
    Division.EXACT,
    Zero.NULL,
    text_to_integer=TextToInteger.DIGITS,
    collation="NOCASE.NOACCENT",
    like_case=False,
    like_escape=True,
    substring=Substring.ZERO_IS_NOTHING,
    cuts_text=True,
)
_BINARY_MYSQL = replace(_MYSQL, collation=None, like_case=True)
_SPARK = Meaning(
    Division.EXACT,
    Zero.FAILS,
    ToInteger.CUT,
    TextToInteger.FAILS,
    like_escape=True,
    substring=Substring.ZERO_IS_ONE,
    strict_casts=True,
    strict_items=True,
)
_HIVE = replace(_SPARK, zero=Zero.NULL, strict_casts=False, strict_items=False)
_TSQL = Meaning(
    Division.BY_TYPE,
    Zero.FAILS,
    ToInteger.CUT,
    TextToInteger.FAILS,
    collation="NOCASE",
    like_case=False,
    substring=Substring.BEFORE_FIRST,
    cuts_text=True,
    strict_casts=True,
)
_TRINO = Meaning(Division.BY_TYPE, Zero.INFINITE_FLOATS, ToInteger.AWAY, TextToInteger.FAILS, cuts_text=True)

MEANINGS: dict[str, Meaning] = {
    "postgres": _POSTGRES,
    "risingwave": _POSTGRES,
    "materialize": _POSTGRES,
    "redshift": _POSTGRES,
    "mysql": _MYSQL,
    "singlestore": _MYSQL,
    "doris": _BINARY_MYSQL,
    "starrocks": _BINARY_MYSQL,
    "spark": _SPARK,
    "databricks": _SPARK,
    "spark2": _HIVE,
    "hive": _HIVE,
    "sqlite": Meaning(Division.BY_TYPE, Zero.NULL, ToInteger.CUT, TextToInteger.DIGITS, like_case=False),
    "tsql": _TSQL,
    "fabric": replace(_TSQL, collation=None, like_case=True),
    "snowflake": Meaning(Division.EXACT, Zero.FAILS, ToInteger.AWAY),
    "bigquery": Meaning(
        Division.EXACT,
        Zero.FAILS,
        ToInteger.AWAY,
        TextToInteger.FAILS,
        like_escape=True,
        substring=Substring.ZERO_IS_ONE,
        strict_items=True,
    ),
    "oracle": Meaning(Division.EXACT, Zero.FAILS, ToInteger.AWAY, substring=Substring.ZERO_IS_ONE),
    "trino": _TRINO,
    "presto": _TRINO,
    "athena": _TRINO,
    "dune": _TRINO,
    "clickhouse": Meaning(Division.EXACT, Zero.INFINITE, ToInteger.CUT, TextToInteger.FAILS, like_escape=True),
}
