"""``everview`` whose epochs do not come to an end: ``python -m tests.cli.stuck run <store> …``."""

from __future__ import annotations

import json
import threading

from everview.cli.app import main
from everview.maintain.executor import LocalExecutor


def stuck(*_: object) -> None:
    print(json.dumps({"event": "inside"}), flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    LocalExecutor.work = stuck  # type: ignore[method-assign,assignment]
    main()
