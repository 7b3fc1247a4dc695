"""All of it is right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bench.report.experiment import Comparison, Experiment, Found, Plot, Row, Setting


def measure(setting: Setting) -> Iterator[Found]:
    assert not list(setting.folder.iterdir())
    (setting.folder / "mine").write_text("left behind")
    for view in ("a | b", "c"):
        for servers in setting.pick((1, 2, 4), (1, 2)):
            rate: Any = np.int64(1_000 * servers + setting.seed)
            row: Row = {"view": view, "servers": servers, "rate": rate, "share": float("nan"), "text": "<1 & 2>"}
            yield Found(row, profile={"read": 0.25, "write": 0.75})


def comparisons(rows: Sequence[Row]) -> list[Comparison]:
    return [Comparison("004, Figure 9", "they grew", f"from {rows[0]['rate']} on", "two cores")]


EXPERIMENT = Experiment(
    name="right",
    title="What is right",
    text="Two views.",
    measure=measure,
    columns={"view": "view", "servers": "servers", "rate": "operations/s", "share": "share", "text": "text"},
    plots=(
        Plot("lines", "Rates <by> servers", "servers", "rate", "view", log_x=True),
        Plot("bars", "Rates by view", "view", "rate", "servers", kind="bars", log_y=True),
    ),
    comparisons=comparisons,
    notes=lambda rows: [f"{len(rows)} rows."],
)
