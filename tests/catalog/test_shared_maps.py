"""Maps that copies share: a copy is not changed with the other one, and what was changed between two is known."""

from __future__ import annotations

import random

import pytest

from everview.catalog.shared_maps import KNOWN, SharedMaps

Model = dict[str, dict[int, int]]


def put(maps: SharedMaps[str, int, int], model: Model, key: str, id: int, value: int) -> None:
    maps.put(key, id, value)
    model.setdefault(key, {})[id] = value


def remove(maps: SharedMaps[str, int, int], model: Model, key: str, id: int) -> None:
    maps.remove(key, id)
    if key in model and model[key].pop(id, None) is not None and not model[key]:
        del model[key]


@pytest.mark.parametrize("seed", range(10))
def test_copies_are_changed_by_themselves(seed: int) -> None:
    rng = random.Random(seed)
    versions: list[tuple[SharedMaps[str, int, int], Model]] = [(SharedMaps(), {})]
    for number in range(200):
        before, known = rng.choice(versions)
        maps, model = before.copy(), {key: dict(entries) for key, entries in known.items()}
        for _ in range(rng.randint(1, 4)):
            change = rng.choice((put, put, remove))
            key, id = rng.choice("ab"), rng.randrange(6)
            if change is put:
                put(maps, model, key, id, number)
            else:
                remove(maps, model, key, id)
        versions.append((maps, model))
    for maps, model in versions:
        assert sorted(maps.keys()) == sorted(model)
        assert {key: dict(maps.of(key)) for key in "ab"} == {key: model.get(key, {}) for key in "ab"}


@pytest.mark.parametrize("seed", range(10))
def test_what_was_changed_between_two_copies_is_known(seed: int) -> None:
    rng = random.Random(seed)
    maps: SharedMaps[str, int, int] = SharedMaps()
    model: Model = {}
    versions: list[tuple[SharedMaps[str, int, int], Model]] = []
    compared = 0
    for number in range(300):
        versions.append((maps.copy(), {key: dict(entries) for key, entries in model.items()}))
        if rng.random() < 0.6:
            put(maps, model, rng.choice("ab"), rng.randrange(6), number)
        else:
            remove(maps, model, rng.choice("ab"), rng.randrange(6))
        before, known = rng.choice(versions[-KNOWN // 2 :])
        for key in "ab":
            found = maps.changed(before, key)
            if found is not None:
                compared += 1
                then, now = known.get(key, {}), model.get(key, {})
                assert {id for id in {*then, *now} if then.get(id) != now.get(id)} <= found
    assert compared > 400


def test_what_was_changed_long_ago_is_not_known() -> None:
    maps: SharedMaps[str, int, int] = SharedMaps()
    maps.put("a", 0, 0)
    before = maps.copy()
    for id in range(1, KNOWN):
        maps.put("a", id, id)
    assert maps.changed(before, "a") == set(range(1, KNOWN))
    maps.put("a", 1, 2)
    assert maps.changed(before, "a") == set(range(1, KNOWN))
    maps.put("a", KNOWN, 0)
    assert maps.changed(before, "a") is None
    assert maps.changed(before, "b") == set()


def test_copies_that_went_different_ways_do_not_know_of_each_other() -> None:
    maps: SharedMaps[str, int, int] = SharedMaps()
    maps.put("a", 0, 0)
    other = maps.copy()
    maps.put("a", 1, 1)
    other.put("a", 2, 2)
    assert maps.changed(other, "a") is None
    assert other.changed(maps, "a") is None
