"""``python -m tests.mutations [--seed N]``: inject every fault, and print what is caught and by what.

A CREATE draws its sample with seed 1, and the sample was improved with these mutants in view, so its share is that of
a test one has prepared for. Another seed shows how much of it is luck.
"""

from __future__ import annotations

import argparse
import sys

from tests.mutations.catalogue import MISSED, MUTANTS
from tests.mutations.judging import judgements
from tests.mutations.report import is_caught, missed, share, table


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutations", description="Inject faults; report what is caught."
    )
    parser.add_argument("--seed", type=int, default=1, help="of the sample; a CREATE has 1")
    seed = parser.parse_args().seed
    judged = {mutant: judgements(mutant, seed) for mutant in MUTANTS}
    print(table(judged))
    print()
    print("\n".join([f"seed {seed}: {share(judged)}", *missed(judged, MISSED)]))
    gone = {(mutant.breaks, mutant.name) for mutant, found in judged.items() if not is_caught(found)}
    return 0 if gone == MISSED.keys() else 1


if __name__ == "__main__":
    sys.exit(main())
