"""Names of the columns that Everview adds to a table's own: in log entries and in changes."""

from __future__ import annotations

WEIGHT = "__weight"
"""How often a row appears (+) or disappears (−), int64."""

SEQ = "__seq"
INCARNATION = "__incarnation"
KIND = "__kind"
KEY = "__key"
HAD = "__had"
"""Whether a row was there before the write."""
OLD = "__old_"
"""Prefix of the columns of the before-image."""
SET = "__set_"
"""Prefix of the columns that record whether a put named a column."""

TIME = "__time"
"""When an entry was written, int64: larger is later. The store chooses the unit."""
TIMES = "__time_"
"""Prefix of the columns with the time at which each column of an entry was written."""
MARKED = "__marked"
"""The time at which an entry recorded that the row exists, whatever its columns hold."""
GONE = "__gone"
"""The time at which an entry deleted the row: all that was written then or before."""

PUT = 1
DELETE = 2
"""Values of the kind column."""
