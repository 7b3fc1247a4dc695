"""``everview tail``: a view's changes as they commit.

Each epoch's rows are printed as it is committed, those that went before those that came, and at
the end stands the token with which to go on.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from everview.cli.console import console
from everview.cli.grid import plain, printable, shown

if TYPE_CHECKING:
    from everview.client.subscriptions import Subscription, ViewChange
    from everview.client.view_handles import ViewHandle

SIGNS = {1: "+", -1: "−"}


def tail(
    path: Annotated[Path, typer.Argument(help="The directory of the store.", show_default=False)],
    view: Annotated[str, typer.Argument(help="The view.", show_default=False)],
    since: Annotated[
        str | None, typer.Option(metavar="TOKEN", help="Go on where another tail ended.", show_default=False)
    ] = None,
    from_now: Annotated[bool, typer.Option("--from-now", help="Without the rows that are there already.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="A JSON object for every row, and one with the token after every epoch.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="End after so many rows.", show_default=False)] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0, help="End when so many seconds bring no epoch.", show_default=False)
    ] = None,
) -> None:
    """Print the rows that come to a view and go from it, epoch by epoch, until Ctrl-C.

    It begins with the rows that are there. The token at the end goes on after the last epoch that was printed
    whole: an epoch that --limit has cut comes again.

    [dim]Example:[/dim] everview tail ./shop totals --from-now --json
    """
    if since is not None and from_now:
        raise typer.BadParameter("choose one of --since and --from-now")
    from everview.client.database import open as open_database

    with open_database(path, create=False) as db:
        changes = _subscribed(db.view(view), since, from_now, timeout)
        printing = Printing(as_json, limit, changes.token if from_now or since is not None else None)
        with _waiting() as wait:
            while not printing.full and (change := wait(lambda: next(changes, None))) is not None:
                printing.print(change)
    printing.end()


def _subscribed(view: ViewHandle, since: str | None, from_now: bool, timeout: float | None) -> Subscription:
    from everview.errors import SnapshotExpiredError

    try:
        return view.subscribe(since, snapshot=since is None and not from_now, timeout=timeout)
    except SnapshotExpiredError as error:
        error.hint = "leave out --since to begin with all rows"
        raise


class Printing:
    """Prints epochs, and knows where to go on."""

    def __init__(self, as_json: bool, limit: int | None, token: str | None) -> None:
        self._as_json = as_json
        self._left = limit
        self._token = token
        self._printed: str | None = None
        """The token that was printed last."""

    @property
    def full(self) -> bool:
        """Whether as many rows are printed as were asked for."""
        return self._left == 0

    def print(self, change: ViewChange) -> None:
        every = change.rows()
        rows = every[: self._left]
        for weight, row in rows:
            if self._as_json:
                values = {name: plain(one) for name, one in row.items()}
                print(json.dumps({"epoch": change.epoch, "weight": weight, "row": values}, ensure_ascii=False))
            else:
                text = ", ".join(f"{name} {'NULL' if one is None else shown(one)}" for name, one in row.items())
                style = "green" if weight > 0 else "red"
                console().print(f"{SIGNS[weight]} {printable(text)}", style=style)
        if self._left is not None:
            self._left -= len(rows)
        if len(rows) == len(every):
            self._token = change.token
            if self._as_json and rows:
                self._print_token()
        sys.stdout.flush()

    def _print_token(self) -> None:
        self._printed = self._token
        print(json.dumps({"token": self._token}), flush=True)

    def end(self) -> None:
        """Say where to go on; where not even the first rows were printed whole, there is nowhere."""
        if self._token is None or self._token == self._printed:
            return
        if self._as_json:
            self._print_token()
        else:
            console(sys.stderr).print(f"go on with --since {self._token}", style="dim")


@contextmanager
def _waiting() -> Iterator[Callable[[Callable[[], ViewChange | None]], ViewChange | None]]:
    """Gives what waits for a change, or for a signal. One that comes while an epoch is printed takes
    effect after it."""
    ended = waits = False

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal ended
        ended = True
        if waits:
            raise KeyboardInterrupt

    def wait(take: Callable[[], ViewChange | None]) -> ViewChange | None:
        nonlocal waits
        waits = True
        try:
            return None if ended else take()
        except KeyboardInterrupt:
            return None
        finally:
            waits = False

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        with suppress(KeyboardInterrupt):
            yield wait
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
