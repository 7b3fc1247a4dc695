"""Which files of which repository are a suite, and how they are read.

A repository has the suites whose patterns match its paths, so a clone of any of these projects can be
given by its place alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.strangers import formats
from tests.strangers.formats import Reader
from tests.strangers.repositories import Repository

_FELDERA = r"sql-to-dbsp-compiler/SQL-compiler/src/test/java/org/dbsp/sqlCompiler/compiler/sql/"


@dataclass(frozen=True)
class Suite:
    """The tests of a project that are written one way."""

    name: str
    pattern: str
    reader: Reader
    marker: str
    """A pattern that only this project's paths match."""
    once_per_folder: bool = False

    def files(self, repository: Repository) -> list[str]:
        if not repository.files(self.marker):
            return []
        found = repository.files(self.pattern)
        return list({path.rpartition("/")[0]: path for path in found}.values()) if self.once_per_folder else found


SUITES = (
    Suite(
        "materialize",
        r"test/sqllogictest/(?!cockroach/|sqlite/|explain/|introspection/).*\.slt",
        formats.sqllogictest,
        r"test/testdrive/joins\.td",
    ),
    Suite("cockroach", r"test/sqllogictest/cockroach/.*\.slt", formats.sqllogictest, r"test/testdrive/joins\.td"),
    Suite("testdrive", r"test/testdrive/.*\.td", formats.testdrive, r"test/testdrive/joins\.td"),
    Suite("feldera java", rf"{_FELDERA}.*\.java", formats.java, rf"{_FELDERA}.*\.java"),
    Suite("feldera python", r"python/tests/.*\.py", formats.python, rf"{_FELDERA}.*\.java", once_per_folder=True),
    Suite("postgres", r"src/test/regress/sql/.*\.sql", formats.psql, r"src/test/regress/sql/test_setup\.sql"),
    Suite(
        "sqllogictest", r"test/(?:random|index|evidence|select).*\.test", formats.sqllogictest, r"test/select1\.test"
    ),
    Suite("risingwave", r"e2e_test/.*\.slt(?:\.part)?", formats.sqllogictest, r"e2e_test/batch/.*\.slt.*"),
    Suite(
        "datafusion",
        r"datafusion/sqllogictest/test_files/.*\.slt(?:\.part)?",
        formats.sqllogictest,
        r"datafusion/sqllogictest/.*",
    ),
    Suite(
        "duckdb",
        r"test/(?:sql/(?!copy/|storage/|attach/|catalog/|peg_parser/|pragma/|settings/|secrets/)|issues|fuzzer|optimizer).*\.test",
        formats.sqllogictest,
        r"test/sql/join/.*\.test",
    ),
    Suite("sqlite", r"test/.*\.test", formats.tcl, r"test/tester\.tcl"),
)


def suites_of(repository: Repository, names: frozenset[str]) -> Iterator[tuple[Suite, list[str]]]:
    """The suites that a repository has, with their files; where names are given only those."""
    for suite in SUITES:
        if not names or suite.name in names:
            files = suite.files(repository)
            if files:
                yield suite, files
