"""Ends with an error, after a row."""

from __future__ import annotations

from collections.abc import Iterator

from bench.report.experiment import Experiment, Found, Setting


def measure(setting: Setting) -> Iterator[Found]:
    yield Found({"n": 4711})
    raise ValueError("there is no more")


EXPERIMENT = Experiment(
    name="raising",
    title="What raises",
    text="One row.",
    measure=measure,
    columns={"n": "number"},
    notes=lambda rows: [f"{rows[1]['n']} is not there"],
)
