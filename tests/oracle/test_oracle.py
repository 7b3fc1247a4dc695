"""The oracle itself: scripts are their text, what is wrong is found, and shrinks."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.oracle.played import Wrong, play, played
from tests.oracle.random_scripts import by_grammar, by_template, random_script
from tests.oracle.script import Epoch, Script, View, Write
from tests.oracle.shrink import failure, refusal, shrunk
from tests.oracle.templates import TEMPLATES


@pytest.mark.parametrize("seed", range(20))
def test_a_script_is_its_text(seed: int) -> None:
    script = random_script(seed)
    assert Script.parse(str(script)) == script
    assert refusal(script) is None


def test_a_seed_names_a_script() -> None:
    assert random_script(7) == random_script(7)
    assert len({str(random_script(seed)) for seed in range(30)}) == 30


def test_every_template_is_drawn() -> None:
    texts = {name: by_template(3, views=1, names=[name]).views[0].query for name in TEMPLATES}
    assert len(set(texts.values())) == len(TEMPLATES)


def wrong(script: Script) -> Script:
    """The same with views that are compared with another query."""
    views = tuple(View(view.name, view.query, f"SELECT * FROM ({view.plain}) LIMIT 2") for view in script.views)
    return replace(script, views=views)


SUMS = """
CREATE TABLE a (id INTEGER PRIMARY KEY, k INTEGER, s VARCHAR);
CREATE TABLE b (id INTEGER PRIMARY KEY);
CREATE MATERIALIZED VIEW v AS SELECT k, count(*) AS n FROM a GROUP BY k;
CREATE MATERIALIZED VIEW w AS SELECT id FROM b;
"""


def test_a_wrong_view_is_found() -> None:
    script = wrong(Script.parse(SUMS + "".join(f"INSERT INTO a (id, k) VALUES ({n}, {n});\n" for n in range(3))))
    with pytest.raises(Wrong, match=r"extra"):
        play(script)


def test_a_failure_shrinks() -> None:
    rng = random.Random(1)
    writes = [
        Write(name, (("id", str(rng.randint(0, 30))), *((("k", str(rng.randint(0, 9))),) if name == "a" else ())))
        for name in rng.choices("ab", k=60)
    ]
    script = Script.parse(SUMS)
    script = replace(script, epochs=tuple(Epoch(tuple(writes[at : at + 15])) for at in range(0, 60, 15)))
    broken = replace(
        script,
        views=(View("v", script.views[0].query, f"{script.views[0].plain} HAVING count(*) < 2"), script.views[1]),
    )
    small = shrunk(broken)
    assert failure(small) == "a view is wrong"
    assert len(small.views) == len(small.tables) == len(small.epochs) == 1
    assert len(small.epochs[0].writes) == 2


def test_queries_shrink_too() -> None:
    query = "SELECT k, s, coalesce(length(s), 0) + 1 AS n FROM a WHERE k > 0 AND s <> 'x' ORDER BY k"
    script = Script.parse(
        f"CREATE TABLE a (id INTEGER PRIMARY KEY, k INTEGER, s VARCHAR);\nCREATE MATERIALIZED VIEW v AS {query};\n"
        "INSERT INTO a (id, k, s) VALUES (1, 1, 'p');\nepoch\n"
    )

    def failing(one: Script) -> None:
        if "length" in one.views[0].query.lower():
            raise Wrong

    assert shrunk(script, played=failing).views[0].query in ("SELECT LENGTH(s) FROM a", "SELECT LENGTH(s) AS n FROM a")


def test_an_epoch_may_take_a_part_of_the_writes() -> None:
    script = Script.parse(
        SUMS + "INSERT INTO a (id, k) VALUES (1, 1);\nINSERT INTO a (id, k) VALUES (2, 1);\nepoch 1\n"
    )
    with played(script) as found:
        found.epoch(script.epochs[0])
        assert found.maintained.view("v").to_pylist() == [{"k": 1, "n": 1}]
        found.epoch(Epoch(()))
        assert found.maintained.view("v").to_pylist() == [{"k": 1, "n": 2}]


def test_scripts_of_the_grammar_write_to_the_tables_that_are_read() -> None:
    script = by_grammar(4)
    assert any(epoch.writes for epoch in script.epochs)
