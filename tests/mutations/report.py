"""What was caught, as a table.

A line for each target, with how many mutants it has and how many of them each safeguard notices, and
the share of all that are caught.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.mutations.judging import Judgement
from tests.mutations.mutant import Mutant
from tests.mutations.targets import TARGETS, Target, called

Judged = Mapping[Mutant, Sequence[Judgement]]


def is_caught(found: Sequence[Judgement]) -> bool:
    """Whether none of a mutant's views goes live with a plan."""
    return all(one.caught for one in found)


def table(judged: Judged) -> str:
    """In Markdown."""
    lines = [
        "| stage | broken | mutants | reading not trusted | refused in planning | differs in the trial | missed |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, targets in TARGETS.items():
        for target in targets:
            own = {mutant: found for mutant, found in judged.items() if mutant.breaks is target}
            if own:
                lines.append(f"| {name} | {called(target)} | {' | '.join(map(str, _counts(own)))} |")
    lines.append(f"| **all** | | {' | '.join(f'**{count}**' for count in _counts(judged))} |")
    return "\n".join(lines)


def share(judged: Judged) -> str:
    caught = sum(map(is_caught, judged.values()))
    return f"{caught} of {len(judged)} mutants are caught: {100 * caught / len(judged):.1f} %"


def _counts(judged: Judged) -> list[int]:
    every = list(judged.values())
    return [
        len(every),
        sum(all(one.reading for one in found) for found in every),
        sum(all(one.planning for one in found) for found in every),
        sum(all(one.trial for one in found) for found in every),
        sum(not is_caught(found) for found in every),
    ]


def missed(judged: Judged, reasons: Mapping[tuple[Target, str], str]) -> list[str]:
    """A line for each mutant that is missed."""
    return [
        f"missed: {called(mutant.breaks)}: {mutant.name} ({reasons.get((mutant.breaks, mutant.name), 'not expected')})"
        for mutant, found in judged.items()
        if not is_caught(found)
    ]
