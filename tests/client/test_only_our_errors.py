"""Whatever is called, with whatever arguments and in whatever state: only errors of Everview's come out.

What can be called is found by looking, so that what is added later is called too.
"""

from __future__ import annotations

import datetime
import inspect
import os
import resource
import shutil
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import everview
from everview.boundary import _INTERNAL, _SPECIAL, public
from everview.change.frontier import Slice
from everview.change.types import BIGINT
from everview.errors import EverviewError, InputError, InternalError, NotAStoreError, StoreError, StoreFullError
from everview.store.contract import BagRows, StateTable, Table
from everview.store.embedded.lease import EmbeddedLease
from tests.full_disk import full_disk

BAD: dict[str, object] = {
    "None": None,
    "negative": -1,
    "huge": 2**70,
    "flag": True,
    "NaN": float("nan"),
    "infinite": float("inf"),
    "large": 1e300,
    "decimal": Decimal("NaN"),
    "empty": "",
    "text": "no such thing; SELECT ((",
    "long": "x" * 5_000,
    "zero": "a\0b",
    "surrogate": "\ud800",
    "bytes": b"\xff",
    "list": [],
    "nested": [[[]], {}, None],
    "texts": ["id", "id", "nothing"],
    "dict": {},
    "dict of anything": {1: object(), "id": object()},
    "object": object(),
    "class": int,
    "time": datetime.datetime.max,
    "arrow": pa.table({"x": pa.array([1], pa.int64())}),
}

NOTHING = pa.array([], pa.large_binary())
T = Table(1, "t", everview.Schema.of({"id": "BIGINT"}, ["id"]))
STATE = StateTable(1, "v", "main")
BELOW = ("EmbeddedViews", "StoreSnapshot")

GOOD: dict[str, Callable[[str], object]] = {
    "name": lambda owner: "v" if "View" in owner else "t",
    "view": lambda owner: None if owner == "Catalog" else "v",
    "table": lambda owner: T if owner == "EmbeddedStore" else STATE if owner in BELOW else "t",
    "text": lambda _: "SELECT id FROM t",
    "columns": lambda _: {"id": "BIGINT"},
    "kind": lambda _: "BIGINT",
    "row": lambda _: {"id": 7},
    "rows": lambda _: [{"id": 8}],
    "keys": lambda owner: NOTHING if owner in BELOW else [[1]],
    "key": lambda owner: b"k" if owner in BELOW else [1],
    "path": lambda _: "new",
    "frontier": lambda _: everview.Frontier(),
    "requested_schema": lambda _: None,
    "_": lambda _: None,
    "error": lambda _: None,
    "trace": lambda _: None,
    "group": lambda _: "main",
    "epoch": lambda _: 1,
    "as_of": lambda _: 1,
    "plan": lambda _: b"",
    "start": lambda _: everview.Frontier(),
    "max_operations": lambda _: 10,
    "piece": lambda _: Slice(1, 0, 1),
    "tables": lambda _: [T],
    "token": lambda _: 0,
    "node": lambda _: 1,
    "changes": lambda _: BagRows(NOTHING, NOTHING, pa.array([], pa.int64())),
    "expected": lambda _: 0,
    "puts": lambda owner: {} if owner == "EmbeddedMetadata" else None,
    "target": lambda _: Path("backup"),
    "schema": lambda _: T.schema,
    "column": lambda _: everview.Column("c", BIGINT),
    "index": lambda _: None,
    "query": lambda _: None,
    "discarded": lambda _: [],
    "version": lambda _: 1,
    "since": lambda _: 0,
    "id": lambda _: 1,
    "prefix": lambda _: b"",
}
"""Arguments that make sense, by the name of the parameter and the class it is of."""

INSIDE = {"ViewHandle": ("rows_in", "version", "get_at"), "Catalog": ("watch", "change")}
"""What sessions and subscriptions call, with what the store gives them; what waits; what calls a function."""
UNIMPORTED = {
    "SparkSession": object,
    "pd": SimpleNamespace(DataFrame=object),
    "lmdb": SimpleNamespace(Transaction=list),
}
"""What annotations name for type checkers only."""
ENDS = ("close", "__exit__", "drop_table")
"""What is called last."""


