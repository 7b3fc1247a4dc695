"""Where the time goes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator


class Clock:
    """Seconds by the name of what they were spent on."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
