"""What a killed maintainer was doing: flushing again and again, in small pieces, while others write.

Every call that changes the store is a moment, before and after which the process may
die; a victim that is given a number dies at that moment, one without a number is killed from outside.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import everview
from everview.maintain.epoch_sizes import EpochSizes
from everview.maintain.maintainer import Maintainer
from everview.maintain.trimming import Trimmer
from everview.store.embedded.logs import EmbeddedLog
from everview.store.embedded.metadata import EmbeddedMetadata
from everview.store.embedded.views import EmbeddedViews

if TYPE_CHECKING:
    from tests.faults.victims import Arguments, Reports

MOMENTS: tuple[tuple[type, str], ...] = (
    (EmbeddedViews, "begin"),
    (EmbeddedViews, "write"),
    (EmbeddedViews, "write_bags"),
    (EmbeddedViews, "add_to_bags"),
    (EmbeddedViews, "commit"),
    (EmbeddedViews, "sweep"),
    (EmbeddedViews, "drop"),
    (EmbeddedViews, "drop_bags"),
    (EmbeddedMetadata, "commit"),
    (EmbeddedLog, "trim"),
)
"""Calls that change the store: epochs, state, the documents of builds, joinings and the catalog, and the logs."""


class Doom:
    """Kills this process at the moment with a number."""

    def __init__(self, moment: int) -> None:
        self.moment = moment
        self.passed = 0

    def near(self) -> None:
        self.passed += 1
        if self.passed == self.moment:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **named: Any) -> Any:
            self.near()
            result = method(*arguments, **named)
            self.near()
            return result

        return called


def maintain(reports: Reports, arguments: Arguments) -> None:
    """Build and catch up until all is done (``moment``: die there), or for ever."""
    doom = Doom(arguments["moment"])
    for owner, name in MOMENTS:
        setattr(owner, name, doom.around(getattr(owner, name)))
    db = everview.open(Path(arguments["directory"]), durability="none", create=False)
    maintainer = Maintainer(db.store, db.catalog, EpochSizes(arguments["operations"]), arguments["chunk"])
    maintainer.trimmer = Trimmer(db.store, db.catalog, every=0)
    reports.send("open")
    with maintainer.lease():
        reports.send("leased")
        while True:
            maintainer.catch_up()
            if arguments["moment"]:
                return
            reports.try_send("flushed")