class World:
    """Everything that can be called, in a store of its own."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.db = db = everview.open(place, durability="none")
        db.sql("""
            CREATE TABLE t (id BIGINT PRIMARY KEY, n VARCHAR);
            CREATE TABLE k (n VARCHAR);
            INSERT INTO t VALUES (1, 'a'), (2, 'b');
            INSERT INTO k VALUES ('a');
            CREATE MATERIALIZED VIEW v AS SELECT id, n FROM t;
            CREATE MATERIALIZED VIEW w AS SELECT n, count(*) AS c FROM t GROUP BY n ORDER BY c
        """)
        db.flush()
        snapshot, session, batch = db.snapshot(), db.session(), db.batch()
        subscription = db.view("v").subscribe(snapshot=True, timeout=0)
        self.batch = batch.__enter__()
        recording = db.recording("v")
        recording.__enter__()
        self.objects: list[object] = [
            db.table("t"),
            db.table("k"),
            self.batch.table("k"),
            self.batch,
            db.view("v"),
            db.view("w"),
            snapshot.table("t"),
            snapshot.table("k"),
            snapshot.view("v"),
            snapshot,
            session.table("t"),
            session.batch(),
            session.view("v"),
            session,
            db.sql("SELECT * FROM t, range(2000)"),
            db.sql("CREATE TABLE IF NOT EXISTS t (id BIGINT PRIMARY KEY)"),
            next(subscription),
            subscription,
            db.maintain(spark=False),
            recording,
            db.verify(),
            db.status(),
            *self.below(db),
            db,
        ]

    def below(self, db: everview.Database) -> list[object]:
        """What is reached through ``db.store``, ``db.catalog`` and ``db.topology``."""
        store, table = db.store, db.catalog.table("t")
        return [
            store.table(table),
            store.log,
            store.views,
            store.metadata,
            store.snapshot(),
            db.topology,
            db.catalog,
            store,
        ]

    def close(self) -> None:
        for one in self.objects:
            for name in ("close",):
                if hasattr(one, name):
                    getattr(one, name)()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.chdir(tmp_path)
    found = World(tmp_path / "store")
    yield found
    with suppress(EverviewError):
        found.close()


# ------------------------------------------------------------------ what can be called


def members(one: object) -> list[str]:
    """The methods and properties that users reach, and those that Python calls for them; ends come last."""
    own = [name for name in dir(type(one)) if not name.startswith("_") or name in _SPECIAL - {"__init__"}]
    own = [name for name in own if getattr(object, name, None) is not getattr(type(one), name)]
    own = [name for name in own if name not in INSIDE.get(type(one).__name__, ())]
    own = [name for name in own if not hasattr(inspect.getattr_static(type(one), name), _INTERNAL)]
    return sorted(own, key=lambda name: (name in ENDS, name))


def is_method(one: object, name: str) -> bool:
    member = inspect.getattr_static(type(one), name)
    return inspect.isfunction(member) or isinstance(member, staticmethod | classmethod)


def parameters(call: Callable[..., object]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(call).parameters.values())
    except (ValueError, TypeError):
        return []


def good(owner: str, parameter: inspect.Parameter) -> object:
    assert parameter.name in GOOD, f"add an argument for {parameter.name} of {owner} to GOOD"
    return GOOD[parameter.name](owner)


def arguments(
    owner: str, call: Callable[..., object], given: dict[str, object]
) -> tuple[list[object], dict[str, object]]:
    """Arguments that make sense, but for those that are given."""
    places: list[object] = []
    named: dict[str, object] = {}
    for parameter in parameters(call):
        is_given = parameter.name in given
        if parameter.kind is parameter.VAR_POSITIONAL:
            places += [given[parameter.name]] if is_given else [] if owner == "Database" else [1]
        elif parameter.kind is parameter.KEYWORD_ONLY:
            named |= {parameter.name: given[parameter.name]} if is_given else {}
        elif parameter.kind is not parameter.VAR_KEYWORD:
            if not is_given and parameter.default is not parameter.empty:
                break
            places.append(given[parameter.name] if is_given else good(owner, parameter))
    rest = {
        name: value
        for name, value in given.items()
        if name not in named and name not in {p.name for p in parameters(call)[: len(places)]}
    }
    return places, {**named, **{name: value for name, value in rest.items() if not _is_rest(call, name)}}


def _is_rest(call: Callable[..., object], name: str) -> bool:
    return any(one.name == name and one.kind is one.VAR_POSITIONAL for one in parameters(call))


def called(what: str, call: Callable[[], object]) -> None:
    """Call it, and read what it returns; an error is one of ours, and no mistake of Everview's."""
    try:
        found = call()
        if isinstance(found, everview.Result):
            found.rows()
        elif inspect.isgenerator(found):
            next(found, None)
        elif isinstance(found, EmbeddedLease):
            found.close()
    except StopIteration:
        assert "__next__" in what, what
    except InternalError as error:
        raise AssertionError(f"{what} is a mistake: {error}") from error
    except EverviewError:
        pass
    except Exception as error:
        raise AssertionError(f"{what} raises {type(error).__name__}: {error}") from error


