"""Bytes that come from a file or from standard input.

What cannot be opened or read is told by its name, and how far one is is known where it can be.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from everview.cli.files import STREAM
from everview.errors import InputError


class ByteStream:
    """The bytes of a file, read from the beginning to the end once."""

    def __init__(self, file: str) -> None:
        self.name = "standard input" if file == STREAM else file
        self.size: int | None = None
        self.raw: IO[bytes]
        try:
            if file == STREAM:
                self.raw = sys.stdin.buffer
            else:
                self.raw = io.BufferedReader(io.FileIO(file))
                self.size = Path(file).stat().st_size
        except OSError as error:
            raise InputError(f"{self.name} cannot be read", detail=error.strerror) from None

    @contextmanager
    def closed_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()
            raise

    def done(self) -> int:
        return 0 if self.size is None or self.raw.closed else self.raw.tell()

    def close(self) -> None:
        if self.size is not None:
            self.raw.close()
