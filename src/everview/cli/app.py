"""The ``everview`` command.

The commands are the functions of the list below, and everything a command needs is
imported when it is called, so that ``--help`` is there at once.
"""

from __future__ import annotations

import errno
import sys
import traceback
from collections.abc import Callable
from typing import Annotated

import typer

import everview
from everview.cli.commands.backup import backup
from everview.cli.commands.bench import bench
from everview.cli.commands.check import check
from everview.cli.commands.demo import demo
from everview.cli.commands.dump import dump
from everview.cli.commands.explain import explain
from everview.cli.commands.init import init
from everview.cli.commands.load import load
from everview.cli.commands.rebuild import rebuild
from everview.cli.commands.run import run
from everview.cli.commands.sql import sql
from everview.cli.commands.status import status
from everview.cli.commands.tail import tail
from everview.cli.commands.verify import verify
from everview.cli.console import show_error
from everview.cli.standard_streams import fill_closed_streams, flush_output
from everview.errors import EverviewError, InputError, InternalError

FAILED = 1

COMMANDS: tuple[Callable[..., None], ...] = (
    init,
    run,
    status,
    sql,
    tail,
    explain,
    backup,
    check,
    verify,
    rebuild,
    load,
    dump,
    demo,
    bench,
)
"""In the order in which ``--help`` lists them."""

app = typer.Typer(
    name="everview",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in COMMANDS:
    app.command()(command)


def _version(asked: bool) -> None:
    if asked:
        print(f"everview {everview.__version__}")
        raise typer.Exit


@app.callback()
def everything(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which version this is, and end.")
    ] = False,
) -> None:
    """SQL views of key-value tables, kept up to date."""


def main() -> None:
    """The entry point: errors are printed in a few lines."""
    fill_closed_streams()
    code = _called()
    failure = flush_output()
    if failure is not None and code == 0:
        if failure.errno != errno.EPIPE:  # the reader has closed it
            show_error(_unprinted(failure))
        code = FAILED
    sys.exit(code)


def _called() -> int | str | None:
    try:
        app(prog_name="everview")
    except SystemExit as ended:
        return 0 if ended.code is None else ended.code
    except EverviewError as error:
        show_error(error)
    except OSError as error:
        show_error(_unprinted(error))
    except Exception as error:
        traceback.print_exc()
        show_error(InternalError.of(error))
    return FAILED


def _unprinted(error: OSError) -> EverviewError:
    """What the operating system refused: files that are named were opened by a command, else it was printing."""
    what = "standard output" if error.filename is None else str(error.filename)
    return InputError(f"{what} cannot be used", detail=error.strerror or str(error))
