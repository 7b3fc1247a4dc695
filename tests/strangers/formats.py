"""Test files of other projects, read as the statements in them.

A reader takes a repository and a path and gives the file's statements in their order, queries and
definitions alike, without the answers that stand beside them.
"""

from __future__ import annotations

import ast
import itertools
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator

from tests.strangers.repositories import Repository
from tests.strangers.statements import closing, first_word, is_query, pieces, split

Reader = Callable[[Repository, str], Iterator[str]]

ITERATIONS = 3
"""How often the body of a loop is read."""
COPIED = 60
"""How many rows of a data file are taken."""

_TYPES = {
    "<signed>": ("tinyint", "smallint", "integer", "bigint", "hugeint"),
    "<unsigned>": ("utinyint", "usmallint", "uinteger", "ubigint", "uhugeint"),
    "<integral>": ("integer", "bigint", "utinyint", "hugeint"),
    "<numeric>": ("integer", "double", "float", "hugeint"),
    "<alltypes>": ("integer", "varchar", "double", "date"),
    "<compression>": ("uncompressed",),
}


# ---------------------------------------------------------------- sqllogictest


def sqllogictest(repository: Repository, path: str) -> Iterator[str]:
    """``statement ok`` and ``query …`` blocks, loops and includes; what is expected to fail is left out."""
    yield from _blocks(repository, path, repository.read(path).splitlines(), depth=0)


def _blocks(repository: Repository, path: str, lines: list[str], depth: int) -> Iterator[str]:
    at = 0
    while at < len(lines):
        words = lines[at].split()
        at += 1
        if not words or words[0].startswith("#"):
            continue
        if words[0] in ("loop", "foreach", "concurrentloop", "concurrentforeach"):
            end = _end_of_loop(lines, at)
            yield from _repeated(repository, path, words, lines[at:end], depth)
            at = end + 1
        elif words[0] == "include" and len(words) > 1 and depth < 3:
            pattern = re.escape(posixpath.normpath(posixpath.join(posixpath.dirname(path), words[1])))
            for included in repository.files(pattern.replace(r"\*", "[^/]*")):
                yield from _blocks(repository, included, repository.read(included).splitlines(), depth + 1)
        elif words[0] in ("statement", "query"):
            end = at
            while end < len(lines) and lines[end].strip() and lines[end].strip() != "----":
                end += 1
            if len(words) < 2 or words[1] not in ("error", "maybe"):
                yield from split("\n".join(lines[at:end]))
            at = end
        elif words[0] == "halt":
            return


def _end_of_loop(lines: list[str], at: int) -> int:
    depth = 1
    for number in range(at, len(lines)):
        words = lines[number].split()
        if words and words[0] in ("loop", "foreach", "concurrentloop", "concurrentforeach"):
            depth += 1
        elif words and words[0] == "endloop":
            depth -= 1
            if not depth:
                return number
    return len(lines)


def _repeated(repository: Repository, path: str, words: list[str], body: list[str], depth: int) -> Iterator[str]:
    if len(words) < 3:
        return
    if words[0].endswith("foreach"):
        values = list(itertools.chain.from_iterable(_TYPES.get(word, (word,)) for word in words[2:]))
    else:
        values = words[2:3] if not words[2].isdigit() else [str(int(words[2]) + number) for number in range(ITERATIONS)]
    for value in values[:ITERATIONS]:
        yield from _blocks(repository, path, [line.replace(f"${{{words[1]}}}", value) for line in body], depth)


# ---------------------------------------------------------------- testdrive


def testdrive(repository: Repository, path: str) -> Iterator[str]:
    """Commands behind ``>``, which go on in indented lines; their answers are not indented."""
    held: list[str] = []
    for line in [*repository.read(path).splitlines(), ""]:
        if held and line.startswith((" ", "\t")):
            held.append(line)
            continue
        if held:
            yield from split("\n".join(held))
        held = [line[1:]] if line.startswith(">") else []


# ---------------------------------------------------------------- scripts of psql


def psql(repository: Repository, path: str) -> Iterator[str]:
    """A script of psql, after the script that sets up what all of them use."""
    setup = posixpath.join(posixpath.dirname(path), "test_setup.sql")
    if path != setup and repository.files(re.escape(setup)):
        yield from (text for text in _psql(repository, setup) if not is_query(text))
    yield from _psql(repository, path)


