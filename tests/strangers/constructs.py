"""What a query is made of, by the words in it: for counting, not for judging.

Each construct is a pattern over the query's text without comments and quoted texts.
"""

from __future__ import annotations

import re

from tests.strangers.statements import bare

_PATTERNS = {
    "no table": r"^(?!.*\bfrom\b)",
    "filter": r"\bwhere\b",
    "inner join": r"\b(?:inner\s+|[\w\")]\s+)join\b(?<!left join)|,\s*lateral",
    "left join": r"\bleft\s+(?:outer\s+)?join\b",
    "right join": r"\bright\s+(?:outer\s+)?join\b",
    "full join": r"\bfull\s+(?:outer\s+)?join\b",
    "cross join": r"\bcross\s+join\b",
    "natural or using": r"\bnatural\b|\busing\s*\(",
    "semi or anti join": r"\b(?:semi|anti)\s+join\b",
    "as-of join": r"\basof\b",
    "positional join": r"\bpositional\s+join\b",
    "lateral": r"\blateral\b",
    "exists": r"\bexists\s*\(",
    "in (subquery)": r"\bin\s*\(\s*(?:select|with|values|from)\b",
    "any or all (subquery)": r"\b(?:any|all|some)\s*\(\s*(?:select|with|values)\b",
    "scalar subquery": r"(?<!exists)(?<!in)(?<!any)(?<!all)(?<!from)(?<!join)[\s(,=<>+*/-]\(\s*select\b",
    "group by": r"\bgroup\s+by\b",
    "grouping sets": r"\b(?:rollup|cube|grouping\s+sets|grouping)\b",
    "having": r"\bhaving\b",
    "count": r"\bcount\s*\(",
    "sum or avg": r"\b(?:sum|avg)\s*\(",
    "min or max": r"\b(?:min|max)\s*\(",
    "other aggregate": r"\b(?:\w+_agg|stddev\w*|var_\w+|variance|median|mode|quantile\w*|percentile\w*|first|last"
    r"|any_value|arg_\w+|(?:min|max)_by|list|histogram|entropy|bit_\w+|bool_\w+|corr|covar_\w+|regr_\w+|product"
    r"|group_concat|listagg|kurtosis|skewness|mad|approx_\w+)\s*\(",
    "aggregate filter": r"\bfilter\s*\(",
    "distinct": r"\bdistinct\b(?!\s+on\b)(?!\s+from\b)",
    "distinct on": r"\bdistinct\s+on\b",
    "window": r"\bover\s*[(\w]",
    "qualify": r"\bqualify\b",
    "union": r"\bunion\b",
    "intersect or except": r"\b(?:intersect|except)\b(?!\s*\()",
    "with": r"\bwith\b(?!\s+(?:ties|ordinality|time))",
    "with recursive": r"\bwith\s+recursive\b",
    "order by": r"\border\s+by\b",
    "limit": r"\b(?:limit|fetch\s+(?:first|next)|offset)\b",
    "values": r"\bvalues\b",
    "pivot": r"\b(?:un)?pivot\b",
    "unnest": r"\bunnest\s*\(",
    "table function": r"\bfrom\s+(?:range|generate_series|json_each|unnest)\s*\(",
    "case": r"\bcase\b",
    "cast": r"::|\bcast\s*\(|\btry_cast\s*\(",
    "like": r"\b(?:like|ilike|similar|glob|regexp\w*)\b|~",
    "list, struct or map": r"\[|\{|\b(?:struct_pack|row|map)\s*\(|\blist_\w+\s*\(|\barray_\w+\s*\(",
    "date or time": r"\b(?:date|timestamp|timestamptz|interval|time|extract|date_\w+|strftime)\b",
    "json": r"\bjson\w*|->",
    "collate": r"\bcollate\b",
    "columns by pattern": r"\bcolumns\s*\(|\*\s*(?:exclude|replace|rename|like|ilike|glob|similar)\b",
}
CONSTRUCTS = {name: re.compile(pattern, re.DOTALL) for name, pattern in _PATTERNS.items()}


def constructs(query: str) -> list[str]:
    """The names of what occurs in a query."""
    words = bare(query)
    return [name for name, pattern in CONSTRUCTS.items() if pattern.search(words)]
