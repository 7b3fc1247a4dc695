"""PostgreSQL, which maintains the view in triggers of the transaction that writes.

A round of operations is one transaction (COPY into a staging table, the last operation of each key
applied by DELETE and INSERT … ON CONFLICT), and triggers of statements bring the view along from the rows that
came and went.

| view | what its triggers do |
|---|---|
| q1 | put and delete the rows by key |
| q2 | add the signed counts and sums of the groups, and delete groups of no rows |
| q3 | recompute the groups that are touched, over an index: a minimum cannot be taken back, and sums would drift |
| q4 | delete the join rows of what went, and join what came with the other table, over indexes |

The server is ours alone: a data directory in the folder of the run, a socket, no network. It does not wait for the
disk (fsync, synchronous_commit and full_page_writes are off), since Everview's default does not either; it has
512 MB of shared buffers. Triggers of rows, one operation at a time, would be slower by far.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.others.child import Take, Taken
from bench.others.views import COLUMNS, RESULTS, columns, shape, tables

SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "4GB",
    "shared_buffers": "512MB",
    "work_mem": "64MB",
    "autovacuum_naptime": "5s",
    "listen_addresses": "",
}
USER = "postgres"
"""Whose server it is where we are root, whom PostgreSQL refuses."""


def binaries() -> Path | None:
    """Where the server is, if it is installed."""
    found = [path.parent for path in sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))]
    if found:
        return found[-1]
    there = shutil.which("initdb")
    return Path(there).resolve().parent if there and shutil.which("psql") else None


@contextmanager
def system() -> Iterator[Take]:
    programs = binaries()
    if programs is None:
        raise RuntimeError("PostgreSQL is not installed: python -m bench.others.setup postgres")
    with tempfile.TemporaryDirectory(prefix="everview-postgres-") as place, _server(programs, Path(place)) as socket:

        def take(view: str, stream: Path, out: Path) -> Taken:
            seconds = []
            for triggers in (False, True):
                _psql(programs, socket, ["DROP SCHEMA public CASCADE; CREATE SCHEMA public;", *_tables(view)])
                if triggers:
                    _psql(programs, socket, _triggers(view))
                script = _script(view, stream)
                started = time.perf_counter()
                _psql(programs, socket, script)
                seconds.append(time.perf_counter() - started)
            _psql(programs, socket, [_copied(view, out)])
            return Taken(seconds[1], base=seconds[0], together=True)

        yield take


@contextmanager
def _server(programs: Path, place: Path) -> Iterator[Path]:
    user = USER if os.getuid() == 0 else None
    if user is not None:
        shutil.chown(place, user)
    data = place / "data"
    run = {"user": user, "cwd": place, "stdin": subprocess.DEVNULL}
    made = [programs / "initdb", "--pgdata", data, "--username", USER, "--auth", "trust", "--no-sync"]
    subprocess.run([*made, "--encoding", "UTF8", "--locale", "C"], check=True, stdout=subprocess.DEVNULL, **run)  # type: ignore[call-overload]
    options = [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
    with (place / "log").open("w") as log:
        server = subprocess.Popen(  # type: ignore[call-overload]
            [programs / "postgres", "-D", data, "-k", place, *options], stdout=log, stderr=log, **run
        )
        try:
            ready: list[str | Path] = [programs / "pg_isready", "--host", place, "--quiet"]
            while subprocess.run(ready, check=False).returncode:
                if server.poll() is not None:
                    raise RuntimeError(f"PostgreSQL did not start: {(place / 'log').read_text()}")
                time.sleep(0.05)
            yield place
        finally:
            server.terminate()
            server.wait(60)


def _psql(programs: Path, socket: Path, script: list[str]) -> None:
    asked: list[str | Path] = [
        programs / "psql",
        "--host",
        socket,
        "--username",
        USER,
        "--dbname",
        "postgres",
        "--no-psqlrc",
    ]
    done = subprocess.run(
        [*asked, "--quiet", "--set", "ON_ERROR_STOP=1", "--file", "-"],
        input="SET client_min_messages TO warning;\n" + "\n".join(script) + "\n",
        text=True,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"psql failed: {done.stderr.strip()}")


# ------------------------------------------------------------------ tables and rounds


def _tables(view: str) -> list[str]:
    made = [f"CREATE TABLE {name} ({_types(columns(name))}, PRIMARY KEY (k));" for name in tables(view)]
    if shape(view) in ("q3", "q4"):
        made += [f"CREATE INDEX ON {name} (c1);" for name in tables(view)]
    return made


def _types(text: str) -> str:
    return text.replace("DOUBLE", "DOUBLE PRECISION")


def _script(view: str, stream: Path) -> list[str]:
    """All rounds, each a transaction."""
    lines = []
    for name in tables(view):
        lines.append(f"CREATE TEMP TABLE staged_{name} (number BIGINT, put BOOLEAN, {_types(columns(name))});")
    for path in sorted((stream / "rounds").glob(f"{tables(view)[0]}-*.csv")):
        lines.append("BEGIN;")
        for name in tables(view):
            others = [column for column in COLUMNS[name] if column != "k"]
            file = path.with_name(path.name.replace(tables(view)[0], name))
            lines += [
                f"\\copy staged_{name} FROM '{file}' WITH (FORMAT csv)",
                f"WITH last AS (SELECT DISTINCT ON (k) * FROM staged_{name} ORDER BY k, number DESC), "
                f"gone AS (DELETE FROM {name} USING last WHERE NOT last.put AND {name}.k = last.k) "
                f"INSERT INTO {name} SELECT {', '.join(COLUMNS[name])} FROM last WHERE put "
                f"ON CONFLICT (k) DO UPDATE SET {', '.join(f'{one} = excluded.{one}' for one in others)};",
                f"TRUNCATE staged_{name};",
            ]
        lines.append("COMMIT;")
    return lines


def _copied(view: str, out: Path) -> str:
    return f"\\copy (SELECT {', '.join(RESULTS[shape(view)])} FROM v) TO '{out / 'rows.csv'}' WITH (FORMAT csv, HEADER)"


# ------------------------------------------------------------------ triggers


def _triggers(view: str) -> list[str]:
    """The view's table, and what keeps it: for each table functions over the rows that came and went."""
    kind = shape(view)
    key = {"q1": "k", "q2": "c1", "q3": "c1", "q4": "k, l"}[kind]
    kept = _types(", ".join(f"{name} {type_}" for name, type_ in RESULTS[kind].items()))
    made = [f"CREATE TABLE v ({kept}, PRIMARY KEY ({key}));"]
    if kind == "q4":
        made.append("CREATE INDEX ON v (l);")
    for name in tables(view):
        for event, went, came in (("INSERT", False, True), ("UPDATE", True, True), ("DELETE", True, False)):
            body = " ".join(_BODIES[kind](name, went, came))
            seen = "REFERENCING" + (" OLD TABLE AS went" if went else "") + (" NEW TABLE AS came" if came else "")
            function = f"{name}_{event.lower()}"
            made += [
                f"CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS "
                f"$$ BEGIN {body} RETURN NULL; END $$;",
                f"CREATE TRIGGER {function} AFTER {event} ON {name} {seen} "
                f"FOR EACH STATEMENT EXECUTE FUNCTION {function}();",
            ]
    return made


