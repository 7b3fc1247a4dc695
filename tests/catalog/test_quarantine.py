"""Quarantine: quarantined log entries are listed in pages, in log order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.catalog import Catalog, Quarantine, QuarantineEntry
from everview.catalog import quarantine as quarantine_module
from everview.change.frontier import Position
from everview.errors import ConflictError, InputError
from everview.store.contract import Metadata
from tests.catalog.memory import MemoryMetadata


def entry(subject: int, node: int, sequence: int, reason: str = "not UTF-8") -> QuarantineEntry:
    return QuarantineEntry(subject, Position(node, sequence), reason, 12.5, b"\x00\xff")


def test_an_entry_comes_back_as_it_was(catalog: Catalog, metadata: Metadata) -> None:
    entries = (entry(7, 1, 5), QuarantineEntry(7, Position(1, 6), "“ß”", 0.0))
    catalog.quarantine.add(entries)
    assert Catalog(metadata).quarantine.page(7) == entries


def test_pages_follow_the_log_not_the_digits(catalog: Catalog) -> None:
    quarantine = catalog.quarantine
    quarantine.add([entry(1, 10, 1), entry(1, 2, 100), entry(1, 2, 9), entry(11, 1, 1)])
    assert [str(e.position) for e in quarantine.page(1)] == ["2:9", "2:100", "10:1"]
    assert [str(e.position) for e in quarantine.page(1, limit=2)] == ["2:9", "2:100"]
    assert [str(e.position) for e in quarantine.page(1, after=Position(2, 100), limit=2)] == ["10:1"]
    assert [str(e.position) for e in quarantine.page(1, after=Position(2, 50), limit=1)] == ["2:100"]
    assert quarantine.page(1, limit=0) == quarantine.page(2) == ()
    with pytest.raises(InputError, match="a page cannot have -1 entries"):
        quarantine.page(1, limit=-1)


def test_a_retried_epoch_quarantines_an_entry_once(catalog: Catalog) -> None:
    catalog.quarantine.add([entry(1, 1, 5, "first")])
    catalog.quarantine.add([entry(1, 1, 5, "second"), entry(1, 1, 6)])
    assert [e.reason for e in catalog.quarantine.page(1)] == ["second", "not UTF-8"]
    assert catalog.quarantine.count(1) == 2


def test_subjects_are_those_with_entries(catalog: Catalog) -> None:
    assert catalog.quarantine.subjects() == ()
    catalog.quarantine.add([entry(2, 1, 5), entry(10, 1, 5), entry(2, 1, 6), entry(0, 3, 1)])
    assert catalog.quarantine.subjects() == (0, 2, 10)


def test_clearing_takes_a_subject_or_its_beginning(catalog: Catalog) -> None:
    quarantine = catalog.quarantine
    quarantine.add([entry(1, 1, 5), entry(1, 1, 6), entry(1, 2, 1), entry(2, 1, 5)])
    assert quarantine.clear(1, upto=Position(1, 5)) == 1
    assert [str(e.position) for e in quarantine.page(1)] == ["1:6", "2:1"]
    assert quarantine.clear(1) == 2
    assert quarantine.clear(1) == 0
    assert quarantine.subjects() == (2,)


def test_many_entries_go_in_bounded_commits(metadata: Metadata, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantine_module, "AT_ONCE", 4)
    quarantine = Quarantine(metadata)
    quarantine.add(entry(1, 1, sequence) for sequence in range(1, 11))
    assert metadata.version() == 3
    assert quarantine.count(1) == 10
    assert quarantine.clear(1, upto=Position(1, 6)) == 6
    assert quarantine.count(1) == 4


def test_somebody_elses_commit_does_not_disturb_an_entry() -> None:
    class Busy(MemoryMetadata):
        """Others commit just before each of the first commits."""

        others = 2

        def commit(self, expected, puts, deletes=()):  # type: ignore[no-untyped-def]
            if self.others:
                self.others -= 1
                super().commit(expected, {"other": b""})
            return super().commit(expected, puts, deletes)

    metadata = Busy()
    Quarantine(metadata).add([entry(1, 1, 5)])
    assert Quarantine(metadata).count(1) == 1

    metadata.others = 1_000_000
    with pytest.raises(ConflictError):
        Quarantine(metadata).clear(1)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 30), st.integers(1, 10**12))),
    st.integers(1, 5),
)
def test_paging_through_gives_every_entry_once_in_order(found: list[tuple[int, int, int]], size: int) -> None:
    quarantine = Quarantine(MemoryMetadata())
    quarantine.add(entry(*parts) for parts in found)
    for subject in range(4):
        read: list[Position] = []
        while page := quarantine.page(subject, after=read[-1] if read else None, limit=size):
            assert len(page) <= size
            read.extend(e.position for e in page)
        assert read == sorted({Position(node, sequence) for s, node, sequence in found if s == subject})
