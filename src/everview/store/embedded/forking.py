"""What a forked child does with the LMDB files of its parent.

The child's view of the table of readers becomes a copy of its own, so that nothing it does
there, not even the destructor of a transaction, reaches the parent; and it may open the same files itself.

LMDB keeps that table in shared memory, the map of ``….mdb-lock``. A transaction that is destroyed frees its
slot there, whichever process destroys it. A child inherits every transaction that the parent has open, in
snapshots, in scans that are under way, in the pins of its durable point, and destroys them when it ends or
collects garbage: the parent would lose its slots, and with them the pages it reads.

A file must be open once per process only, since its locks belong to the process and go when any of its
descriptors is closed. The child has no locks of its parent's, and its inherited descriptors are never closed: it may
open the file as any other process may. The lmdb package would refuse that, by a set of open files that a fork copies.
"""

from __future__ import annotations

import ctypes
import importlib
import mmap
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

_MAP_FIXED = 0x10


def detach_reader_tables(files: Iterable[Path]) -> None:
    """Replace this process's maps of the files' tables of readers by copies at the same place."""
    tables = {os.fsencode(path).replace(b"\n", b"\\012") + b"-lock" for path in files}
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    for start, size in list(_maps_of(tables)):
        content = ctypes.string_at(start, size)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED
        if libc.mmap(start, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0) == start:
            ctypes.memmove(start, content, size)


def forget_open_files() -> None:
    """Let this process open the files that its parent had open: what the lmdb package knows an open file
    by gets the number of the process that opens it. A version that knows them otherwise goes on refusing them."""
    try:
        known = importlib.import_module("lmdb._envid")
        identity = known.env_keys
    except (ImportError, AttributeError):
        return

    def identity_here(path: object, subdir: object) -> tuple[object, ...]:
        return tuple((os.getpid(), key) for key in identity(path, subdir))

    known.env_keys = identity_here  # type: ignore[attr-defined]


def _maps_of(tables: set[bytes]) -> Iterator[tuple[int, int]]:
    """Where this process has mapped these files: address and size."""
    for line in Path("/proc/self/maps").read_bytes().splitlines():
        # such as: 7f0c8e433000-7f0c8e454000 rw-s 00000000 fe:01 131342    /var/lib/shop/base.mdb-lock
        words = line.split(maxsplit=5)
        if len(words) == 6 and words[5].removesuffix(b" (deleted)") in tables:
            start, end = (int(address, 16) for address in words[0].split(b"-"))
            yield start, end - start
