"""Work for many writers at once, made so that the store itself shows what went wrong.

Every write carries a token that names its writer and its number, and says
how many rows carry it, so that a batch of which a part is missing is seen from the rows
and from the log alone.

Three tables: ``slots``, on whose few rows all writers meet; ``ledger``, whose rows belong to one
writer each and are put once and deleted at most once, so that their presence says exactly
which steps took effect; ``groups``, whose rows are written and deleted only five at a time.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from everview.change.frontier import Frontier
from everview.change.schema import Schema
from everview.store.contract import Row, Store, Table
from tests.adapters.model import Entry, Key, Values, entries_of, without_nulls
from tests.adapters.under_test import define, defined

SLOTS = 40
GROUPS = 6
GROUP_SIZE = 5
STRIDE = 1_000_000
"""Token = writer * STRIDE + step number."""

SCHEMAS = {
    "slots": Schema.of({"slot": "INTEGER", "token": "BIGINT", "size": "INTEGER", "note": "VARCHAR"}, key=["slot"]),
    "ledger": Schema.of(
        {"writer": "INTEGER", "number": "BIGINT", "token": "BIGINT", "size": "INTEGER"}, key=["writer", "number"]
    ),
    "groups": Schema.of(
        {"grp": "INTEGER", "member": "INTEGER", "token": "BIGINT", "size": "INTEGER"}, key=["grp", "member"]
    ),
}


@dataclass(frozen=True)
class Step:
    """One write call of one writer."""

    token: int
    how: str
    puts: tuple[tuple[str, Row], ...] = ()
    deletes: tuple[tuple[str, Key], ...] = ()


def create(store: Store) -> dict[str, Table]:
    return {name: define(store, name, schema) for name, schema in SCHEMAS.items()}


def tables_of(store: Store) -> dict[str, Table]:
    return {name: defined(store, name) for name in SCHEMAS}


def ledger_rows(number: int) -> bool:
    """Whether a step of this number puts a row of the ledger."""
    return number % 2 == 0


def step(seed: int, writer: int, number: int) -> Step:
    """What a writer does at this number, in any process. Even numbers put a row of the ledger,
    odd ones delete the row put three steps before, alone or with other writes."""
    rng = random.Random(f"{seed}/{writer}/{number}")
    token = writer * STRIDE + number
    slots = rng.sample(range(SLOTS), rng.randint(1, 12))
    note = "n" * rng.choice([0, 10, 400])
    if ledger_rows(number):
        how = rng.choice(["batch", "batch", "alone"])
        spread = slots if how == "batch" else []
        size = len(spread) + 1
        puts = [("slots", {"slot": s, "token": token, "size": size, "note": note}) for s in spread]
        puts.append(("ledger", {"writer": writer, "number": number, "token": token, "size": size}))
        gone = [("slots", (s,)) for s in rng.sample(range(SLOTS), 2) if s not in spread] if spread else []
        return Step(token, how, tuple(puts), tuple(gone))
    past = ("ledger", (writer, number - 3))
    how = rng.choice(["group", "group gone", "many", "note", "delete", "batch"])
    if how == "group":
        group = rng.randrange(GROUPS)
        rows: list[Row] = [{"grp": group, "member": m, "token": token, "size": GROUP_SIZE} for m in range(GROUP_SIZE)]
        return Step(token, "many", tuple(("groups", row) for row in rows))
    if how == "group gone":
        group = rng.randrange(GROUPS)
        return Step(token, "delete many", (), tuple(("groups", (group, m)) for m in range(GROUP_SIZE)))
    if how == "note":
        return Step(token, "alone", (("slots", {"slot": slots[0], "note": f"{token}"}),))
    if how == "delete":
        return Step(token, "delete", (), (past,))
    rows = [{"slot": s, "token": token, "size": len(slots), "note": note} for s in slots]
    puts = [("slots", row) for row in rows]
    return Step(token, how, tuple(puts), (past,) if how == "batch" else ())


def perform(store: Store, tables: Mapping[str, Table], step: Step) -> None:
    """Carry a step out: one call, or one batch."""
    if step.how == "alone":
        [(name, row)] = step.puts
        store.table(tables[name]).put(row)
    elif step.how == "many":
        store.table(tables[step.puts[0][0]]).put_many([row for _, row in step.puts])
    elif step.how == "delete":
        [(name, key)] = step.deletes
        store.table(tables[name]).delete(*key)
    elif step.how == "delete many":
        store.table(tables[step.deletes[0][0]]).delete_many([key for _, key in step.deletes])
    else:
        with store.batch() as batch:
            for name, row in step.puts:
                batch.table(tables[name]).put(row)
            for name, key in step.deletes:
                batch.table(tables[name]).delete(*key)


# ------------------------------------------------------------------ reading it back


def check_whole(entries: Iterable[Entry]) -> set[int]:
    """Between two cuts every token stands as often as it says. Returns the tokens."""
    found: Counter[int] = Counter()
    sizes: dict[int, int] = {}
    for entry in entries:
        token = entry.values.get("token")
        if not isinstance(token, int) or not _names_token(entry):
            continue
        found[token] += 1
        size = entry.values["size"]
        assert isinstance(size, int)
        sizes[token] = size
    assert found == sizes, f"batches of which a part is missing: { {t: n for t, n in found.items() if n != sizes[t]} }"
    return set(found)


def _names_token(entry: Entry) -> bool:
    """Whether this entry itself wrote the token, or kept it from an earlier write."""
    if entry.named is not None:
        return "token" in entry.named
    assert entry.old is not None
    return entry.old.get("token") != entry.values["token"]


@dataclass
class Tail:
    """A reader of the logs that follows them from cut to cut."""

    store: Store
    tables: Mapping[str, Table]
    cut: Frontier = field(default_factory=Frontier)
    rows: dict[str, dict[Key, Values]] = field(default_factory=lambda: {name: {} for name in SCHEMAS})
    orders: dict[tuple[str, Key], tuple[int, int]] = field(default_factory=dict)
    tokens: set[int] = field(default_factory=set)
    notes: set[object] = field(default_factory=set)
    entries: int = 0

    def follow(self, limit: int) -> bool:
        """Take one step of at most ``limit`` entries; False where there was nothing new."""
        cut = self.store.log.advance(self.cut, limit)
        if cut == self.cut:
            return False
        found: list[Entry] = []
        for piece in self.cut.slices_to(cut):
            part = entries_of(self.store.log.read(piece, self.tables.values()))
            assert [e.sequence for e in part] == list(range(piece.after + 1, piece.upto + 1)), "a gap or a duplicate"
            found += part
        self.tokens |= check_whole(found)
        self.notes.update(entry.values.get("note") for entry in found)
        for entry in sorted(found, key=lambda entry: entry.order):
            place = entry.table, entry.key
            assert self.orders.get(place, (-1, -1)) < entry.order, f"{place} went back in its own history"
            self.orders[place] = entry.order
            row = self.rows[entry.table].pop(entry.key, None)
            if entry.old is not None:
                assert entry.had == (row is not None)
                assert entry.old == (row or {})
            after = entry.applied_to(row)
            if after is not None:
                self.rows[entry.table][entry.key] = after
        self.entries += len(found)
        self.cut = cut
        return True

    def check_tables(self) -> None:
        """The logs give the tables; to be asked when nobody writes."""
        assert self.cut == self.store.log.latest()
        assert self.rows == contents(self.store, self.tables)


def contents(store: Store, tables: Mapping[str, Table]) -> dict[str, dict[Key, Values]]:
    """All rows of all tables, and their counts checked."""
    found: dict[str, dict[Key, Values]] = {}
    for name, table in tables.items():
        names = [column.name for column in table.schema.values]
        rows = [row for batch in store.table(table).scan() for row in batch.to_pylist()]
        found[name] = {tuple(row[k] for k in table.schema.key): without_nulls(row, names) for row in rows}
        assert len(found[name]) == len(rows) == store.table(table).count()
    return found


def check_groups(rows: Iterable[Row]) -> None:
    """The rows of a group are all there, of one write, or all gone."""
    members = list(rows)
    assert len(members) in (0, GROUP_SIZE)
    assert len({row["token"] for row in members}) <= 1


def check_all(store: Store, tables: Mapping[str, Table], limit: int = 200) -> Tail:
    """Everything that can be said about a store that nobody writes to, from its first entry."""
    tail = Tail(store, tables)
    while tail.follow(limit):
        pass
    tail.check_tables()
    assert tail.cut == store.log.latest()
    assert tail.entries == Frontier().operations_to(tail.cut)
    for group in range(GROUPS):
        check_groups(row for batch in store.table(tables["groups"]).scan((group,)) for row in batch.to_pylist())
    return tail


def check_steps(tail: Tail, seed: int, writer: int, acknowledged: set[int], attempted: int) -> None:
    """Of one writer: what was acknowledged is there, and the ledger holds exactly the rows of
    the steps that took effect. Steps up to ``attempted`` may have been tried."""
    gone: set[object] = set()
    perhaps: set[object] = set()
    for number in range(1, attempted + 1):
        done = step(seed, writer, number)
        happened = took_effect(tail, done)
        if happened is None and number in acknowledged:
            happened = True
        assert happened is not False or number not in acknowledged, f"the acknowledged step {done} is lost"
        deleted = {key[1] for name, key in done.deletes if name == "ledger"}
        if happened is not False:
            (gone if happened else perhaps).update(deleted)
    for number in range(2, attempted + 1, 2):
        there = (writer, number) in tail.rows["ledger"]
        written = writer * STRIDE + number in tail.tokens
        if number in gone:
            assert not there, f"row {number} of the ledger was deleted and is there"
        elif number in perhaps:
            assert written or not there
        else:
            assert there == written, f"row {number} of the ledger: row and log disagree"


def took_effect(tail: Tail, done: Step) -> bool | None:
    """Whether the logs show the step; None of a step that only deletes."""
    if not done.puts:
        return None
    if "token" in done.puts[0][1]:
        return done.token in tail.tokens
    return str(done.token) in tail.notes
