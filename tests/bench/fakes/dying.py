"""Its process is killed, after a row."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

from bench.report.experiment import Experiment, Found, Setting


def measure(setting: Setting) -> Iterator[Found]:
    yield Found({"n": 4712})
    os.kill(os.getpid(), signal.SIGKILL)


EXPERIMENT = Experiment(name="dying", title="What dies", text="One row.", measure=measure, columns={"n": "number"})
