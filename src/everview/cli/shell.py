"""The shell of ``everview sql``.

Lines are gathered until a statement ends with a semicolon, and each statement is executed,
shown and timed before the next prompt.

    shop> SELECT customer, total
       -> FROM totals WHERE total > 100;

     customer   total
    ──────────────────
            7  120.50

    1 row, 3.4 ms

Editing, history and completion are those of readline, which Python brings along.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType, ModuleType

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

import everview
from everview.catalog import IndexDefinition
from everview.cli.completion import Known, candidates, written
from everview.cli.console import console, counted, show_error
from everview.cli.grid import draw
from everview.cli.history import History, history_file
from everview.client.database import Database
from everview.client.result import Result
from everview.client.system_tables import COLUMNS
from everview.errors import EverviewError
from everview.sql.dialects import DEFAULT, reader
from everview.sql.parse import parse
from everview.sql.statements import SetDialect
from everview.store.contract import Table

HELP = """\
SELECT …;        a statement ends with a semicolon, and may have several lines
\\d               tables, views and indexes
\\d NAME          the columns of a table or view, and the statement that makes it
\\dv              views, with their groups and states
\\timing          say how long statements take, or do not
\\?               this
\\q               leave; so does Ctrl-D

Ctrl-C gives up the statement that is typed, or the one that is executed. Tab completes names."""

_DELIMITERS = " \t\n()=<>,;+-*/%!|&'[]{}:"


class Shell:
    """Statements from a terminal, one after another."""

    def __init__(self, db: Database, place: Path, *, dialect: str | None = None, fresh: bool = False) -> None:
        self._db = db
        self._name = place.resolve().name
        self._dialect = dialect or DEFAULT
        self._fresh = fresh
        self._timing = True
        self._out = console()
        self._typed: list[str] = []
        """The lines of the statement that is being typed."""
        self._offered: list[str] = []

    # -------------------------------------------------------------- reading lines

    def run(self) -> None:
        """Until Ctrl-D or \\q."""
        definitions = self._db.catalog.definitions()
        there = f"{counted(len(definitions.tables()), 'table')}, {counted(len(definitions.views()), 'view')}"
        self._out.print(f"everview {everview.__version__}, {self._name}: {there}; \\? for help")
        with self._remembering() as remember:
            while True:
                with contextlib.suppress(KeyboardInterrupt):  # one that comes between two steps
                    entered = self._entered()
                    if entered is None or entered == "\\q":
                        return
                    remember(entered)
                    self._guarded(self._command if entered.startswith("\\") else self._execute, entered)

    def _entered(self) -> str | None:
        """The next statement, with its semicolon, or command; None: there is none."""
        self._typed = []
        while True:
            prompt = f"{self._name}> " if not self._typed else "-> ".rjust(len(self._name) + 2)
            try:
                line = input(prompt)
            except KeyboardInterrupt:
                print()
                self._typed = []
                continue
            except EOFError:
                print()
                return None
            if not self._typed and line.lstrip().startswith("\\"):
                return line.strip()
            self._typed.append(line)
            text = "\n".join(self._typed)
            if not text.strip():
                self._typed = []
            elif self._ends(text):
                return text

    def _ends(self, text: str) -> bool:
        """Whether the last statement of a text is complete."""
        try:
            tokens = reader(self._dialect).tokens(text)
        except TokenError as error:
            return "Missing" not in str(error.__cause__ or error) and text.rstrip().endswith(";")
        return bool(tokens) and tokens[-1].token_type == TokenType.SEMICOLON

    # -------------------------------------------------------------- executing

    def _guarded(self, action: Callable[[str], None], entered: str) -> None:
        """Errors are printed, and Ctrl-C cancels."""
        interrupted = False

        def interrupt(number: int, frame: FrameType | None) -> None:
            nonlocal interrupted
            interrupted = True
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGINT, interrupt)
        try:
            action(entered)
        except (Exception, KeyboardInterrupt) as error:
            # A Ctrl-C inside a scan comes back from DuckDB as an error of its own.
            if interrupted:
                console(sys.stderr).print("given up: a statement takes effect as a whole, or not at all", style="red")
            elif isinstance(error, EverviewError):
                show_error(error)
            else:
                raise
        finally:
            signal.signal(signal.SIGINT, before)

    def _execute(self, text: str) -> None:
        for statement in parse(text, self._dialect):
            began = time.perf_counter()
            with self._db.sql(statement.text, dialect=self._dialect, fresh=self._fresh) as result:
                if isinstance(statement, SetDialect):
                    self._dialect = statement.dialect
                self._show(result, began)

    def _show(self, result: Result, began: float) -> None:
        said = []
        if result.columns:
            drawn = draw(result, sys.stdout, self._out.width)
            count = counted(drawn.rows, "row")
            said.append(f"the first {count}, there are more" if drawn.more else count)
            if missing := drawn.missing():
                said.append(missing)
        else:
            said.append("done")
        if self._timing:
            said.append(_time(time.perf_counter() - began))
        for notice in result.notices:
            self._out.print(notice, style="yellow")
        self._out.print("; ".join(said), style="dim")

    # -------------------------------------------------------------- commands

    def _command(self, entered: str) -> None:
        name, *words = entered.split(maxsplit=1)
        asked = words[0].rstrip("; ") if words else ""
        if name == "\\d" and asked:
            self._describe(asked)
        elif name == "\\d" or (name == "\\dv" and not asked):
            for what in ("TABLES", "VIEWS", "INDEXES") if name == "\\d" else ("VIEWS",):
                result = self._db.sql(f"SHOW {what}", dialect=DEFAULT)
                self._out.print(what.lower(), style="bold")
                self._show(result, time.perf_counter())
        elif name == "\\timing" and not asked:
            self._timing = not self._timing
            self._out.print(f"timing is {'on' if self._timing else 'off'}")
        elif name == "\\?" and not asked:
            self._out.print(HELP)
        else:
            console(sys.stderr).print(f"error: there is no command {entered}; \\? lists them", style="red")

    def _describe(self, asked: str) -> None:
        found = self._db.catalog.definitions().find(asked.strip('"'))
        quoted = written(asked if found is None else found.name)
        began = time.perf_counter()
        if not isinstance(found, IndexDefinition):
            self._show(self._db.sql(f"DESCRIBE {quoted}", dialect=DEFAULT), began)
        self._out.print(self._db.sql(f"SHOW CREATE {quoted}", dialect=DEFAULT).rows()[0][0])

    # -------------------------------------------------------------- readline

    @contextlib.contextmanager
    def _remembering(self) -> Iterator[Callable[[str], None]]:
        """History and completion, where Python was built with readline; gives what remembers an entry."""
        try:
            import readline
        except ImportError:
            yield lambda entered: None
            return
        self._complete(readline)
        history = None
        with contextlib.suppress(OSError):
            history = History(readline, history_file())
        try:
            yield lambda entered: None if history is None else history.add(self._lines(entered))
        finally:
            readline.set_completer(None)
            if history is not None:
                try:
                    history.save()
                except OSError as error:
                    console(sys.stderr).print(f"the history is not kept: {error}", style="dim")

    def _lines(self, entered: str) -> Sequence[str]:
        """An entry in one line where that means the same, else in its own."""
        lines = entered.split("\n")
        joined = " ".join(line.strip() for line in lines)
        if len(lines) == 1:
            return lines
        try:
            tokens = reader(self._dialect).tokens
            same = [one.text for one in tokens(entered)] == [one.text for one in tokens(joined)]
        except TokenError:
            return lines
        return [joined] if same else lines

    def _complete(self, readline: ModuleType) -> None:
        def offered(word: str, at: int) -> str | None:
            if at == 0:
                line = readline.get_line_buffer()
                typed = "\n".join([*self._typed, line[: readline.get_endidx()]])
                self._offered = candidates(typed, word, self._known(), typed + line[readline.get_endidx() :])
            return self._offered[at] if at < len(self._offered) else None

        readline.set_completer(offered)
        readline.set_completer_delims(_DELIMITERS)
        edits = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if edits else "tab: complete")

    def _known(self) -> Known:
        definitions = self._db.catalog.definitions()
        found = {
            one.name: tuple(column.name for column in (one.schema.shown if isinstance(one, Table) else one.columns))
            for one in (*definitions.tables(), *definitions.derived())
            if not isinstance(one, IndexDefinition)
        }
        found |= {f"everview.{name}": tuple(columns) for name, columns in COLUMNS.items()}
        return Known(found, tuple(index.name for index in definitions.indexes()))


def _time(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
