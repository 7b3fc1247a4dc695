"""Random scripts for as long as one likes: ``python -m tests.oracle --seconds 600 --seed 1``.

Prints each script that fails, shrunk, as a golden script to be kept in ``tests/scripts/oracle``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from tests.oracle import places, trials
from tests.oracle.played import play
from tests.oracle.random_scripts import random_script
from tests.oracle.script import Script
from tests.oracle.shrink import failure, refusal, shrunk


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long to go on drawing scripts")
    parser.add_argument("--seed", type=int, default=1, help="of the first script; the others follow")
    parser.add_argument("--shrink", type=float, default=60, help="seconds to spend on shrinking each failure")
    parser.add_argument("--count", type=int, default=sys.maxsize, help="how many scripts to play at most")
    parser.add_argument("--mishaps", action="store_true", help="also disturb the epochs, beside an undisturbed store")
    parser.add_argument("--places", action="store_true", help="run the epochs in several places")
    asked = parser.parse_args()
    played = trials.play if asked.mishaps else places.play if asked.places else play
    end = time.monotonic() + asked.seconds
    seed, failed = asked.seed, 0
    while time.monotonic() < end and seed < asked.seed + asked.count:
        script = random_script(seed)
        refused = refusal(script)
        if refused is not None:
            print(f"# seed {seed} draws what DuckDB does not take: {refused}", flush=True)
        how = failure(script, played)
        if how is not None:
            failed += 1
            small = shrunk(script, asked.shrink, played) if asked.shrink else script
            print(f"# seed {seed}: {how}\n{_comment(small, played)}{small.golden}", flush=True)
        seed += 1
    print(f"# {seed - asked.seed} scripts, {failed} failed")
    return 1 if failed else 0


def _comment(script: Script, played: Callable[[Script], object]) -> str:
    try:
        played(script)
    except Exception as error:
        return "".join(f"# {line}\n" for line in str(error).splitlines())
    return ""


if __name__ == "__main__":
    sys.exit(main())
