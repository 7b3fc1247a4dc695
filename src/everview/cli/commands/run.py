"""``everview run``: maintain a store as a service.

It maintains the views until it receives a signal, and then ends between two epochs.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from everview.cli.console import console

if TYPE_CHECKING:
    from everview.zones.events import Event
    from everview.zones.service import Service

FAILED = 1
TAKEN = os.EX_TEMPFAIL
"""75: another process maintains the store."""
SERVERS = 2
SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run(
    path: Annotated[Path, typer.Argument(help="The directory of the store.", show_default=False)],
    master: Annotated[
        str | None,
        typer.Option(help="Where Spark runs: spark://host:7077, sc://host:15002.", show_default="two cores here"),
    ] = None,
    servers: Annotated[
        int | None, typer.Option(min=1, help="How many view servers there are on Spark.", show_default="2")
    ] = None,
    operations: Annotated[
        int | None,
        typer.Option(min=1, help="The most log entries of an epoch.", show_default="1000000"),
    ] = None,
    in_driver: Annotated[
        int | None,
        typer.Option(
            "--in-driver",
            min=0,
            help="The most log entries of an epoch that is done in this process. 0: all on Spark, once it has started.",
            show_default="those done here sooner than on Spark",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="A directory for Spark's checkpoint.", show_default="one that is removed at the end"),
    ] = None,
    wait: Annotated[
        str,
        typer.Option(
            metavar="SECONDS|forever", help="How long to wait for the current maintainer to end, before taking over."
        ),
    ] = "0",
    local: Annotated[bool, typer.Option("--local", help="Without Spark, in this process.")] = False,
    once: Annotated[bool, typer.Option("--once", help="End when the views reflect all earlier writes.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON for every event and every epoch.")] = False,
) -> None:
    """Keep the views of a store up to date, until SIGTERM or Ctrl-C.

    The epoch under way is finished then; a second signal ends the command at once, and the next maintainer finishes
    the epoch.

    Ends with 0 after a signal, 1 when it failed, 2 when the command is wrong, 75 when another process maintains the
    store.

    [dim]Example:[/dim] everview run ./shop --servers 4 --wait forever
    """
    patience = _patience(wait)
    if local:
        for name, given in (
            ("--master", master),
            ("--servers", servers),
            ("--in-driver", in_driver),
            ("--checkpoint", checkpoint),
        ):
            if given is not None:
                raise typer.BadParameter(f"{name} is for Spark, and --local does without")
    from everview.zones.service import Ended, Service

    service = Service(
        path,
        _print_record if as_json else _print_event,
        local=local,
        master=master,
        servers=servers or SERVERS,
        operations=operations,
        in_driver=in_driver,
        checkpoint=checkpoint,
        wait=patience,
        once=once,
    )
    with _ended_by_signals(service):
        ended = service.run()
    raise typer.Exit({Ended.CLEAN: 0, Ended.FAILED: FAILED, Ended.TAKEN: TAKEN}[ended])


def _patience(text: str) -> float | None:
    if text == "forever":
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise typer.BadParameter(f"{text} is neither a number of seconds nor forever", param_hint="--wait")
    return seconds


def _print_event(event: Event) -> None:
    out = console(sys.stderr if event.wrong else sys.stdout)
    out.print(f"{time.strftime('%H:%M:%S')}  {event.text}", style="red" if event.wrong else None)
    out.file.flush()


def _print_record(event: Event) -> None:
    now = round(time.time(), 3)
    for record in event.records:
        print(json.dumps({"time": now, "event": event.name, **record}), flush=True)


@contextmanager
def _ended_by_signals(service: Service) -> Iterator[None]:
    """The first signal ends it after the epoch under way, the second one at once."""

    def ended(number: int, frame: FrameType | None) -> None:
        if service.stopping:
            os.write(2, b"ended at once: the next maintainer finishes the epoch under way\n")
            os._exit(128 + number)
        service.stop(signal.Signals(number).name)

    before: dict[int, Callable[[int, FrameType | None], object] | int | None] = {
        number: signal.signal(number, ended) for number in SIGNALS
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
