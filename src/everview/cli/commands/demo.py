"""``everview demo``: see it work, and see it survive.

A shop with five views under a live writer, whose pipeline is killed and followed by another;
the command fails if a single row is wrong at the end.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from everview.cli.console import show_error
from everview.cli.demo.ending import Ending, Interrupted
from everview.errors import EverviewError
from everview.scratch import DEMO, Scratch

WRONG = 1
SECONDS = 40.0


def demo(
    path: Annotated[
        Path | None,
        typer.Option(help="A new or empty directory for all of it.", show_default="one for temporary files"),
    ] = None,
    seconds: Annotated[float, typer.Option(min=0, help="How long the shop is open, at least.")] = SECONDS,
    seed: Annotated[int, typer.Option(help="Of what is written.")] = 1,
) -> None:
    """Show five views under a live writer, with a pipeline that is killed.

    Starts a writer and a pipeline on Spark as processes of their own, kills the pipeline in the middle of an
    epoch, starts it again, and compares all views with their recomputation at the end.

    Ends with 0 when every row is right, 1 when one is wrong or something failed. Ctrl-C ends all processes.

    [dim]Example:[/dim] everview demo --seconds 60
    """
    if path is not None and path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise typer.BadParameter(f"{path} is not empty", param_hint="--path")
    own: Scratch | None = None
    if path is None:
        own = Scratch(prefix=DEMO)
        place = own.path
        os.environ["TMPDIR"] = str(place)  # of the processes that are started: they go when it goes
    else:
        place = path.absolute()
        place.mkdir(parents=True, exist_ok=True)
    try:
        with Ending() as ending:
            right = _shown(place, seconds, seed, ending)
        if own is not None:
            own.keep()
    except Interrupted as by:
        if own is not None:
            own.close()
        print(f"ended by {by}: all processes are gone", file=sys.stderr)
        raise typer.Exit(128 + by.number) from None
    except EverviewError as error:
        if own is not None:
            own.keep()
        show_error(error)
        raise typer.Exit(WRONG) from None
    raise typer.Exit(0 if right else WRONG)


def _shown(place: Path, seconds: float, seed: int, ending: Ending) -> bool:
    from everview.cli.demo.outcome import further, summary
    from everview.cli.demo.screen import Screen
    from everview.cli.demo.story import Story

    screen = Screen()
    with screen:
        outcome = Story(place, seconds, seed, screen, ending).play()
    screen.say("")
    for line in summary(outcome):
        screen.say(line)
    if outcome.right:
        screen.say("every row is right", "bold green")
    else:
        screen.say("THIS IS WRONG: please report it, with the directory below", "bold red")
    screen.say("\nGo on from here:")
    for line in further(place):
        screen.say(f"  {line}")
    return outcome.right