def _psql(repository: Repository, path: str) -> Iterator[str]:
    lines: list[str] = []
    data = ""
    copying = ""
    copied: list[str] = []
    for line in repository.read(path).splitlines():
        if copying:
            if line == r"\.":
                yield from _copied(copying, copied)
                copying, copied = "", []
            else:
                copied.append(line)
        elif found := re.match(r"\\set filename :abs_srcdir '/(data/[\w.]+)'", line):
            data = posixpath.join(posixpath.dirname(posixpath.dirname(path)), found[1])
        elif found := re.match(r"COPY (\w+) FROM :'filename'", line):
            if data in repository.sizes:
                yield from split("\n".join(lines))
                lines = []
                yield from _copied(found[1], repository.read(data).splitlines()[:COPIED])
        elif found := re.match(r"copy (\w+)\s*(\([^)]*\))? from stdin;?\s*$", line, re.IGNORECASE):
            yield from split("\n".join(lines))
            lines = []
            copying = f"{found[1]} {found[2] or ''}"
        elif not line.startswith("\\"):
            lines.append(re.sub(r"\\g\w*.*$", ";", line) if "\\g" in line else line)
    yield from split("\n".join(lines))


def _copied(table: str, lines: Iterable[str]) -> Iterator[str]:
    rows = []
    for line in itertools.islice(lines, COPIED):
        cells = ("NULL" if cell == r"\N" else "'" + cell.replace("'", "''") + "'" for cell in line.split("\t"))
        rows.append(f"({', '.join(cells)})")
    yield from (f"INSERT INTO {table} VALUES {row}" for row in rows)


# ---------------------------------------------------------------- SQL inside of programs

_JAVA = re.compile(r'"""(?P<block>.*?)"""|"(?P<text>(?:[^"\\\n]|\\.)*)"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "'": "'", "\\": "\\", "\n": ""}
_EXTENDS = re.compile(r"class\s+\w+\s+extends\s+(\w+)")
_SQL = re.compile(r"^[ \t]*(?=(?:select|with|values|create|insert)\b)", re.IGNORECASE | re.MULTILINE)
_ANSWER = re.compile(r"^\s*\(\d+ rows?\)", re.MULTILINE)


def java(repository: Repository, path: str, depth: int = 0) -> Iterator[str]:
    """The texts of a Java test; first the definitions in the class that it extends."""
    source = repository.read(path)
    found = _EXTENDS.search(source)
    above = posixpath.join(posixpath.dirname(path), f"{found[1]}.java") if found else ""
    if above in repository.sizes and depth < 3:
        yield from (text for text in java(repository, above, depth + 1) if not is_query(text))
    for text in _java_texts(source):
        yield from _with_answers(text)


def _java_texts(source: str) -> Iterator[str]:
    """Texts, those that are joined by + as one."""
    held = ""
    last = 0
    for found in _JAVA.finditer(source):
        piece = found["block"] if found["block"] is not None else found["text"]
        if piece is None:
            continue
        if held and source[last : found.start()].strip() != "+":
            yield held
            held = ""
        held += re.sub(r"\\(.)", lambda escaped: _ESCAPES.get(escaped[1], escaped[0]), piece, flags=re.DOTALL)
        last = found.end()
    if held:
        yield held


def _with_answers(text: str) -> Iterator[str]:
    """Statements of a text in which tables of answers, ended by ``(3 rows)``, follow the queries."""
    for part in _ANSWER.split(text):
        answered = part is not text and "(" in part
        while found := _SQL.search(part):
            part = part[found.start() :]
            statement, end = next(iter(pieces(part)))
            if first_word(statement):
                yield statement
            part = part[end:]
            if answered and is_query(statement) and not _SQL.match(part.lstrip("\n")):
                break


def python(repository: Repository, path: str) -> Iterator[str]:
    """The texts of all Python files of a folder: definitions first, since files use each other's tables."""
    texts: list[str] = []
    folder = re.escape(posixpath.dirname(path))
    for beside in repository.files(rf"{folder}/[^/]*\.py"):
        try:
            tree = ast.parse(repository.read(beside))
        except SyntaxError:
            continue
        held = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
        for value in held:
            if isinstance(value, str) and _SQL.match(value.lstrip()):
                texts += split(value)
    yield from (text for text in texts if not re.search(r"\bview\b", text, re.IGNORECASE) and not is_query(text))
    yield from (text for text in texts if re.search(r"\bview\b", text, re.IGNORECASE) or is_query(text))


_TCL = re.compile(r"(?:execsql2?|do_execsql_test\s+\S+|db\s+eval|catchsql|do_eqp_execsql_test\s+\S+)\s*(?=\{)")


def tcl(repository: Repository, path: str) -> Iterator[str]:
    """The braces that SQLite's tests hand to the database."""
    source = repository.read(path)
    for found in _TCL.finditer(source):
        end = closing(source, found.end(), "{}")
        if end > 0:
            yield from split(source[found.end() + 1 : end])
