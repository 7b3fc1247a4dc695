"""``python -m tests.mutations``: inject every fault, and print what is caught and by what."""

from __future__ import annotations

import sys

from tests.mutations.catalogue import MISSED, MUTANTS
from tests.mutations.judging import judgements
from tests.mutations.report import missed, share, table


def main() -> int:
    judged = {mutant: judgements(mutant) for mutant in MUTANTS}
    print(table(judged))
    print()
    print("\n".join([share(judged), *missed(judged, MISSED)]))
    gone = {(mutant.breaks, mutant.name) for mutant, found in judged.items() if not all(one.caught for one in found)}
    return 0 if gone == MISSED.keys() else 1


if __name__ == "__main__":
    sys.exit(main())