def _q1(table: str, went: bool, came: bool) -> Iterator[str]:
    if went and came:
        yield "DELETE FROM v USING came WHERE v.k = came.k AND NOT came.c2 < 500;"
    elif went:
        yield "DELETE FROM v USING went WHERE v.k = went.k;"
    if came:
        yield (
            "INSERT INTO v SELECT k, c1, c2 FROM came WHERE c2 < 500 "
            "ON CONFLICT (k) DO UPDATE SET c1 = excluded.c1, c2 = excluded.c2;"
        )


def _q2(table: str, went: bool, came: bool) -> Iterator[str]:
    parts = [f"SELECT c1, {sign} AS w, {sign} * c2 AS c2 FROM {rows}" for sign, rows in _sides(went, came)]
    yield (
        f"INSERT INTO v SELECT c1, sum(w), sum(c2) FROM ({' UNION ALL '.join(parts)}) AS changes GROUP BY c1 "
        "ON CONFLICT (c1) DO UPDATE SET n = v.n + excluded.n, s = v.s + excluded.s;"
    )
    if went:
        yield "DELETE FROM v WHERE n = 0 AND c1 IN (SELECT c1 FROM went);"


def _q3(table: str, went: bool, came: bool) -> Iterator[str]:
    touched = " UNION ".join(f"SELECT c1 FROM {rows}" for _, rows in _sides(went, came))
    yield (
        "INSERT INTO v SELECT c1, count(*), sum(c3), avg(c3), min(c3), max(c3) FROM bt1 "
        f"WHERE c1 IN ({touched}) GROUP BY c1 "
        "ON CONFLICT (c1) DO UPDATE SET n = excluded.n, s = excluded.s, a = excluded.a, lo = excluded.lo, "
        "hi = excluded.hi;"
    )
    if went:
        yield (
            "DELETE FROM v WHERE c1 IN (SELECT c1 FROM went) AND NOT EXISTS (SELECT 1 FROM bt1 WHERE bt1.c1 = v.c1);"
        )


def _q4(table: str, went: bool, came: bool) -> Iterator[str]:
    if went:
        yield f"DELETE FROM v USING went WHERE v.{'k' if table == 'bt1' else 'l'} = went.k;"
    if came:
        left, right = ("came", "bt2") if table == "bt1" else ("bt1", "came")
        yield f"INSERT INTO v SELECT a.k, a.c2, b.k, b.c4 FROM {left} AS a JOIN {right} AS b ON a.c1 = b.c1;"


def _sides(went: bool, came: bool) -> list[tuple[int, str]]:
    return [(-1, "went")] * went + [(1, "came")] * came


_BODIES = {"q1": _q1, "q2": _q2, "q3": _q3, "q4": _q4}
