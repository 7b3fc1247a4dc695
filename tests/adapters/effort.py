"""How hard hypothesis tries to find a history on which store and model disagree.

``EVERVIEW_HYPOTHESIS=thorough`` runs many more and longer histories, others every time
(:mod:`tests.conftest`).
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_MODERATE = settings(
    max_examples=60,
    stateful_step_count=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
_THOROUGH = settings(_MODERATE, max_examples=1000, stateful_step_count=80)

HISTORIES = _THOROUGH if os.environ.get("EVERVIEW_HYPOTHESIS") == "thorough" else _MODERATE
