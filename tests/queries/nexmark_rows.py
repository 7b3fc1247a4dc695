"""Rows of the Nexmark tables: persons register, open auctions soon after, and bid while they last.

Everything happens within twenty minutes around midnight, so that windows of
seconds hold several rows and statistics by day have two days.
"""

from __future__ import annotations

import numpy as np

from tests.queries.draw import Columns, Draw, Recipe, Reference, values_of

START = np.datetime64("2025-12-31T23:50:00", "us")
SECONDS = 20 * 60

FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
CITIES = ("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent")
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CHANNELS = ("Apple", "Google", "Facebook", "Baidu", "channel-17", "channel-4711", "channel-9999")
LETTERS = ("abc", "cod", "cactus", "nexus", "market", "echo", "ccc", "zebra")


def _times(draw: Draw, count: int) -> np.ndarray:
    return START + _seconds(draw.random.uniform(0, SECONDS, count))


def _seconds(seconds: np.ndarray) -> np.ndarray:
    return (seconds * 1000).astype("int64").astype("timedelta64[ms]")


def _person(draw: Draw, count: int) -> Columns:
    first, last = draw.pick(count, FIRST_NAMES), draw.pick(count, LAST_NAMES)
    return {
        "id": draw.ids(count, SIZES["person"]),
        "name": [f"{a} {b}" for a, b in zip(first, last, strict=True)],
        "email_address": [f"{a}.{b}@example.com".lower() for a, b in zip(first, last, strict=True)],
        "credit_card": [" ".join(map(str, row)) for row in draw.random.integers(1000, 10000, (count, 4))],
        "city": draw.pick(count, CITIES),
        "state": draw.pick(count, STATES),
        "date_time": _times(draw, count),
        "extra": draw.words(count, LETTERS, 2),
    }


def _auction(draw: Draw, count: int) -> Columns:
    sellers = draw.some("person", count)
    opened = values_of(sellers["date_time"], START) + _seconds(draw.random.exponential(15, count))
    # One in six has a number that q2 selects.
    numbers = draw.ids(count, SIZES["auction"])
    initial = draw.whole(count, 1, 10_000)
    return {
        "id": np.where(numbers % 6 == 0, numbers // 6 * 123, numbers),
        "item_name": draw.words(count, LETTERS, 2),
        "description": draw.words(count, LETTERS, 5),
        "initial_bid": initial,
        "reserve": initial + draw.whole(count, 0, 10_000),
        "date_time": opened,
        "expires": opened + _seconds(draw.random.uniform(10, 120, count)),
        "seller": sellers["id"],
        "category": draw.whole(count, 10, 14),
        "extra": draw.words(count, LETTERS, 2),
    }


def _bid(draw: Draw, count: int) -> Columns:
    auctions = draw.some("auction", count, prefer=lambda rows: rows["id"].to_numpy() % 10 == 0, share=0.4)
    opened = values_of(auctions["date_time"], START)
    folders = draw.pick(count, LETTERS), draw.pick(count, LETTERS), draw.pick(count, LETTERS)
    channels = draw.pick(count, CHANNELS)
    return {
        "id": draw.ids(count, SIZES["bid"]),
        "auction": auctions["id"],
        "bidder": draw.some("person", count)["id"],
        "price": np.round(10 ** draw.random.uniform(0, 6, count) * 100).astype("int64"),
        "channel": channels,
        "url": [
            f"https://www.nexmark.com/{a}/{b}/{c}/item.htm?query=1"
            + (f"&channel_id={channel.removeprefix('channel-')}" if channel.startswith("channel-") else "")
            for a, b, c, channel in zip(*folders, channels, strict=True)
        ],
        "date_time": opened + _seconds(draw.random.uniform(0, 90, count)),
        "extra": draw.words(count, LETTERS, 3),
    }


def _side_input(draw: Draw, count: int) -> Columns:
    keys = values_of(draw.some("auction", count)["id"], 0) % 10_000
    return {"key": keys, "value": [f"value of {key}" for key in keys]}


SIZES = {"person": 60, "auction": 120, "bid": 1500, "side_input": 60}

RECIPES = {
    "person": Recipe(SIZES["person"], _person),
    "auction": Recipe(SIZES["auction"], _auction, (Reference(("seller",), "person", ("id",)),)),
    "bid": Recipe(
        SIZES["bid"],
        _bid,
        (Reference(("auction",), "auction", ("id",)), Reference(("bidder",), "person", ("id",))),
    ),
    "side_input": Recipe(SIZES["side_input"], _side_input),
}
