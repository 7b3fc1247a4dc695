"""A system in a process of its own: ``python -m bench.others.child TASK``.

One sentence: a system takes in a stream of changes from the beginning and leaves its view in files, as often, and
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
from collections.abc import Callable, Sequence
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


def run(task: dict[str, Any]) -> None:
    """Run the systems of a task one after another, their views in turn."""
    for one in task["systems"]:
        try:
            module = importlib.import_module(f"bench.others.{one['module']}")
            with module.system() as take:
                for asked in one["views"]:
                    taken = [
                        asdict(take(asked["view"], Path(stream), _empty(asked["out"], place)))
                        for place, stream in enumerate(asked["streams"])
                    ]
                    found = {"system": one["system"], "view": asked["view"], "taken": taken}
                    print(json.dumps(found), flush=True)
        except Exception as error:
            traceback.print_exc()
            print(json.dumps({"system": one["system"], "failed": f"{type(error).__name__}: {error}"}), flush=True)


def _empty(out: str, place: int) -> Path:
    folder = Path(out) / str(place)
    folder.mkdir(parents=True)
    return folder


def main(arguments: Sequence[str]) -> int:
    run(json.loads(Path(arguments[0]).read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
