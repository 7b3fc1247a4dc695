"""A driver that dies: ``python -m tests.zones.victim <store> <checkpoint> <moment>``.

It maintains the views and kills itself, with no chance to clean up, in its second epoch.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from everview.store.embedded.views import EmbeddedViews
from everview.zones.epoch import SparkEpochs
from everview.zones.pipeline import Pipeline
from everview.zones.session import new_session

OPERATIONS = 150


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dying(method: Callable[..., Any], *, after: bool) -> Callable[..., Any]:
    """The method, with a death before or after its second call."""
    calls = 0

    def called(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2 and not after:
            die()
        result = method(*arguments)
        if calls == 2:
            die()
        return result

    return called


MOMENTS = {
    "begun": lambda: setattr(SparkEpochs, "over", dying(SparkEpochs.over, after=False)),
    "written": lambda: setattr(EmbeddedViews, "commit", dying(EmbeddedViews.commit, after=False)),
    "committed": lambda: setattr(EmbeddedViews, "commit", dying(EmbeddedViews.commit, after=True)),
}


def main(store: str, checkpoint: str, moment: str) -> None:
    MOMENTS[moment]()
    Pipeline(store, spark=new_session(), operations=OPERATIONS, checkpoint=checkpoint).catch_up()


if __name__ == "__main__":
    main(*sys.argv[1:])
