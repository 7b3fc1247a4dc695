"""One of two results is wrong."""

from __future__ import annotations

from collections.abc import Iterator

from bench.report.experiment import Experiment, Found, Plot, Setting


def measure(setting: Setting) -> Iterator[Found]:
    yield Found({"view": "good", "rate": 123_456_789, "time": "5 ms"})
    yield Found({"view": "bad", "rate": 987_654_321, "time": "7 ms"}, wrong="2 rows are missing", profile={"x": 98.765})


EXPERIMENT = Experiment(
    name="wrong",
    title="What is wrong",
    text="Two views.",
    measure=measure,
    columns={"view": "view", "rate": "operations/s", "time": "time"},
    plots=(Plot("rates", "Rates", "view", "rate", kind="bars"),),
)
