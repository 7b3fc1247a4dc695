"""How much address space the files of a store may take.

All files of a store get maps of one size, the largest of 1 TiB, 512 GiB, 256 GiB … that this
process can reserve for all of them and still has room for the rest of its work.

A map reserves addresses, neither memory nor disk. Most systems give 128 TiB of them to a process; some limit them
(``ulimit -v``, ``RLIMIT_AS``), and then DuckDB, Arrow, and every thread's stack need their part too.
"""

from __future__ import annotations

import mmap

MARGIN = 4 << 30
"""What is left for others at least, if the maps take as much."""


def fitting_size(files: int, wanted: int, smallest: int) -> int:
    """The size of each file's map: the one that is wanted, or less if there is not room for all of them."""
    size = wanted
    while size > smallest and not available(files * size + min(files * size, MARGIN)):
        size //= 2
    return max(size, smallest)


def available(size: int) -> bool:
    """Whether this process can map so many more bytes."""
    try:  # only what can be written to counts as memory
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ).close()
    except (OSError, ValueError, OverflowError):
        return False
    return True
