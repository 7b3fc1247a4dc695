"""A backup: a copy of a store that is itself a store.

A backup is a durable point (durability.py) whose files lie in another directory.

A cut is pinned, so that no writer reuses one of its pages, and every file is copied like any other file: pages
of the cut are copied as they are, other pages in any state, since nothing leads to them. Then the saved meta
pages are written into the copies, as they are after a power loss, and everything after the cut is gone. Writers
and maintainers go on meanwhile, and LMDB reads nothing for it, so their maps may grow.

::

    .everview-backup-3f…     made next to the place of the backup
        .owner               locked by its process, and the last to be removed
        base.mdb …           copied; meta page of the cut, stamp of the backup
        durable              the durable point of the cut
        lock                 empty
        everview.json        from here on it is a store
    shop-1                   renamed to

A process may be killed at any of these steps: the place of the backup has a whole store or nothing, and the next backup
in the same directory removes what is left (:mod:`everview.scratch`). The stamp is
new, so that files of the store and of its backup that get mixed up are recognized when they are opened
(identity.py).
"""

from __future__ import annotations

import os
from pathlib import Path

from everview.boundary import translated
from everview.errors import InputError
from everview.scratch import BACKUP, Scratch
from everview.store.embedded import layout
from everview.store.embedded.core import Core
from everview.store.embedded.durability import boot_id
from everview.store.embedded.identity import problems, write_stamp
from everview.store.embedded.meta_pages import parse_meta, restore
from everview.store.embedded.points import NO_STAMP, TAG, Point, Stamp, read_point, write_point


def back_up(core: Core, target: Path) -> int:
    """Copy the store to a place where nothing is, and return the number of bytes."""
    target = _free_place(core.directory, target)
    try:
        partial = Scratch(target.parent, BACKUP)
        try:
            size = _fill(core, partial.path)
            partial.keep_as(target)
        except BaseException:
            partial.close()
            raise
        layout.sync_directory(target.parent)
    except OSError as error:
        raise translated(error, target) from error
    return size


def _free_place(directory: Path, target: Path) -> Path:
    target = target.absolute()
    place = target.parent.resolve() / target.name
    if os.path.lexists(place):
        raise InputError(
            f"{target} is there already",
            detail="a backup overwrites nothing",
            hint="give a name that does not exist yet, such as one with the date",
        )
    if place.is_relative_to(directory):
        raise InputError(f"{target} is inside the store", hint="back up to another directory, best on another disk")
    return place


def _fill(core: Core, folder: Path) -> int:
    """Make the copy, durable and declared a store."""
    last = read_point(core.directory)
    number = last.number + 1 if last else 1
    stamp = Stamp(number, os.urandom(TAG))
    sizes: dict[str, int] = {}
    with core.durability.pinned() as metas:
        for environment in core.environments:
            name = environment.path.name
            meta = parse_meta(metas[name][1])
            assert meta is not None
            sizes[name] = _copy(environment.descriptor, folder / name, meta.end)
    for name, (transaction, raw) in metas.items():
        with (folder / name).open("r+b", buffering=0) as file:
            write_stamp(file.fileno(), stamp)
        restore(folder / name, transaction, raw)
    point = Point(number, boot_id(), metas, sizes, core.marker.id, dict.fromkeys(metas, (stamp, NO_STAMP)))
    write_point(folder, point)
    (folder / layout.LOCK).touch(mode=0o600)
    for problem in problems(folder, core.marker, point, rebooted=True):
        raise problem
    layout.write_marker(folder, core.marker)
    return sum(sizes.values())


def _copy(source: int, path: Path, most: int) -> int:
    """Copy a file up to so many bytes, or to its end, and return how many these were."""
    with open(path, "xb", buffering=0, opener=layout.private) as file:
        done = 0
        while done < most:
            copied = os.sendfile(file.fileno(), source, done, most - done)
            if not copied:
                break
            done += copied
    return done
