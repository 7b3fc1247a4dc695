"""Bytes that come from a file or from standard input.

A file that cannot be opened is reported by its name, a compressed one is decompressed, and the
position is known for every file.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from everview.cli.files import STREAM, compression_of
from everview.errors import InputError


class ByteStream:
    """The bytes of a file, read from the beginning to the end once."""

    def __init__(self, file: str) -> None:
        self.name = "standard input" if file == STREAM else file
        self.size: int | None = None
        self.raw: IO[bytes]
        with self.reading():
            if file == STREAM:
                self.raw = self._file = sys.stdin.buffer
            else:
                self._file = io.BufferedReader(io.FileIO(file))
                self.size = Path(file).stat().st_size
                self.raw = _decompressed(self._file, compression_of(file))

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Report bytes that cannot be read, or decompressed, by the name of the file."""
        try:
            yield
        except OSError as error:
            raise InputError(f"{self.name} cannot be read", detail=error.strerror or str(error)) from None

    def lines(self) -> Iterator[bytes]:
        with self.reading():
            yield from self.raw

    def done(self) -> int:
        return 0 if self.size is None or self._file.closed else self._file.tell()

    def close(self) -> None:
        if self.size is not None:
            self._file.close()


def _decompressed(file: io.BufferedReader, compression: str | None) -> IO[bytes]:
    if compression is None:
        return file
    import pyarrow as pa

    return io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(file, "r"), compression))
