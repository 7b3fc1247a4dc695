"""Which view server owns a key.

One sentence: a view server owns whole parts of the state store where it can, so that two
servers never wait for the same write lock.

A key's token is ``crc32(key)``. A store divides its state into parts that are written
independently of each other (the files of the embedded store: ``token % parts``), so parts
are dealt out first; servers beyond their number share a part, by the rest of the token::

    4 parts, 3 servers     part 0 → 0   1 → 1   2 → 2   3 → 0
    4 parts, 6 servers     part 0 → 0 or 4   1 → 1 or 5   2 → 2   3 → 3

The result depends on the key alone, and the state a server leaves on nothing but the state
and the changes: an epoch may be retried with another number of servers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from everview.errors import DefinitionError
from everview.store.contract import Bytes
from everview.store.tokens import tokens_of

Numbers = npt.NDArray[np.int64]


def owners(keys: Bytes, parts: int, servers: int) -> Numbers:
    """The number of the server that owns each key."""
    if servers < 1:
        raise DefinitionError(f"{servers} view servers cannot maintain anything", hint="use one or more")
    tokens = tokens_of(keys).astype(np.int64)
    part = tokens % parts
    if servers <= parts:
        return part % servers
    sharing = (servers - part + parts - 1) // parts
    return part + parts * (tokens // parts % sharing)
