"""Values as JSON has them.

What JSON has is itself, and exact numbers, times and bytes are text.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Mapping
from decimal import Decimal


def plain(value: object) -> object:
    """A value as JSON has it: exact numbers, times and bytes as text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {_key(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return str(value)


def _key(value: object) -> str:
    """A key of a map as text."""
    found = plain(value)
    return found if isinstance(found, str) else json.dumps(found)
