"""Names of the columns that Everview adds to a table's own: in log entries and in changes."""

from __future__ import annotations

WEIGHT = "__weight"
"""How often a row comes (+) or goes (−), int64."""

SEQ = "__seq"
INCARNATION = "__incarnation"
KIND = "__kind"
KEY = "__key"
HAD = "__had"
"""Whether a row was there before the write."""
OLD = "__old_"
"""Prefix of the columns of the before-image."""
SET = "__set_"
"""Prefix of the columns that say whether a put named a column."""

TIME = "__time"
"""When an entry was written, int64: larger is later. What unit it has is the store's affair."""
TIMES = "__time_"
"""Prefix of the columns that say when each column of an entry was written."""
MARKED = "__marked"
"""When an entry said that the row is there, whatever its columns hold."""
GONE = "__gone"
"""When an entry deleted the row: all that was written then or before."""

PUT = 1
DELETE = 2
"""Values of the kind column."""