def use(one: object, name: str, given: dict[str, object] | None = None) -> None:
    given = given or {}
    owner = type(one).__name__
    what = f"{owner}.{name}({', '.join(f'{key}={str(value)[:40]!r}' for key, value in given.items())})"
    if not is_method(one, name):
        called(what, lambda: getattr(one, name))
        return
    bound = getattr(one, name)
    places, named = arguments(owner, bound, given)
    called(what, lambda: bound(*places, **named))


# ------------------------------------------------------------------ the tests


def test_every_class_that_is_returned_is_among_them(world: World) -> None:
    """A class that a public method returns is called here, or belongs to a layer below."""
    known = {type(one) for one in world.objects}
    returned: set[type] = set()
    for one in [*known, *map(type, [everview.open])]:
        for name, member in vars(one).items():
            call = getattr(member, "fget", member)
            if name.startswith("_") or not callable(call):
                continue
            hint = typing.get_type_hints(inspect.unwrap(call), localns=UNIMPORTED).get("return")
            returned |= {part for part in (hint, *typing.get_args(hint)) if inspect.isclass(part)}
    public = {
        one
        for one in returned
        if one.__module__.startswith("everview.client") and not getattr(one, "_is_protocol", False)
    }
    assert {one.__name__ for one in public - known} <= {"ResultColumn", "ViewState", "ViewRows", "Version"}
    assert {getattr(everview, name) for name in everview.__all__ if name[0].isupper()} - known <= {
        everview.Column,
        everview.EverviewError,
        everview.Frontier,
        everview.Schema,
        everview.Type,
    }


def test_bad_arguments(world: World) -> None:
    wrong = []
    for one in world.objects:
        for name in members(one):
            if name in ENDS or not is_method(one, name):
                continue
            for parameter in parameters(getattr(one, name)):
                for bad in BAD.values():
                    try:
                        use(one, name, {parameter.name: bad})
                    except AssertionError as error:
                        wrong.append(str(error))
    assert not wrong, "\n".join([str(len(wrong)), *wrong[:60]])


def opened_and_closed(*places: Any, **named: Any) -> None:
    everview.open(*places, **named).close()


def test_bad_arguments_of_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = []
    for parameter in parameters(everview.open):
        for number, bad in enumerate(BAD.values()):
            places, named = arguments("open", everview.open, {"path": f"store {number}", parameter.name: bad})
            try:
                called(f"open({parameter.name}={str(bad)[:40]!r})", partial(opened_and_closed, *places, **named))
            except AssertionError as error:
                wrong.append(str(error))
    assert not wrong, "\n".join([str(len(wrong)), *wrong[:60]])


def test_bad_arguments_of_definitions() -> None:
    wrong = []
    makers: list[Any] = [
        everview.Column,
        everview.Schema,
        everview.Schema.of,
        everview.Schema.from_json,
        everview.Frontier,
    ]
    makers += [everview.Frontier.parse, everview.Type]
    for make in makers:
        for bad in BAD.values():
            for count in (1, 2, 3):
                if count <= len(parameters(make)):
                    try:
                        called(f"{make.__qualname__}({str(bad)[:30]!r} × {count})", partial(make, *[bad] * count))
                    except AssertionError as error:
                        if "missing" not in str(error):
                            wrong.append(str(error))
    assert not wrong, "\n".join([str(len(wrong)), *wrong[:60]])


