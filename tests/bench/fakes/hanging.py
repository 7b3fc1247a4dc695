"""Never ends, and has started a process that would not either."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator

from bench.report.experiment import Experiment, Found, Setting


def measure(setting: Setting) -> Iterator[Found]:
    started = subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait()"])
    yield Found({"process": started.pid})
    threading.Event().wait()


EXPERIMENT = Experiment(
    name="hanging", title="What hangs", text="One row.", measure=measure, columns={"process": "process"}, limit=1.5
)
