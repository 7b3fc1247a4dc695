"""How hard hypothesis tries to find a history on which store and model disagree.

``EVERVIEW_HYPOTHESIS=thorough`` runs many more and longer histories; ``--hypothesis-seed``
repeats a run, and a failure prints the decorator that repeats it alone.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_MODERATE = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
_EFFORTS = {"ci": _MODERATE, "thorough": settings(_MODERATE, max_examples=1000, stateful_step_count=80)}

HISTORIES = _EFFORTS[os.environ.get("EVERVIEW_HYPOTHESIS", "ci")]