def everything(world: World) -> None:
    wrong = []
    for one in world.objects:
        for name in members(one):
            try:
                use(one, name)
            except AssertionError as error:
                wrong.append(str(error))
    assert not wrong, "\n".join([str(len(wrong)), *wrong[:60]])


def test_everything_can_be_called(world: World) -> None:
    everything(world)


def test_a_closed_database(world: World) -> None:
    world.db.close()
    everything(world)
    with pytest.raises(StoreError, match="is closed"):
        world.db.table("t")


def test_what_is_closed_itself(world: World) -> None:
    for one in world.objects:
        if hasattr(one, "close") and one is not world.db:
            one.close()
    everything(world)


def test_a_directory_that_was_removed(world: World) -> None:
    shutil.rmtree(world.place)
    everything(world)


def test_a_directory_that_cannot_be_written(world: World) -> None:
    if os.geteuid() == 0:
        pytest.skip("root writes everywhere")
    for entry in (*world.place.iterdir(), world.place):
        entry.chmod(0o500)
    try:
        everything(world)
    finally:
        world.place.chmod(0o700)


@pytest.mark.parametrize("most", [0, 1 << 16])
def test_a_full_disk(world: World, most: int) -> None:
    with full_disk(most):
        with pytest.raises(StoreFullError):
            world.db.table("t").put_many([{"id": at, "n": "x" * 100} for at in range(100_000)])
        everything(world)


MARKERS: dict[str, bytes] = {
    "empty": b"",
    "null": b"null",
    "a number": b"7",
    "a list": b"[]",
    "an object": b"{}",
    "no settings": b'{"everview": 3}',
    "a text as format": b'{"everview": "x", "settings": {}}',
    "no format": b'{"everview": null, "settings": {}}',
    "a fraction as format": b'{"everview": 0.5, "settings": {}}',
    "a negative format": b'{"everview": -1, "settings": {}}',
    "settings are a list": b'{"everview": 3, "id": "a", "settings": []}',
    "settings are null": b'{"everview": 3, "id": "a", "settings": null}',
    "shards are a text": b'{"everview": 3, "id": "a", "settings": {"shards": "4"}}',
    "shards are null": b'{"everview": 3, "id": "a", "settings": {"shards": null}}',
    "shards are a list": b'{"everview": 3, "id": "a", "settings": {"shards": [4]}}',
    "shards are a fraction": b'{"everview": 3, "id": "a", "settings": {"shards": 4.5}}',
    "nodes are huge": b'{"everview": 3, "id": "a", "settings": {"nodes": 1e999}}',
    "nodes are not a number": b'{"everview": 3, "id": "a", "settings": {"nodes": NaN}}',
    "before images are a text": b'{"everview": 3, "id": "a", "settings": {"before_images": "no"}}',
    "unknown settings": b'{"everview": 3, "id": "a", "settings": {"other": 1}}',
    "nested": b"[" * 100_000,
    "nested settings": b'{"everview": 3, "id": "a", "settings": ' + b'{"a":' * 50_000,
    "a long number": b'{"everview": ' + b"9" * 10_000 + b"}",
    "no id": b'{"everview": 3, "settings": {}}',
    "a number as id": b'{"everview": 3, "id": 7, "settings": {}}',
    "not UTF-8": b"\xff\xfe",
    "cut": b'{"everview": 3, "id": "a", "settings": {"shards"',
}


@pytest.mark.parametrize("kind", MARKERS)
def test_a_damaged_marker(tmp_path: Path, kind: str) -> None:
    everview.open(tmp_path / "store").close()
    marker = tmp_path / "store" / "everview.json"
    marker.write_bytes(MARKERS[kind])
    for create in (True, False):
        with pytest.raises(NotAStoreError, match=r"everview\.json"):
            everview.open(tmp_path / "store", create=create)


@pytest.mark.parametrize("name", ["everview.json", "lock", "durable", "base.mdb", "state-1.mdb"])
def test_a_directory_or_a_pipe_in_the_place_of_a_file(tmp_path: Path, name: str) -> None:
    """A pipe that nobody writes to would be waited for for ever."""
    everview.open(tmp_path / "store").close()
    entry = tmp_path / "store" / name
    entry.rename(tmp_path / "aside")
    for make, remove in ((entry.mkdir, entry.rmdir), (lambda: os.mkfifo(entry), entry.unlink)):
        make()
        for create in (True, False):
            with pytest.raises(NotAStoreError, match=f"{name} is (not a file|missing)"):
                everview.open(tmp_path / "store", create=create)
        remove()
    (tmp_path / "aside").rename(entry)
    everview.open(tmp_path / "store").close()


