"""EXPLAIN as text, JSON and SVG."""

from __future__ import annotations

import itertools
import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.errors import DefinitionError
from everview.plan.explain import explain_json, explain_svg, explain_text
from everview.plan.explain.svg import _wide, _wrapped
from everview.plan.explain.svg_layout import Node, arranged
from everview.plan.maintenance import MaintenancePlan, ViewInput, plan_group
from everview.plan.relations import Way
from tests.plan.relation_texts import call, grouped, joined, of, scan, select, where

A, B = scan("a"), scan("b")


def shop() -> MaintenancePlan:
    selections = [
        ViewInput(f"over_{number}", select(where(A, f'"a.c2" > {number}'), k="a.k")) for number in range(1, 6)
    ]
    return plan_group(
        [
            *selections,
            ViewInput("sums", grouped(A, ["a.c1"], call("s", "sum", of(A, "a.c2")))),
            ViewInput("lists", grouped(A, ["a.c1"], call("l", "list", of(A, "a.c2"), Way.GENERAL))),
            ViewInput("pairs", joined(A, B, {"a.c1": "b.c1"})),
        ],
        before_images=False,
    )


def test_text_shows_zones_steps_state_keys_sharing_and_costs() -> None:
    assert explain_text(shop(), ["sums"]) == (
        "1 view, 4 steps, 2 zones, 1 shuffle\n"
        "zone 1, stage 1, by a.k\n"
        "  1 delta a\n"
        "      keeps DELTA a: (a.k) → (a.c1, a.c2)\n"
        "      shared with lists, over_1 and 5 more\n"
        "zone 2, stage 2, by a.c1\n"
        "  2 pre-aggregation count(*), count(a.c2), sum(a.c2)  ← 1 by a.c1\n"
        "      keeps PRE-AGGREGATION a by c1: (a.c1) → (a.count(*), a.count(c2), a.sum(c2))\n"
        "      shared with lists\n"
        "  3 aggregate sum(c2)  ← 2\n"
        "  4 view sums  ← 3\n"
        "      keeps VIEW sums: (a.c1) → (a.sum(c2))\n"
        "view sums\n"
        "  row key (a.c1)\n"
        "  one                   reads  writes  shuffles\n"
        "  insert in a               2       3         1\n"
        "  update in a               2       3         1\n"
        "  update of a key in a      3       5         1\n"
        "  delete in a               2       3         1\n"
    )


def test_text_names_a_family_once() -> None:
    text = explain_text(shop())
    assert "family of 5 selections on a: over_1, over_2 and 3 more\n" in text
    assert "filter-project a.c2 > $1  ← 1\n      for 5 members\n" in text
    assert text.count("row key") == 4


def test_json_has_the_same_numbers() -> None:
    plan = shop()
    found = json.loads(json.dumps(explain_json(plan, ["pairs", "over_1"])))
    assert [zone["number"] for zone in found["zones"]] == [1, 2, 3, 4]
    steps = [step for zone in found["zones"] for step in zone["steps"]]
    assert [step["number"] for step in steps] == list(range(1, len(steps) + 1))
    assert all(source["step"] < step["number"] for step in steps for source in step["inputs"])
    pairs = next(view for view in found["views"] if view["name"] == "pairs")
    assert pairs["costs"][0] == {
        "table": "a",
        "change": "insert",
        "reads": [3, 0],
        "writes": [2, 1],
        "shuffles": 2,
        "whole": [],
    }
    assert pairs["fingerprint"] == plan.view_fingerprint("pairs")


def test_an_unknown_view_is_refused() -> None:
    with pytest.raises(DefinitionError, match="no view nothing"):
        explain_text(shop(), ["nothing"])


def test_svg_is_a_document_with_every_zone_and_step() -> None:
    plan = shop()
    root = ElementTree.fromstring(explain_svg(plan))
    texts = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert [text for text in texts if text.startswith("zone ")] == [
        f"zone {zone.number}, by {', '.join(zone.key)}" for zone in plan.zones
    ]
    for number in range(1, len(plan.steps) + 1):
        assert any(text.startswith(f"{number} ") for text in texts)
    assert texts.count("by a.c1") == 1 and texts.count("by a.k, b.l") == 1


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Node], list[tuple[Node, Node]]]:
    count = draw(st.integers(1, 25))
    nodes: list[Node] = []
    edges: list[tuple[Node, Node]] = []
    for number in range(count):
        stage = draw(st.integers(1, 4))
        width, height = draw(st.integers(20, 300)), draw(st.integers(20, 120))
        node = Node(f"n{number}", width, height, stage, f"{stage}.{draw(st.integers(1, 3))}")
        earlier = [one for one in nodes if one.stage < stage or one.band == node.band]
        edges += [(one, node) for one in earlier if draw(st.integers(0, 3)) == 0]
        nodes.append(node)
    return nodes, edges


def overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return (
        one[0] < other[0] + other[2]
        and other[0] < one[0] + one[2]
        and one[1] < other[1] + other[3]
        and other[1] < one[1] + one[3]
    )


def apart(boxes: Sequence[tuple[float, float, float, float]]) -> bool:
    return not any(overlap(one, other) for one, other in itertools.combinations(boxes, 2))


@given(graphs())
def test_nothing_overlaps_and_all_lines_run_to_the_right(
    graph: tuple[list[Node], list[tuple[Node, Node]]],
) -> None:
    nodes, edges = graph
    drawing = arranged(nodes, edges, {node.band: 150.0 for node in nodes})
    assert apart([(node.x, node.y, node.width, node.height) for node in nodes])
    assert apart([(band.x, band.y, band.width, band.height) for band in drawing.bands])
    around = {band.name: band for band in drawing.bands}
    for node in nodes:
        band = around[node.band]
        assert band.x <= node.x and node.x + node.width <= band.x + band.width <= drawing.width
        assert band.y < node.y and node.y + node.height <= band.y + band.height <= drawing.height
    for line in drawing.lines:
        xs = [x for x, _ in line.points]
        assert xs == sorted(xs)
    assert len(drawing.lines) == len(edges)


def test_rows_of_a_picture_are_broken_where_it_reads_well_and_fit_their_boxes() -> None:
    assert _wrapped("sum(orders.amount) of", 3, 12) == ["sum(orders.", "amount) of"]
    assert _wrapped("abcdefghijkl", 3, 5) == ["abcde", "fghij", "kl"]
    assert _wrapped("one two three", 2, 5) == ["one", "two…"]
    assert _wrapped("", 2) == [""]
    assert _wide(["a ⋈ b"]) > _wide(["a + b"])
