"""A system in a process of its own: ``python -m bench.others.child TASK``.

A system takes in a stream of changes from the beginning and leaves its view in files, as often, and
with streams as long, as the task says.

A system is a module of this folder with ::

    @contextmanager
    def system() -> Iterator[Take]: …             # whatever lives longer than a run: a session, a server

    def take(view, stream, out) -> Taken: …       # a view from nothing to the end of the stream

The task is a file of JSON, and each view's outcome is a line of JSON on standard output. This file and those of
systems with an environment of their own import nothing of ours but :mod:`bench.others.views`.
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Taken:
    """A run over a stream."""

    seconds: float
    """From the first operation to the last one's effect on the view. Where the base tables are written in the
    same step, that is in it."""
    base: float | None = None
    """Of writing the operations to base tables, where there are any."""
    together: bool = False
    """Whether ``seconds`` has ``base`` in it."""
    profile: dict[str, float] = field(default_factory=dict)


Take = Callable[[str, Path, Path], Taken]


def outcomes(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Run the systems of a task one after another, their views in turn. A failure is
    reported, and the next one is still measured."""
    for one in task["systems"]:
        waiting = list(one["views"])
        try:
            module = importlib.import_module(f"bench.others.{one['module']}")
            with module.system() as take:
                while waiting:
                    asked = waiting.pop(0)
                    yield {"system": one["system"], "view": asked["view"], **_attempt(take, asked)}
        except Exception as error:
            for asked in waiting:
                yield {"system": one["system"], "view": asked["view"], **_failure(error)}


def _attempt(take: Take, asked: dict[str, Any]) -> dict[str, Any]:
    """A view over all of its streams."""
    try:
        taken = [
            asdict(take(asked["view"], Path(stream), _empty(asked["out"], place)))
            for place, stream in enumerate(asked["streams"])
        ]
    except Exception as error:
        return _failure(error)
    return {"taken": taken}


def _failure(error: Exception) -> dict[str, Any]:
    traceback.print_exception(error)
    words = (str(error).splitlines() or [""])[0]
    return {"failed": f"{type(error).__name__}: {words[:200]}"}


def _empty(out: str, place: int) -> Path:
    folder = Path(out) / str(place)
    folder.mkdir(parents=True)
    return folder


def main(arguments: Sequence[str]) -> int:
    for found in outcomes(json.loads(Path(arguments[0]).read_text())):
        print(json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