def test_a_pipe_in_the_place_of_a_plan(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "creating.json")
    with pytest.raises(NotAStoreError, match="is not a store"):
        everview.open(tmp_path)


def test_a_store_that_cannot_be_opened_leaves_no_file_open(tmp_path: Path) -> None:
    """A process may have so many open files and no more, whichever of the store's comes last."""
    everview.open(tmp_path / "store").close()
    with without_gaps():
        before = open_files()
        failed = sum(cannot_be_opened(tmp_path / "store", max(before) + 1 + more) for more in range(30))
        assert open_files() == before
    assert 10 < failed < 30
    everview.open(tmp_path / "store").close()


def cannot_be_opened(path: Path, files: int) -> bool:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    try:
        everview.open(path).close()
    except StoreError:
        return True
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return False


def open_files() -> set[int]:
    return {int(entry.name) for entry in list(Path("/proc/self/fd").iterdir()) if entry.exists()}


@contextmanager
def without_gaps() -> Iterator[None]:
    """The next file that is opened has the highest number."""
    opened = [os.open(os.devnull, os.O_RDONLY)]
    while opened[-1] < max(open_files()):
        opened.append(os.open(os.devnull, os.O_RDONLY))
    try:
        yield
    finally:
        for descriptor in opened:
            os.close(descriptor)


def test_a_lease_that_cannot_be_written(world: World) -> None:
    (world.place / "maintenance.lease").unlink(missing_ok=True)
    (world.place / "maintenance.lease").mkdir()
    world.db.table("t").put({"id": 9})
    with pytest.raises(StoreError, match=r"maintenance\.lease cannot be used"):
        world.db.flush()
    with pytest.raises(StoreError, match=r"maintenance\.lease cannot be used"), world.db.maintain(spark=False):
        pass


# ------------------------------------------------------------------ the boundary itself


@public
class Thing:
    """Does what a bug would do."""

    def fails(self, number: int = 0) -> object:
        return dict[str, int]()["nothing"]

    def rows(self) -> Iterator[int]:
        yield 1
        raise OSError(28, "No space left on device")

    def interrupted(self) -> None:
        raise RuntimeError("Query interrupted")

    def __enter__(self) -> Thing:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            raise error


def test_a_mistake_is_not_hidden() -> None:
    with pytest.raises(InternalError, match="please report it") as raised:
        Thing().fails()
    assert isinstance(raised.value.__cause__, KeyError)


def test_errors_of_the_callers_own_code_pass(world: World) -> None:
    def rows() -> Iterator[dict[str, object]]:
        yield {"id": 70}
        raise ValueError("the file is broken")

    def change(draft: object) -> None:
        raise LookupError("mine")

    for call in (world.db.table("t").put_many, world.db.table("k").put_many, world.db.session().table("t").put_many):
        with pytest.raises(ValueError, match="the file is broken"):
            call(rows())
    with pytest.raises(LookupError, match="mine"):
        world.db.catalog.change(change)
    assert world.db.table("t").get(70) is None


def test_arguments_of_generators_are_checked_when_they_are_called() -> None:
    with pytest.raises(TypeError, match="positional argument"):
        Thing().rows(1)  # type: ignore[call-arg]


def test_what_is_not_everviews_passes() -> None:
    with pytest.raises(TypeError, match="positional argument"):
        Thing().fails(1, 2)  # type: ignore[call-arg]
    with pytest.raises(InputError, match=r"Thing\.fails: number cannot be 'x'"):
        Thing().fails("x")  # type: ignore[arg-type]
    with pytest.raises(KeyError), Thing():
        raise KeyError
    with pytest.raises(KeyboardInterrupt):
        Thing().interrupted()
    rows = Thing().rows()
    assert next(rows) == 1
    with pytest.raises(StoreFullError) as raised:
        next(rows)
    assert isinstance(raised.value.__cause__, OSError)
